"""The names of everything we keep in Redis; the only place that spells them."""

import re
from collections.abc import Sequence

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import Priority

GROUP = "workers"
CONSUMER = "taker"
"""One name for all: an entry is told from another by its id, and names of workers long gone would pile up."""
FIELD = b"d"
"""The field of a stream's entry that holds the delivery."""

_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Keys:
    """Key names under one prefix, so that several yards may share a server."""

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise SettingsInvalid(
                f"queue prefix {prefix[:80]!r}: use up to 64 letters, digits, dots, dashes, underscores"
            )
        self._prefix = prefix
        self.lanes = f"{prefix}:lanes"
        """A set: every lane that was ever published to."""

    def stream(self, lane: str, priority: Priority) -> str:
        """The stream of one lane and priority."""
        return f"{self._prefix}:q:{lane}:{priority}"

    def streams(self, lanes: Sequence[str], priorities: Sequence[Priority]) -> list[str]:
        """All of them, the first priority first."""
        return [self.stream(lane, priority) for priority in priorities for lane in lanes]

    def channel(self, name: str) -> str:
        """The pub/sub channel."""
        return f"{self._prefix}:c:{name}"

    def channel_name(self, key: str) -> str:
        """The reverse of `channel`."""
        return key.removeprefix(f"{self._prefix}:c:")
