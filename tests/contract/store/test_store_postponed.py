"""Runs that wait for their turn: the same attempt again, later, on SQLite and on PostgreSQL."""

from scrapeyard.model import ExitReason, RunStatus
from scrapeyard.store.ports.store import Store
from tests.contract.nouns import NOW, a_run, an_ending, begun

WAITS = {"exit_reason": ExitReason.FETCH_RATE_LIMITED, "result": None, "retry_after": 30.0, "postponed": True}


async def test_it_is_queued_again_at_the_same_attempt(store: Store) -> None:
    run = a_run()
    await store.runs.add([run])
    await store.runs.begin([begun(run)])
    assert await store.runs.finish([an_ending(begun(run), **WAITS)]) == [True]
    found = await store.runs.get(run.id)
    assert found is not None
    assert (found.status, found.attempt, found.not_before) == (RunStatus.QUEUED, 1, NOW + 32)
    assert [run.id for run in await store.runs.due(NOW + 31, NOW, 10)] == []
    assert [run.id for run in await store.runs.due(NOW + 33, NOW, 10)] == [run.id]
    assert await store.runs.claim(run.id, 1, "worker-2", NOW + 33, NOW + 50)
    again = begun(run, "worker-2")
    assert await store.runs.finish([an_ending(again)]) == [True]
    found = await store.runs.get(run.id)
    assert found is not None
    assert found.status is RunStatus.SUCCEEDED


async def test_one_whose_row_is_not_written_yet(store: Store) -> None:
    run = a_run()
    assert await store.runs.finish([an_ending(begun(run), **WAITS)]) == [True]
    found = await store.runs.get(run.id)
    assert found is not None
    assert (found.status, found.attempt) == (RunStatus.QUEUED, 1)


async def test_a_cancel_ends_it(store: Store) -> None:
    run = a_run()
    await store.runs.add([run])
    await store.runs.begin([begun(run)])
    await store.runs.cancel(run.id, NOW + 1)
    await store.runs.finish([an_ending(begun(run), **WAITS)])
    found = await store.runs.get(run.id)
    assert found is not None
    assert found.status is RunStatus.CANCELLED


async def test_one_that_moved_on_is_left_alone(store: Store) -> None:
    run = a_run()
    await store.runs.begin([begun(run)])
    assert await store.runs.retry(run.id, 1, NOW + 2)
    assert await store.runs.finish([an_ending(begun(run), **WAITS)]) == [False]
