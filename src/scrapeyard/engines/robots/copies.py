"""Copies of robots.txt, one for each origin, as long as RFC 9309 lets them count. protego reads and matches them."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace
from protego import Protego

from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.http.url import Target
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.telemetry.events import get_log

MAX_BYTES = 500 * 1024
"""More of a file is not read, as the RFC allows."""
_MAX_LINE = 2 * 8192
_NAMES = frozenset({"user-agent", "useragent", "user agent"})
_FORBIDS = frozenset({"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"})
_FEW_SECONDS = 0.01


class RobotsLine(Struct, frozen=True):
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

    def _own_group(self) -> list[RobotsLine]:
        """The lines of the groups that speak to this name, or else of those that speak to everyone."""
        groups: dict[str, list[RobotsLine]] = {}
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


def tidy(content: bytes) -> Iterator[RobotsLine]:
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
            yield RobotsLine(field, value, line)


FRESH_SECONDS = 86_400.0
RETRY_SECONDS = 300.0
"""Before a file that could not be had is asked for again."""
OLDEST_SECONDS = 30 * 86_400.0
MAX_COPIES = 5_000
MAX_TOTAL = 2 * 1024 * 1024
"""Characters of all copies; what is made of them takes some fifty times as much memory."""
MAX_ANSWER = 4 * 1024 * 1024
"""Bytes of a file that is taken at all, though less of it is read."""
SMALL = 16 * 1024
"""Characters that are read, and searched, without leaving the event loop."""
_FETCH_SECONDS = 30.0
_UNREACHABLE = frozenset(
    {
        ExitReason.FETCH_CONNECT,
        ExitReason.FETCH_TLS,
        ExitReason.FETCH_TIMEOUT,
        ExitReason.FETCH_PROTOCOL,
        ExitReason.FETCH_TOO_LARGE,
        ExitReason.FETCH_DECODE,
    }
)
_UNAVAILABLE = frozenset({ExitReason.FETCH_REDIRECTS, ExitReason.FETCH_NOT_ALLOWED, ExitReason.FETCH_BAD_URL})
"""Redirects that lead nowhere: the RFC takes them for a file that is not there."""
log = get_log("robots")


class Copy(Struct, frozen=True, kw_only=True):
    """What is known of one origin's robots.txt."""

    rules: RobotsRules | None = None
    """None: there is no file, so that everything is allowed, or it was never had (`problem`)."""
    problem: str = ""
    """Why the file cannot be had now; where there are no rules, nothing is allowed."""
    fetched_at: float = 0.0
    """When it was last had."""
    good_until: float = 0.0


class RobotsCopies:
    """Gets and keeps them. Who asks for the same file at once shares one fetch."""

    def __init__(self, fetch: Fetch, agent: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`fetch` is the client, with the guard and the site's gate, and without robots."""
        self._fetch = fetch
        self._agent = agent
        self._clock = clock
        self._copies: OrderedDict[tuple[str, str, int], Copy] = OrderedDict()
        self._total = 0
        self._under_way: dict[tuple[str, str, int], asyncio.Task[Copy]] = {}

    async def of(self, context: FetchContext) -> Copy:
        """The copy that counts now. Raises FetchFailed when we, not the site, are the reason that there is none."""
        target = context.target
        copy = self._copies.get(target.origin)
        if copy is not None and self._clock() < copy.good_until:
            self._copies.move_to_end(target.origin)
            return copy
        task = self._under_way.get(target.origin)
        if task is None:
            task = self._under_way[target.origin] = asyncio.create_task(self._get(context, copy), name="robots-txt")
            task.add_done_callback(lambda done: self._over(target, done))
        return await asyncio.shield(task)

    def seconds_left(self, copy: Copy) -> float:
        """Until the file is asked for again."""
        return max(0.0, copy.good_until - self._clock())

    async def stop(self) -> None:
        """Break off what is under way. May be called twice."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, target: Target, task: asyncio.Task[Copy]) -> None:
        self._under_way.pop(target.origin, None)
        if not task.cancelled():
            task.exception()  # taken here, since everybody who asked may have left

    async def _get(self, context: FetchContext, before: Copy | None) -> Copy:
        target, copy = context.target, await self._ask(context)
        if copy.problem and before is not None and not self._is_old(before):
            copy = replace(before, problem=copy.problem, good_until=copy.good_until)
        if copy.problem:
            log.warning("robots.not_had", host=target.host, problem=copy.problem)
        self._keep(target, copy)
        return copy

    def _is_old(self, copy: Copy) -> bool:
        return copy.fetched_at == 0.0 or self._clock() - copy.fetched_at > OLDEST_SECONDS

    async def _ask(self, context: FetchContext) -> Copy:
        target = replace(context.target, resource="/robots.txt")
        request = FetchRequest(
            url=target.url,
            headers={"Accept": "text/plain,*/*;q=0.5"},
            timeout_seconds=_FETCH_SECONDS,
            max_bytes=MAX_ANSWER,
            engine="http",
        )
        try:
            response = await self._fetch(replace(context, request=request, caller=Caller(), target=target))
        except FetchFailed as failure:
            if failure.reason in _UNAVAILABLE:
                return self._had(None)
            if failure.reason not in _UNREACHABLE:
                raise
            return self._not_had(failure.message)
        return await self._read(response)

    async def _read(self, response: FetchResponse) -> Copy:
        if response.status >= 500 or response.status == 429:
            return self._not_had(f"it answers {response.status}")
        if not 200 <= response.status < 300:
            return self._had(None)
        if len(response.body) <= SMALL:
            return self._had(RobotsRules(response.body, self._agent))
        return self._had(await asyncio.to_thread(RobotsRules, response.body, self._agent))

    def _had(self, rules: RobotsRules | None) -> Copy:
        now = self._clock()
        return Copy(rules=rules, fetched_at=now, good_until=now + FRESH_SECONDS)

    def _not_had(self, problem: str) -> Copy:
        return Copy(problem=problem[:500], good_until=self._clock() + RETRY_SECONDS)

    def _keep(self, target: Target, copy: Copy) -> None:
        self._total -= _size(self._copies.pop(target.origin, None))
        self._copies[target.origin] = copy
        self._total += _size(copy)
        while len(self._copies) > 1 and (len(self._copies) > MAX_COPIES or self._total > MAX_TOTAL):
            _, oldest = self._copies.popitem(last=False)
            self._total -= _size(oldest)


def _size(copy: Copy | None) -> int:
    return copy.rules.size if copy is not None and copy.rules is not None else 0
