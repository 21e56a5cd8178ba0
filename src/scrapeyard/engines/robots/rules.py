"""A robots.txt, read for one product name. protego reads and matches it.

One thing is taken as Google takes it instead: a name ends at its first white space, so that `User-agent: foo bar`
speaks to `foo`. A line that is no rule stands between the names of two groups, as protego has it; Google, and the
letter of RFC 9309, read over it.
"""

from collections.abc import Iterator

from msgspec import Struct
from protego import Protego

MAX_BYTES = 500 * 1024
"""More of a file is not read, as the RFC allows."""
_MAX_LINE = 2 * 8192
_NAMES = frozenset({"user-agent", "useragent", "user agent"})
_FORBIDS = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
_FEW_SECONDS = 0.01


class Line(Struct, frozen=True):
    """One line; `field` is lower-case, and the whole of it where there is no colon."""

    field: str
    value: str
    text: str


class RobotsRules:
    """What one file says to one product name."""

    def __init__(self, content: bytes, agent: str) -> None:
        """Takes a while for a large file (a second for the largest): call it outside of the event loop."""
        self._agent = agent
        self._lines = tuple(tidy(content))
        self._parsed = Protego.parse("\n".join(line.text for line in self._lines))
        self.size = sum(len(line.text) for line in self._lines)

    def allows(self, url: str) -> bool:
        """Whether this URL may be fetched. A robots.txt itself always may."""
        return self._parsed.can_fetch(url, self._agent)

    def forbidding(self, url: str) -> str:
        """The rule that forbids a URL, as it was written; empty where none stands out."""
        forbidden = [
            line
            for line in self._own_group()
            if line.field in _FORBIDS and not Protego.parse(f"User-agent: *\n{line.text}").can_fetch(url, "*")
        ]
        return max(forbidden, key=lambda line: len(line.value)).text if forbidden else ""

    @property
    def rate(self) -> float:
        """Requests a second that it asks for by Crawl-delay or Request-rate; 0: it asks for nothing."""
        delay = self._parsed.crawl_delay(self._agent)
        asked = self._parsed.request_rate(self._agent)
        rates = [1 / delay] if delay is not None and delay > _FEW_SECONDS else []
        if asked is not None:
            rates.append(asked.requests / asked.seconds)
        return min(rates, default=0.0)

    def _own_group(self) -> list[Line]:
        """The lines of the groups that speak to this name, or else of those that speak to everyone."""
        groups: dict[str, list[Line]] = {}
        names: list[str] = []
        naming = False
        for line in self._lines:
            if line.field in _NAMES:
                names = [*names, line.value.lower()] if naming else [line.value.lower()]
                naming = True
            elif line.field in _FORBIDS or line.field == "allow":
                naming = False
                for name in names:
                    groups.setdefault(name, []).append(line)
        return groups.get(self._agent.lower()) or groups.get("*", [])


def tidy(content: bytes) -> Iterator[Line]:
    """The lines that are not empty, without comments, and names without what follows them."""
    text = content[:MAX_BYTES].decode("utf-8-sig", "replace")
    for raw in text.splitlines():
        line = raw[:_MAX_LINE].partition("#")[0].strip()
        field, _, value = line.partition(":")
        field, value = field.strip().lower(), value.strip()
        if field in _NAMES:
            value = value.split(maxsplit=1)[0] if value else ""
            line = f"User-agent: {value}"
        if line:
            yield Line(field, value, line)
