"""Whatever is asked of the API in any order, and whatever is killed meanwhile: jobs are where a model has them."""

import asyncio
import os
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from scrapeyard.gateway.audit import log as audit_log
from scrapeyard.worker.batches import records
from tests.integration.job_machine_calls import DEATHS, WEIGHED, Calls, Death, action
from tests.integration.job_machine_model import ModelJob
from tests.integration.job_machine_yard import LEASE_SECONDS, Hand, open_ground
from tests.services.job_yard import Clock

ROUNDS = 60


class Machine(Calls):
    """What goes on behind the API, or dies there."""

    @action(10, seconds=st.sampled_from([1.0, 2.0, 6.0]), death=DEATHS)
    def dispatch(self, seconds: float, death: Death) -> None:
        """A round of the dispatcher some time after the last, which it perhaps does not survive."""
        self.time_passes(seconds)
        duties = self.yard.duties
        if death:
            duties.life.doom(3 * death[0], done=death[1])
        led = self.do(duties.round())
        duties.life.spare()
        died = duties.life.over.is_set()
        if died:
            self.done["dispatchers killed"] += 1
            self.do(self.yard.replace_duties())
        for job in self.living:
            self.look(job, job.options_of_dispatch(self.now, led=led or died, sure=led))
            if led or died:
                job.may = job.statuses_after_dispatch(sure=led)
        self.check()

    @action(12, place=st.integers(0, 1), hold=st.sampled_from([False, True, True]), death=DEATHS)
    def work(self, place: int, hold: bool, death: Death) -> None:
        """A worker takes what waits first and runs it, or begins to; one that holds a batch goes on with it."""
        hand = self.yard.hands[place]
        if hand.busy:
            self.go_on(place, death)
            return
        if not self.do(self.yard.depth()):
            self.dispatch(1.0, death=None)
        self.yard.runs.clear()
        if death:
            hand.life.doom(death[0] % 5, done=death[1])
        delivery = self.do(hand.work(hold=hold))
        died = self.spared(place, hand)
        if delivery is not None:
            self.done["batches held" if hand.busy else "batches run"] += 1
            for job in self.living:
                ran = self.ran(job)
                assert not ran or job.id == delivery.job_id
                if job.id == delivery.job_id:
                    self.look(job, job.options_of_work(ran, hand.id, self.now, hold=hold, sure=not died))

    def begin_work(self) -> None:
        for place, hand in enumerate(self.yard.hands):
            if not hand.busy:
                self.work(place, hold=True, death=None)
                return

    def go_on(self, place: int, death: Death = None) -> None:
        """A worker that may have lost its batch meanwhile: then what it did is void."""
        hand = self.yard.hands[place]
        self.yard.runs.clear()
        if death:
            hand.life.doom(death[0] % 5, done=death[1])
        self.do(hand.go_on())
        died = self.spared(place, hand)
        for job in self.living:
            self.look(job, job.options_of_going_on(self.ran(job), hand.id, self.now, sure=not died))
            assert died or not self.holds(hand, job)

    def spared(self, place: int, hand: Hand) -> bool:
        """Whether it died after all; another is there then."""
        hand.life.spare()
        if not hand.life.over.is_set():
            return False
        self.done["workers killed"] += 1
        self.do(self.yard.replace_hand(place))
        return True

    def ran(self, job: ModelJob) -> dict[str, int]:
        """Items of this job that were run in this step, with the number of the run."""
        return {key: nth for (tag, key), nth in self.yard.runs.recent.items() if tag == job.tag}

    @action(1, place=st.integers(0, 1))
    def kill_worker(self, place: int) -> None:
        """What it held stays held until its lease ends."""
        self.do(self.yard.replace_hand(place))

    @action(1)
    def kill_dispatcher(self) -> None:
        self.do(self.yard.replace_duties())

    @action(1)
    def kill_everything(self) -> None:
        self.do(self.yard.replace_all())

    @action(1, place=st.integers(0, 1))
    def beat(self, place: int) -> None:
        """A worker that holds nothing any more hears of it and stops."""
        hand = self.yard.hands[place]
        held = [job for job in self.living if self.holds(hand, job)]
        self.do(hand.beat())
        if hand.busy and not held:
            self.do(hand.rest())
        for job in held:
            job.prolong(hand.id, self.now)

    @action(2, seconds=st.sampled_from([3.0, 6.0, LEASE_SECONDS + 1]))
    def time_passes(self, seconds: float) -> None:
        self.yard.clock.now += seconds

    def teardown(self) -> None:
        try:
            self.end()
        finally:
            self.do(self.yard.stop())

    def end(self) -> None:
        """Unless the story was broken off: what comes after a fault would only hide it."""
        if self.whole:
            self.come_to_rest()
            for job in [job for job in self.living if job.status == "paused"]:
                self.resume(job, death=None)
            self.come_to_rest()
            self.leave_nothing()

    def come_to_rest(self) -> None:
        """With nobody killing anything, every job ends or stays paused."""
        for _ in range(ROUNDS):
            if all(
                job.is_final or (job.status == "paused" and not job.count("queued", "in_progress"))
                for job in self.living
            ):
                break
            self.dispatch(4.0, death=None)
            self.work_all()
        for job in self.living:
            assert job.is_final or job.status == "paused", (job.tag, job.status, job.items)
            self.look(job)
        self.check()

    def work_all(self) -> None:
        for place, hand in enumerate(self.yard.hands):
            if hand.busy:
                self.go_on(place)
        while self.do(self.yard.depth()):
            self.work(0, hold=False, death=None)

    def written(self, job: ModelJob) -> dict[str, Any]:
        """The summary of its results, once the files of a job that was cancelled have followed."""
        for _ in range(ROUNDS):
            if not self.of(job, "GET")[0].json()["files_pending"]:
                break
            self.dispatch(1.0, death=None)
        found: dict[str, Any] = self.of(job, "GET", "/results")[0].json()
        return found

    def leave_nothing(self) -> None:
        """Results hold every item; a job that is deleted takes all it left along."""
        self.list_jobs(limit=2)
        for job in self.living:
            assert job.is_final
            assert job.status == "cancelled" or not job.count("pending", "cancelled")
            self.check_results(job, self.written(job))
            self.delete(job, death=None)
            self.done[f"{job.status} at the end"] += 1
        for job in self.jobs:
            assert self.of(job, "GET")[0].status_code == 404
        self.dispatch(31.0, death=None)  # ends what a gateway began to delete
        left = self.yard.left_by()
        assert not left & {job.id for job in self.jobs}
        assert self.strays or not left


WEIGHED.sort(key=lambda name: name != "work")  # the first example is made of what stands first


def play(folder: Path, monkeypatch: pytest.MonkeyPatch, examples: int, steps: int) -> Counter[str]:
    """Play stories; what was done in them."""
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr(records, "PART", 2)  # so that a worker may die between two records of a small batch
    monkeypatch.setattr(audit_log, "PATIENCE_SECONDS", 0.0)  # this gateway is never started: nobody writes its audit
    with asyncio.Runner() as runner:
        opened = open_ground(folder, clock)
        ground, client = runner.run(opened.__aenter__())
        done: Counter[str] = Counter()
        given = {"ground": ground, "client": client, "runner": runner, "names": count(), "done": done}
        try:
            run_state_machine_as_test(
                type("Machine", (Machine,), given),
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    phases=[Phase.generate],
                    derandomize=not os.environ.get("CHAOS_LONG"),
                    database=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(opened.__aexit__(None, None, None))
    return done


def test_jobs_are_where_a_plain_model_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = play(tmp_path, monkeypatch, examples=8, steps=40)
    assert done["batches run"] > 10
    assert done["gateways killed"] + done["dispatchers killed"] + done["workers killed"] > 10


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")
def test_jobs_are_where_a_plain_model_has_them_for_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(tmp_path, monkeypatch, examples=60, steps=80)
