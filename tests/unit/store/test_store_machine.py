"""Random histories of one run, on a real database beside a small model: the machine of states is never broken and one
outcome is recorded."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from scrapeyard.model import ExitReason, RunError, RunStatus, new_id
from scrapeyard.store.ports.store import Store
from scrapeyard.store.sql import SqlStore
from tests.contract.nouns import NOW, a_run, an_ending, begun
from tests.leaks import PATIENCE

Q, R, S, F, C = RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED
ALLOWED = {(None, Q), (None, R), (None, S), (None, F), (Q, R), (Q, S), (Q, F), (Q, C), (R, Q), (R, S), (R, F), (R, C)}
"""Every step the machine knows; a run may be written late, so its first state may be any but cancelled."""


class Model(Struct):
    """What the store should know of the run."""

    status: RunStatus | None = None
    attempt: int = 0
    worker: str = ""
    cancel: bool = False
    outcomes: int = 0
    """Endings that were recorded as final."""

    @property
    def is_open(self) -> bool:
        """There and unfinished."""
        return self.status in (Q, R)

    def takes(self, attempt: int) -> bool:
        """Whether an attempt may be written: the run is not there, or open and not past it."""
        return self.status is None or (self.is_open and self.attempt <= attempt)

    def put(self, status: RunStatus, attempt: int, worker: str) -> None:
        """Move on. A run asked to stop does not go back to the queue."""
        self.status = C if status is Q and self.cancel else status
        self.attempt, self.worker = attempt, worker
        self.outcomes += self.status not in (Q, R)

    def add(self) -> None:
        """Accepted."""
        if self.status is None:
            self.put(Q, 1, "")

    def begin(self, attempt: int, worker: str) -> None:
        """A worker began."""
        if self.takes(attempt):
            self.put(R, attempt, worker)

    def finish(self, attempt: int, end: RunStatus) -> bool:
        """An ending, or Q for another attempt."""
        if not self.takes(attempt):
            return False
        again = end is Q and not self.cancel
        self.put(end, attempt + again, "")
        return True

    def claim(self, attempt: int, worker: str) -> bool:
        """A redelivered run."""
        won = self.status is Q and self.attempt == attempt
        if won:
            self.put(R, attempt, worker)
        return won

    def give_back(self, worker: str) -> None:
        """A worker drains."""
        if self.status is R and self.worker == worker:
            self.put(Q, self.attempt, "")

    def retry(self, attempt: int) -> bool:
        """A lost worker, with attempts left."""
        if self.status is not R or self.attempt != attempt:
            return False
        self.put(Q, attempt + (not self.cancel), "")
        return self.status is Q

    def end(self, attempt: int) -> bool:
        """A lost worker, with none left."""
        ends = self.is_open and self.attempt == attempt
        if ends:
            self.put(F, attempt, "")
        return ends

    def ask(self) -> None:
        """A cancel."""
        if self.is_open:
            self.cancel = True
            if self.status is Q:
                self.put(C, self.attempt, "")


class History:
    """One run in the store and in the model; each method does the same to both and compares what they say."""

    def __init__(self, store: Store) -> None:
        self.store, self.model = store, Model()
        self.run = a_run(id=new_id("run"))

    async def add(self, _attempt: int, _worker: str, _end: RunStatus) -> None:
        self.model.add()
        await self.store.runs.add([self.run])

    async def begin(self, attempt: int, worker: str, _end: RunStatus) -> None:
        self.model.begin(attempt, worker)
        await self.store.runs.begin([begun(self.run, worker, attempt=attempt)])

    async def finish(self, attempt: int, worker: str, end: RunStatus) -> None:
        reason = ExitReason.SUCCEEDED if end is S else ExitReason.SCRIPT_ERROR
        ending = an_ending(
            begun(self.run, worker, attempt=attempt), exit_reason=reason, retry_after=5.0 if end is Q else None
        )
        assert await self.store.runs.finish([ending]) == [self.model.finish(attempt, end)]

    async def claim(self, attempt: int, worker: str, _end: RunStatus) -> None:
        claimed = await self.store.runs.claim(self.run.id, attempt, worker, NOW, NOW + 15)
        assert claimed is self.model.claim(attempt, worker)

    async def release(self, _attempt: int, worker: str, _end: RunStatus) -> None:
        self.model.give_back(worker)
        await self.store.runs.release([self.run.id], worker, NOW)

    async def retry(self, attempt: int, _worker: str, _end: RunStatus) -> None:
        assert await self.store.runs.retry(self.run.id, attempt, NOW) is self.model.retry(attempt)

    async def end(self, attempt: int, _worker: str, _end: RunStatus) -> None:
        ended = await self.store.runs.end(self.run.id, attempt, ExitReason.LOST_WORKER, RunError(message="lost"), NOW)
        assert ended is self.model.end(attempt)

    async def cancel(self, _attempt: int, _worker: str, _end: RunStatus) -> None:
        self.model.ask()
        seen = await self.store.runs.cancel(self.run.id, NOW)
        assert (seen and seen.status) is self.model.status

    async def requeued(self, _attempt: int, _worker: str, _end: RunStatus) -> None:
        await self.store.runs.requeued([self.run.id], NOW + 1)

    async def check(self, before: RunStatus | None) -> None:
        """The store holds what the model holds, by a step the machine knows."""
        now = await self.store.runs.get(self.run.id)
        assert (now and now.status) is self.model.status
        assert before is self.model.status or (before, self.model.status) in ALLOWED
        if now is not None:
            assert (now.attempt, now.cancel_requested) == (self.model.attempt, self.model.cancel)
            assert now.worker_id == self.model.worker or now.status.is_final
            assert (now.exit_reason is not None) is now.status.is_final
            assert self.model.outcomes == now.status.is_final


STEPS: dict[str, Callable[..., Any]] = {
    name: getattr(History, name)
    for name in ("add", "begin", "finish", "claim", "release", "retry", "end", "cancel", "requeued")
}
step = st.tuples(
    st.sampled_from(sorted(STEPS)), st.integers(1, 3), st.sampled_from(["w1", "w2"]), st.sampled_from([Q, S, F])
)


async def _live(store: Store, steps: list[tuple[str, int, str, RunStatus]]) -> None:
    history = History(store)
    for name, attempt, worker, end in steps:
        before = history.model.status
        await STEPS[name](history, attempt, worker, end)
        await history.check(before)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind, for all histories: each has a run of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/machine.db"
    return str(request.getfixturevalue("fresh_postgres_url"))


def test_no_history_breaks_the_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.store.database.postgres.CONNECT_SECONDS", PATIENCE)
    monkeypatch.setattr("scrapeyard.store.database.postgres.ANSWER_SECONDS", PATIENCE)
    with asyncio.Runner() as runner:
        store = SqlStore(url)
        runner.run(store.start())

        @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
        @given(st.lists(step, min_size=1, max_size=12))
        def histories(steps: list[tuple[str, int, str, RunStatus]]) -> None:
            runner.run(_live(store, steps))

        try:
            histories()
        finally:
            runner.run(store.stop())
