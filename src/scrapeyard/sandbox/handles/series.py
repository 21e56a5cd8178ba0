"""Children that serve one run or item after another: those of a job's items, and those of warm calls.

A child is forked for the first, and replaced when it cannot serve another.
"""

import secrets
import time
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from scrapeyard.errors import SandboxError
from scrapeyard.model import Environment, Limits
from scrapeyard.sandbox.handles.child import Child
from scrapeyard.sandbox.handles.parent import LoadFailed, ParentGone, ParentHandle
from scrapeyard.sandbox.handles.session import Session, frame_room
from scrapeyard.sandbox.handles.unread import UnreadPages
from scrapeyard.sandbox.handles.watch import ChildWatch, read_process
from scrapeyard.sandbox.port import ChildServices, Verdict, Work
from scrapeyard.settings import WorkerSettings
from scrapeyard.telemetry.events import get_log

log = get_log("sandbox")
_CPU_SECONDS = 3600.0
"""CPU time for all items of one child together; the limit of each item is enforced from outside."""
_RESTLESS_SECONDS = 0.2
"""CPU time that a child may use between two looks at it while it rests."""
_NUMBER_BITS = 52

FindParent = Callable[[Environment | None], Awaitable[ParentHandle]]


def new_number() -> int:
    """An unguessable number for a run or item of a child that serves several."""
    return secrets.randbits(_NUMBER_BITS) + 1


class ChildSeries:
    """Serves the items of a job. Made by the sandbox. Belongs to one task."""

    def __init__(self, find_parent: FindParent, watch: ChildWatch, pages: UnreadPages) -> None:
        self._find_parent = find_parent
        self._watch = watch
        self._pages = pages
        self._held: tuple[ParentHandle, Child] | None = None
        self._refused: LoadFailed | None = None

    async def run(self, work: Work, services: ChildServices) -> Verdict:
        """See the port."""
        asked = time.perf_counter()
        try:
            parent, child, reused = await self._child(work)
        except LoadFailed as failure:  # so that it is not loaded again for each input
            self._refused = failure
            return Verdict(exit_reason=failure.reason, error=failure.error, wall_ms=_since(asked))
        except ParentGone as gone:
            raise SandboxError(f"the process that forks children went away: {gone}") from None
        session = Session(child, work, services, self._pages, new_number())
        self._watch.add(session, work.limits, parent)
        try:
            verdict = await session.run()
        finally:
            self._watch.remove(session)
            if not session.reusable or _is_spent(parent, session, work.limits):
                self._let_go(session.imports)
        verdict = parent.attribute_crash(verdict)
        return replace(verdict, child_start_ms=(session.handed_at - asked) * 1000, forked_ahead=reused)

    def close(self) -> None:
        """See the port."""
        self._let_go(())

    async def _child(self, work: Work) -> tuple[ParentHandle, Child, bool]:
        if self._refused is not None:
            raise self._refused
        if self._held is not None and self._held[1].open:
            return *self._held, True
        self._let_go(())
        parent = await self._find_parent(work.environment)
        child = await parent.own_child(_CPU_SECONDS + work.limits.cpu_seconds)
        child.allow_frames(frame_room(work.limits))
        self._held = parent, child
        return parent, child, False

    def _let_go(self, imports: tuple[str, ...]) -> None:
        held, self._held = self._held, None
        if held is not None:
            parent, child = held
            child.close()
            parent.release(child, imports)


class WarmChildren:
    """Gives runs of warm scrapers a child that served earlier ones, and decides whether it may serve another."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._seen: dict[Child, tuple[float, float]] = {}
        """When each resting child began to rest, and the CPU time that it had used at the last look."""

    async def take(self, parent: ParentHandle) -> tuple[Child, bool]:
        """A child, and whether it served before. Raises LoadFailed or ParentGone."""
        child, served = await parent.warm_child(_CPU_SECONDS + parent.limits.cpu_seconds)
        if not served:
            child.allow_frames(frame_room(parent.limits))
        return child, served

    def put_back(self, parent: ParentHandle, session: Session, verdict: Verdict | None) -> None:
        """The run has ended, or was cancelled (`verdict` is None): let its child rest, or end it."""
        child = session.child
        if verdict is not None and session.left:
            left = ", ".join(session.left)
            session.tell(f"left behind: {left}; its process was ended, so that no later run meets that", "warning")
            log.info("sandbox.warm_left", scraper=str(parent.scraper.ref), left=left)
        if verdict is not None and session.imports:
            names = ", ".join(session.imports[:20])
            session.tell(f"imported while it ran, and stays loaded in its process: {names}", "info")
        if verdict is None or not verdict.exit_reason.is_good or not self._may_serve(parent, session):
            child.close()
            parent.release(child, session.imports)
        else:
            parent.rest(child, session.imports)

    def _may_serve(self, parent: ParentHandle, session: Session) -> bool:
        if not session.reusable or not session.child.open or not parent.usable:
            return False
        return not _is_spent(parent, session, parent.limits) and session.child.served < self._settings.warm_runs

    def tidy(self, parents: list[ParentHandle], now: float) -> None:
        """End children that rested too long, or that use the processor though they have no run."""
        seen, self._seen = self._seen, {}
        for parent in parents:
            parent.end_resting(now - self._settings.warm_idle_seconds)
            for child in [child for child in parent.resting if self._is_restless(child, seen)]:
                log.warning("sandbox.warm_restless", scraper=str(parent.scraper.ref))
                child.kill()

    def _is_restless(self, child: Child, seen: dict[Child, tuple[float, float]]) -> bool:
        reading = read_process(child.pid)
        if reading is None:
            return False
        rested_at, before = seen.get(child, (0.0, 0.0))
        self._seen[child] = child.rested_at, reading.cpu_seconds
        return rested_at == child.rested_at and reading.cpu_seconds - before > _RESTLESS_SECONDS


def _is_spent(parent: ParentHandle, session: Session, limits: Limits) -> bool:
    """Count what the child has served. Whether too little is left for the next: it has used half of the memory that
    remained after the first, or its CPU time."""
    child = session.child
    child.served += 1
    if child.served == 1:
        child.first_peak_kb = session.peak_kb
    allowed = limits.memory_mb * 1024 + parent.base_bytes / 1024
    grown = session.peak_kb > (child.first_peak_kb + max(allowed, child.first_peak_kb)) / 2
    return grown or child.cpu_seconds > _CPU_SECONDS


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
