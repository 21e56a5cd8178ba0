"""Whether any job is open is asked once for all tasks that look after jobs."""

import asyncio
from typing import Any, cast

import pytest

from scrapeyard.dispatch.feeding.open_jobs import OpenJobs
from scrapeyard.errors import StoreUnavailable
from scrapeyard.store.ports.jobs import JobStore


class Asked:
    """Counts how often it is asked, and answers what it is told."""

    def __init__(self, *answers: bool | Exception) -> None:
        self._answers = iter(answers)
        self.times = 0

    async def any_open(self) -> bool:
        self.times += 1
        await asyncio.sleep(0)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def open_jobs(asked: Any) -> OpenJobs:
    return OpenJobs(cast("JobStore", asked))


async def test_many_tasks_share_one_answer() -> None:
    asked = Asked(False)
    jobs = open_jobs(asked)
    assert await asyncio.gather(*(jobs.any() for _ in range(7))) == [False] * 7
    assert asked.times == 1


async def test_after_a_hint_the_store_is_asked_again() -> None:
    jobs = open_jobs(Asked(False, True))
    assert not await jobs.any()
    jobs.look_again()
    assert await jobs.any()


async def test_a_failure_is_not_remembered() -> None:
    jobs = open_jobs(Asked(StoreUnavailable("away"), True))
    with pytest.raises(StoreUnavailable):
        await jobs.any()
    assert await jobs.any()
