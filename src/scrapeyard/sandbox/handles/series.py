"""One child for many inputs of the same job: forked for the first, replaced when it cannot serve another."""

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
from scrapeyard.sandbox.handles.watch import ChildWatch
from scrapeyard.sandbox.port import ChildServices, Verdict, Work

_CPU_SECONDS = 3600.0
"""CPU time for all items of one child together; the limit of each item is enforced from outside."""
_NUMBER_BITS = 52

FindParent = Callable[[Environment | None], Awaitable[ParentHandle]]


class ChildSeries:
    """Made by the sandbox. Belongs to one task."""

    def __init__(self, find_parent: FindParent, watch: ChildWatch, pages: UnreadPages) -> None:
        self._find_parent = find_parent
        self._watch = watch
        self._pages = pages
        self._held: _Held | None = None
        self._refused: LoadFailed | None = None

    async def run(self, work: Work, services: ChildServices) -> Verdict:
        """See the port."""
        asked = time.perf_counter()
        try:
            held, reused = await self._child(work)
        except LoadFailed as failure:  # so that it is not loaded again for each input
            self._refused = failure
            return Verdict(exit_reason=failure.reason, error=failure.error, wall_ms=_since(asked))
        except ParentGone as gone:
            raise SandboxError(f"the process that forks children went away: {gone}") from None
        session = Session(held.child, work, services, self._pages, secrets.randbits(_NUMBER_BITS) + 1)
        self._watch.add(session, work.limits, held.parent)
        try:
            verdict = await session.run()
        finally:
            self._watch.remove(session)
            if not session.reusable or held.is_spent(session, work.limits):
                self._let_go(session.imports)
        verdict = held.parent.attribute_crash(verdict)
        return replace(verdict, child_start_ms=(session.handed_at - asked) * 1000, forked_ahead=reused)

    def close(self) -> None:
        """See the port."""
        self._let_go(())

    async def _child(self, work: Work) -> tuple["_Held", bool]:
        if self._refused is not None:
            raise self._refused
        if self._held is not None and self._held.child.open:
            return self._held, True
        self._let_go(())
        parent = await self._find_parent(work.environment)
        child = await parent.own_child(_CPU_SECONDS + work.limits.cpu_seconds)
        child.allow_frames(frame_room(work.limits))
        self._held = _Held(parent, child)
        return self._held, False

    def _let_go(self, imports: tuple[str, ...]) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.child.close()
            held.parent.release(held.child, imports)


class _Held:
    """The current child."""

    def __init__(self, parent: ParentHandle, child: Child) -> None:
        self.parent = parent
        self.child = child
        self._first_peak: float | None = None

    def is_spent(self, session: Session, limits: Limits) -> bool:
        """Whether too little is left for the next item: it has used half of the memory that remained after the first
        item, or its CPU time."""
        if self._first_peak is None:
            self._first_peak = session.peak_kb
        allowed = limits.memory_mb * 1024 + self.parent.base_bytes / 1024
        grown = session.peak_kb > (self._first_peak + max(allowed, self._first_peak)) / 2
        return grown or self.child.cpu_seconds > _CPU_SECONDS


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
