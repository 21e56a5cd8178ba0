"""Anything may be done to a job in any order, twice, or by a worker that lost it: the store and a plain model agree."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from scrapeyard.model.job import Batch, BreakerPolicy, ItemOutcome, ItemStatus, Job, JobPolicy, JobStatus
from scrapeyard.store.ports.jobs import ItemFilter, JobFilter
from scrapeyard.store.ports.store import Store
from scrapeyard.wiring.backends import store_at
from tests.contract.job_model import MAX_ATTEMPTS, ModelJob, items_of
from tests.contract.job_nouns import a_batch, a_job, a_retry, a_success, an_error, new_items
from tests.contract.nouns import NOW

WORKERS = st.sampled_from(["worker-1", "worker-2"])
RARELY = st.sampled_from([False] * 5 + [True])
"""What spoils a step, or ends much at once, is rare enough that long stories come about."""
KINDS = st.sampled_from(["success", "error", "retry", "later", "postponed", "strange"])
LEASE = 10.0


ACTIONS: list[tuple[str, dict[str, st.SearchStrategy[Any]]]] = []
"""Each as often as its weight. One rule draws from them, as rules of their own would be switched off by turns, and most
stories need all of them."""


def action(weight: int, **given: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    def register(method: Any) -> Any:
        ACTIONS.extend([(method.__name__, given)] * weight)
        return method

    return register


class Machine(RuleBasedStateMachine):
    """One job of a store that other examples share."""

    store: Store
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.model = ModelJob()
        self.job = a_job(policy=JobPolicy(max_attempts=MAX_ATTEMPTS, breaker=BreakerPolicy(failures=2)))
        self.now = NOW
        self.block = 0
        self.seen: list[Batch] = []
        self.cancelled: list[tuple[int, Job]] = []
        assert self.do(self.store.jobs.create(self.job))

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        held = any(batch.worker for batch in self.model.batches.values())
        name, given = data.draw(st.sampled_from(ACTIONS if held else [one for one in ACTIONS if one[0] != "record"]))
        getattr(self, name)(data, **{key: data.draw(strategy) for key, strategy in given.items()})

    def a_batch_of(self, data: st.DataObject, *, taken: bool) -> Batch:
        """One that is out, taken or not; rarely any that ever was."""
        out = [batch for batch in self.seen if batch.id in self.model.batches]
        fit = [batch for batch in out if bool(self.model.batches[batch.id].worker) is taken]
        return data.draw(st.sampled_from(self.seen if data.draw(RARELY) or not fit else fit))

    def a_worker_of(self, data: st.DataObject, batch: Batch) -> str:
        """Its holder; rarely anybody."""
        there = self.model.batches.get(batch.id)
        return data.draw(WORKERS) if there is None or not there.worker or data.draw(RARELY) else there.worker

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    @action(4, count=st.integers(0, 5), first=st.integers(0, 40), twice=st.booleans())
    def add(self, data: st.DataObject, count: int, first: int, twice: bool) -> None:
        items = new_items(count, first) + new_items(1, first)
        added = self.model.add([item.key for item in items])
        for _ in range(1 + twice):
            assert self.do(self.store.items.add(self.job.id, items, self.block, self.now)) == added
        self.block += added is not None

    @action(4, left=st.integers(1, 4), twice=st.booleans(), worker=st.none() | WORKERS | WORKERS)
    def cut(self, data: st.DataObject, left: int, twice: bool, worker: str | None) -> None:
        wanted = a_batch(self.job, left)
        expected = self.model.cut(wanted.id, left, self.now)
        for _ in range(1 + twice):
            batch = self.do(self.store.batches.cut(wanted, self.now))
            assert (batch and items_of(batch)) == expected
            assert batch is None or batch.lost_before == self.model.batches[wanted.id].lost_before
        if batch:
            assert batch.left == len(expected or ())
            self.seen.append(batch)
        if batch and worker:
            self.taken(batch, worker)

    @action(3, worker=WORKERS)
    def take(self, data: st.DataObject, worker: str) -> None:
        if not self.seen:
            return
        self.taken(self.a_batch_of(data, taken=False), worker)

    def taken(self, batch: Batch, worker: str) -> None:
        there = self.model.batches.get(batch.id)
        taken = self.do(self.store.batches.take(batch.id, worker, self.now, self.now + LEASE))
        if there is None or there.worker:
            assert taken is None
        elif self.model.kill or self.model.status is JobStatus.PAUSED:
            assert taken is None
            self.model.put_back(batch.id, self.now)
        else:
            there.take(worker, self.now + LEASE)
            assert [(item.seq, item.attempt) for item in taken[2]] == [(seq, there.items[seq]) for seq in there.order]
            assert taken[0].begun == there.begun
            assert [item.key for item in taken[2]] == [self.model.keys[item.seq] for item in taken[2]]
            assert taken[1].counts == self.model.counts()

    @action(8, wrong_part=RARELY, twice=st.booleans())
    def record(self, data: st.DataObject, wrong_part: bool, twice: bool) -> None:
        if not self.seen:
            return
        batch = self.a_batch_of(data, taken=True)
        worker = self.a_worker_of(data, batch)
        there = self.model.batches.get(batch.id)
        part = (there.part if there else 0) + (data.draw(st.sampled_from([-1, 1])) if wrong_part else 0)
        seqs = data.draw(st.lists(st.sampled_from(sorted(items_of(batch))), max_size=3))
        outcomes = [self.an_outcome(data.draw(KINDS), seq, items_of(batch)[seq]) for seq in seqs]
        mine = there is not None and there.worker == worker and there.part == part
        begun = data.draw(st.none() | st.integers(there.begun, len(there.order))) if there else 0
        left = self.model.record(batch.id, outcomes, begun) if mine else None
        told = self.do(self.store.batches.record(batch.id, worker, part, outcomes, self.now, begun=begun))
        assert (told and told.left) == left
        assert told is None or told.counts == self.model.counts()
        assert not twice or self.do(self.store.batches.record(batch.id, worker, part, outcomes, self.now)) is None

    def an_outcome(self, kind: str, seq: int, attempt: int) -> ItemOutcome:
        if kind == "success":
            return a_success(seq, attempt=attempt, http_status=200)
        if kind == "error":
            return an_error(seq, attempt=attempt, http_status=(None, 404, 503)[seq % 3])
        if kind == "strange":
            return a_success(seq + 1000, attempt=attempt)
        at = self.now + (5.0 if kind == "later" else 0.0)
        return a_retry(seq, attempt=attempt, not_before=at, postponed=kind == "postponed", http_status=503)

    @action(1, twice=st.booleans())
    def give_back(self, data: st.DataObject, twice: bool) -> None:
        if not self.seen:
            return
        batch = self.a_batch_of(data, taken=True)
        worker = self.a_worker_of(data, batch)
        there = self.model.batches.get(batch.id)
        for _ in range(1 + twice):
            self.do(self.store.batches.give_back(batch.id, worker, self.now))
        if there is not None and there.worker == worker:
            self.model.put_back(batch.id, self.now)

    @action(1, worker=WORKERS)
    def renew(self, data: st.DataObject, worker: str) -> None:
        if not self.seen:
            return
        ids = [batch.id for batch in self.seen]
        stop = self.do(self.store.batches.renew(worker, ids, self.now + LEASE))
        mine = {name: one for name, one in self.model.batches.items() if one.worker == worker}
        for one in mine.values():
            one.lease = self.now + LEASE
        assert set(stop) == {name for name in ids if name not in mine or self.model.kill}

    @action(2, seconds=st.sampled_from([1.0, 6.0, 11.0]))
    def time_passes(self, data: st.DataObject, seconds: float) -> None:
        self.now += seconds

    @action(2)
    def expire(self, data: st.DataObject) -> None:
        expired = self.do(self.store.batches.expire(self.now, 100))
        mine = [(waiting, ended) for job_id, waiting, ended in expired if job_id == self.job.id]
        assert sorted(mine) == sorted(self.model.expire(self.now))

    @action(1, fails=RARELY)
    def end_reading(self, data: st.DataObject, fails: bool) -> None:
        failed = "the list is not CSV" if fails else ""
        job = self.do(self.store.jobs.end_reading(self.job.id, 0, failed, self.now))
        going = (JobStatus.CREATING, JobStatus.RUNNING, JobStatus.PAUSED)
        if failed and self.model.reading and self.model.status in going:
            self.model.status, self.model.kill = JobStatus.FAILED, True
        elif self.model.status is JobStatus.CREATING:
            self.model.status = JobStatus.RUNNING
        self.model.reading = False
        assert job.status is self.model.status

    @action(1, paused=RARELY)
    def pause(self, data: st.DataObject, paused: bool) -> None:
        self.do(self.store.jobs.set_paused(self.job.id, paused, "a person", self.now))
        if self.model.status in (JobStatus.RUNNING, JobStatus.PAUSED) or (
            paused and self.model.status is JobStatus.CREATING
        ):
            self.model.status = JobStatus.PAUSED if paused else JobStatus.RUNNING

    @action(1, kill=st.booleans(), sure=RARELY)
    def cancel(self, data: st.DataObject, kill: bool, sure: bool) -> None:
        if sure:
            self.do(self.store.jobs.cancel(self.job.id, kill, self.now))
            self.model.cancel(kill, self.now)
            self.now += 0.001

    @action(2, wanted=st.sets(st.sampled_from([ItemStatus.SUCCESS, ItemStatus.ERROR]), min_size=1))
    def redrive(self, data: st.DataObject, wanted: set[ItemStatus]) -> None:
        where = ItemFilter() if wanted == {ItemStatus.ERROR} else ItemFilter(statuses=tuple(wanted))
        redriven = self.do(self.store.items.redrive(self.job.id, where, None, self.now))
        assert redriven == self.model.redrive(wanted, self.now)

    @action(
        2,
        step=st.sampled_from(
            [
                (JobStatus.RUNNING, JobStatus.FINISHING),
                (JobStatus.FINISHING, JobStatus.COMPLETED),
                (JobStatus.CANCELLING, JobStatus.CANCELLED),
            ]
        ),
    )
    def move(self, data: st.DataObject, step: tuple[JobStatus, JobStatus]) -> None:
        settled = [job.id for job in self.do(self.store.jobs.settled(1000))]
        moves = self.model.move(*step)
        if moves and step[0] is not JobStatus.FINISHING:
            assert self.job.id in settled
        assert self.do(self.store.jobs.move(self.job.id, *step, self.now)) == moves
        self.now += 0.001

    @action(2)
    def write_files(self, data: st.DataObject) -> None:
        """Of the job as it was cancelled now, or at any time before."""
        if self.cancelled:
            ended, job = data.draw(st.sampled_from(self.cancelled))
            assert self.do(self.store.jobs.files_written(job)) == self.model.written(ended)

    @invariant()
    def counts_add_up(self) -> None:
        job = self.do(self.store.jobs.get(self.job.id))
        assert (job.status, job.files_pending) == (self.model.status, self.model.files_pending)
        if job.files_pending:
            self.cancelled.append((self.model.ended, job))
        wait_for_files = self.do(self.store.jobs.page(JobFilter(files_pending=True), None, 100)).jobs
        assert (self.job.id in [one.id for one in wait_for_files]) == job.files_pending
        assert job.counts == self.do(self.store.items.recount(self.job.id)) == self.model.counts()
        assert job.http_statuses == Counter(self.model.answers.values())
        runs = self.model.status in (JobStatus.CREATING, JobStatus.RUNNING)
        due = self.model.fresh or any(at <= self.now for _, at in self.model.waiting.values())
        runnable = [job.id for job in self.do(self.store.jobs.runnable(self.now))]
        assert (self.job.id in runnable) == bool(runs and due)

    @invariant()
    def every_item_is_somewhere_once(self) -> None:
        items = self.do(self.store.items.page(self.job.id, ItemFilter(), None, 1000)).items
        assert [item.key for item in items] == self.model.keys
        assert [item.status for item in items] == self.model.statuses()
        assert {item.seq: item.http_status for item in items if item.http_status} == self.model.answers

    @action(1, wanted=st.sets(st.sampled_from(list(ItemStatus)), min_size=1))
    def look(self, data: st.DataObject, wanted: set[ItemStatus]) -> None:
        items = self.do(self.store.items.page(self.job.id, ItemFilter(statuses=tuple(wanted)), None, 1000)).items
        statuses = enumerate(self.model.statuses())
        assert [(item.seq, item.status) for item in items] == [one for one in statuses if one[1] in wanted]

    def teardown(self) -> None:
        self.now += 1000.0
        self.do(self.store.jobs.cancel(self.job.id, True, self.now))
        self.do(self.store.batches.expire(self.now, 1000))
        self.do(self.store.jobs.move(self.job.id, JobStatus.CANCELLING, JobStatus.CANCELLED, self.now))
        self.do(self.store.jobs.move(self.job.id, JobStatus.FINISHING, JobStatus.COMPLETED, self.now))
        assert self.do(self.store.jobs.delete(self.job.id))
        assert self.do(self.store.jobs.get(self.job.id)) is None


def test_the_store_and_a_plain_model_agree(migrated_url: str) -> None:
    with asyncio.Runner() as runner:
        store = store_at(migrated_url)
        runner.run(store.start())
        machine = type("Machine", (Machine,), {"store": store, "runner": runner})
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=3 if "dynamodb" in migrated_url else 5,
                    stateful_step_count=50,
                    deadline=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(store.stop())
