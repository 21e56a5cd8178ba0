"""Rows of a plain list: an address on each line. Blank lines and those that begin with # are left out."""

from collections.abc import Sequence

from scrapeyard.engines.http.url import parse_target
from scrapeyard.errors import FetchFailed
from scrapeyard.inputs.formats.lines import LineParser
from scrapeyard.inputs.formats.rows import MAX_REASON, BadRow, Piece


class UrlParser(LineParser):
    """As Parser; rows are addresses as they stand there."""

    def read(self, first: int, lines: Sequence[str], piece: Piece) -> None:
        """As LineParser."""
        for number, line in enumerate(lines, first):
            url = line.strip()
            if not url or url.startswith("#"):
                continue
            try:
                parse_target(url)
            except FetchFailed as failure:
                piece.bad.append(BadRow(line=number, reason=failure.message[:MAX_REASON]))
            else:
                piece.rows.append((number, url))
