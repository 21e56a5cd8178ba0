"""Text that a spreadsheet would take for a formula."""

import re
from typing import Final

from scrapeyard.results.exports.columns import Cell

_STARTS: Final = re.compile("[\\s\\0]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\\t\\r\\n\\0]")
"""Full-width forms too: some spreadsheets take them for the same."""
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_HARMLESS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789{[(\"<'#/")
"""Most text begins with one of these."""


def neutral(cell: Cell) -> Cell:
    """The same, or with `'` in front, which makes a spreadsheet show it instead of running it. Numbers stay."""
    if type(cell) is not str or not cell or cell[0] in _HARMLESS:
        return cell
    return f"'{cell}" if _STARTS.match(cell) and not _NUMBER.fullmatch(cell) else cell
