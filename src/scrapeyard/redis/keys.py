"""The names of all keys in Redis. This module spells every one of them, with one exception: the scripts of the page
cache append to `pages` by themselves, as redis_put.lua describes."""

import re

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import Priority

_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Keys:
    """Key names under one prefix, so that several yards may share a server.

    Raises SettingsInvalid when the prefix cannot be used.
    """

    def __init__(self, prefix: str) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise SettingsInvalid(
                f"queue prefix {prefix[:80]!r}: use up to 64 letters, digits, dots, dashes, underscores"
            )
        self._prefix = prefix
        self.probe = f"{prefix}:probe"
        """A text that is written to see whether the server takes anything."""
        self.lanes = f"{prefix}:lanes"
        """A set: every lane that was ever published to."""
        self.sites = f"{prefix}:sites"
        """A sorted set: every site that was asked for within the last day."""
        self.pages = f"{prefix}:pages"
        """What every key of the page cache begins with."""
        self.pages_used = f"{self.pages}:used"
        self.pages_meta = f"{self.pages}:meta"
        self.pages_bytes = f"{self.pages}:bytes"
        self.pages_counts = f"{self.pages}:counts"

    def waiting(self, lane: str, priority: Priority) -> str:
        """A list: the deliveries of one lane and priority that wait. Earlier versions kept streams under `q`."""
        return f"{self._prefix}:l:{lane}:{priority}"

    def channel(self, name: str) -> str:
        """The pub/sub channel."""
        return f"{self._prefix}:c:{name}"

    def channel_name(self, key: str) -> str:
        """The reverse of `channel`."""
        return key.removeprefix(f"{self._prefix}:c:")

    def site(self, site: str) -> tuple[str, str, str, str, str]:
        """What the gate's scripts work on: standing, seats, alive, sites, places. site.lua explains them."""
        standing = f"{self._prefix}:site:{site}"
        return standing, f"{standing}:seats", f"{standing}:alive", self.sites, f"{standing}:places"

    def page(self, page_id: str) -> str:
        """One cached page."""
        return f"{self.pages}:p:{page_id}"

    def page_claim(self, name: str) -> str:
        """The claim of the one worker that fetches a page for all."""
        return f"{self.pages}:claim:{name}"

    def ways(self, site: str) -> str:
        """A hash: how often each way to fetch from the site worked."""
        return f"{self._prefix}:ways:{site}"

    def clearances(self, site: str) -> str:
        """A hash: the clearances held for the site."""
        return f"{self._prefix}:clearances:{site}"

    def solving(self, site: str, exit_name: str) -> str:
        """The claim of the one worker that solves the site's challenge at this exit."""
        return f"{self._prefix}:solving:{site}:{exit_name}"

    def client(self, name: str) -> tuple[str, str]:
        """What the limits of a client are counted in: its bucket and the calls that it has running."""
        return f"{self._prefix}:client:{name}", f"{self._prefix}:client:{name}:held"

    def budget(self, job_id: str) -> str:
        """A hash: what each process used up for the job."""
        return f"{self._prefix}:budget:{job_id}"
