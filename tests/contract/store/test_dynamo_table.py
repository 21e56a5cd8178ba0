"""What only a store on DynamoDB has: a table of one form, content in parts, answers that are lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiobotocore.session import get_session
from botocore.exceptions import ClientError
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.cli.doctor.checks import check_store
from scrapeyard.errors import SettingsInvalid, StoreUnavailable, StoreUncertain
from scrapeyard.model import RunStatus
from scrapeyard.model.webhook import DeliveryState, WebhookDelivery
from scrapeyard.settings import load
from scrapeyard.store.dynamo.operations import at_text
from scrapeyard.store.dynamo.store import DynamoStore
from scrapeyard.store.dynamo.table import calls
from scrapeyard.store.dynamo.table.calls import WriteRefused
from scrapeyard.store.dynamo.table.expressions import Expression, Put, Update, absent, not_one_of
from scrapeyard.store.dynamo.table.schema import table_request
from scrapeyard.store.dynamo.table.values import key_of
from scrapeyard.store.ports.runs import KeyedAnswer, RunFilter
from tests.contract.nouns import NOW, a_run, an_ending, begun
from tests.contract.store.test_schedule_store import a_firing, a_schedule
from tests.services.dynamo import new_table_url, table_url
from tests.services.sqs import REGION, SqsServer

OUTAGE_SECONDS = 0.3
"""For a server that is away: it will not answer, however long one waits."""
TEMPLATE = Path(__file__).parents[3] / "deploy" / "aws" / "table.yaml"


@pytest.fixture
async def store(sqs_server: SqsServer) -> AsyncIterator[DynamoStore]:
    """On a new table."""
    store = DynamoStore(new_table_url(sqs_server))
    await store.start()
    yield store
    await store.stop()


class Losing:
    """A client of botocore whose next answer is lost after the request was done."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._client, name)

        async def ask(**given: Any) -> Any:
            answer = await operation(**given)
            if not self.lost:
                self.lost += 1
                raise ConnectionResetError("the answer was lost")
            return answer

        return ask


@pytest.fixture
def losing(store: DynamoStore, monkeypatch: pytest.MonkeyPatch) -> Losing:
    """The store's client from now on."""
    client = Losing(store._calls._client)
    monkeypatch.setattr(store._calls, "_client", client)
    return client


def test_the_template_of_cloudformation_makes_the_same_table() -> None:
    class Loader(yaml.SafeLoader):
        """Reads functions such as !Ref as they stand."""

    Loader.add_multi_constructor("!", lambda loader, _suffix, node: getattr(node, "value", None))
    made = yaml.load(TEMPLATE.read_text(), Loader)["Resources"]["Table"]["Properties"]
    asked = table_request("scrapeyard")
    for name in ("BillingMode", "KeySchema", "GlobalSecondaryIndexes"):
        assert made[name] == asked[name]
    by_name = {one["AttributeName"]: one["AttributeType"] for one in asked["AttributeDefinitions"]}
    assert {one["AttributeName"]: one["AttributeType"] for one in made["AttributeDefinitions"]} == by_name


async def test_a_table_of_another_form_is_refused(sqs_server: SqsServer) -> None:
    where = f"http://127.0.0.1:{sqs_server.port}"
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "testtest"}
    async with get_session().create_client("dynamodb", region_name=REGION, endpoint_url=where, **keys) as client:
        await client.create_table(
            TableName="another-form",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        )
    store = DynamoStore(table_url(sqs_server, "another-form"))
    with pytest.raises(SettingsInvalid, match="another-form is not ours: its key is not pk, sk"):
        await store.start()
    with pytest.raises(SettingsInvalid, match="not ours"):
        await store.table_status()


async def test_the_state_of_a_table_is_told_without_making_it(sqs_server: SqsServer) -> None:
    store = DynamoStore(new_table_url(sqs_server))
    assert await store.table_status() == ""
    await store.start()
    await store.stop()
    assert await store.table_status() == "ACTIVE"


async def test_doctor_tells_how_the_table_stands(sqs_server: SqsServer, own_sqs: SqsServer) -> None:
    url = new_table_url(sqs_server)
    found = await check_store(load(environ={"DATABASE_URL": url}))
    assert (found.state, "a table that the next start creates" in found.detail) == ("ok", True)
    assert "testtest" not in found.detail
    store = DynamoStore(url)
    await store.start()
    await store.stop()
    assert (await check_store(load(environ={"DATABASE_URL": url}))).detail.endswith("table ACTIVE")
    own_sqs.stop()
    away = await check_store(load(environ={"DATABASE_URL": new_table_url(own_sqs)}))
    assert (away.state, "docs/dynamodb.md" in away.remedy) == ("fail", True)


async def test_content_too_large_for_a_row_lies_in_parts_and_goes_with_it(store: DynamoStore) -> None:
    run = begun(replace(a_run(), input=Raw(b'"' + b"i" * 700_000 + b'"')))
    result = Raw(b'"' + b"r" * 500_000 + b'"')
    await store.runs.begin([run])
    assert await store.runs.finish([an_ending(run, result=result)]) == [True]
    found = await store.runs.get(run.id)
    assert found is not None
    assert (bytes(found.input), bytes(found.result or b"")) == (bytes(run.input), bytes(result))
    (listed,) = (await store.runs.page(RunFilter(), None, 10)).runs
    assert (listed.result, bytes(listed.input)) == (None, bytes(run.input))
    assert await store.table.count(f"part/run/{run.id}") == 4
    await store.sweeps.delete_runs([run.id])
    assert await store.table.count(f"part/run/{run.id}") == 0


async def test_a_write_whose_answer_was_lost_is_done_once(store: DynamoStore, losing: Losing) -> None:
    run = begun(a_run())
    losing.lost = 1
    await store.runs.begin([run])
    losing.lost = 0
    assert await store.table.add({"pk": "one", "sk": "row"})
    losing.lost = 0
    assert await store.table.change(("one", "row"), lambda old: {**(old or {}), "n": 1}) is not None
    losing.lost = 0
    await store.table.transact([Update(("one", "count"), add={"n": 1}), Put({"pk": "one", "sk": "other"}, absent())])
    row = await store.table.get(("one", "count"))
    assert row is not None
    assert (losing.lost, row["n"]) == (1, 1)


async def test_a_write_that_stays_without_an_answer_may_be_done(
    store: DynamoStore, losing: Losing, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run()
    monkeypatch.setattr(store._calls, "_patience", 0)  # the first answer that does not come is the last
    with pytest.raises(StoreUncertain):
        await store.runs.add([run])
    assert await store.runs.get(run.id) is not None
    losing.lost = 0
    with pytest.raises(StoreUnavailable) as reading:
        await store.runs.get(run.id)
    assert not isinstance(reading.value, StoreUncertain)


async def test_a_key_of_very_many_runs_is_completed_by_the_next_call(
    store: DynamoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [a_run() for _ in range(120)]
    answer = KeyedAnswer(key="k", body_digest="d", run_ids=tuple(run.id for run in runs), created_at=NOW)

    async def killed(_: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as killing:
        killing.setattr(store.keys._runs, "add", killed)
        with pytest.raises(asyncio.CancelledError):
            await store.keys.remember(answer, runs)
    assert (await store.runs.counts())[RunStatus.QUEUED] == 0
    again = [a_run() for _ in range(120)]
    other = replace(answer, run_ids=tuple(run.id for run in again))
    assert await store.keys.remember(other, again) == answer
    assert await store.runs.unfinished(answer.run_ids) == set(answer.run_ids)
    assert (await store.runs.counts())[RunStatus.QUEUED] == 120
    assert await store.keys.remember(replace(other, body_digest="e"), again) == answer


async def test_a_server_that_is_away_is_told_and_works_again_at_once(own_sqs: SqsServer) -> None:
    store = DynamoStore(new_table_url(own_sqs))
    own_sqs.stop()
    with impatient(store), pytest.raises(StoreUnavailable, match="DATABASE_URL"):
        await store.start()
    own_sqs.start()
    await store.start()
    own_sqs.stop()
    for call in (store.ping(), store.runs.get("run_1"), store.runs.counts()):
        with impatient(store), pytest.raises(StoreUnavailable, match="DATABASE_URL"):
            await call
    await store.stop()


@contextmanager
def impatient(store: DynamoStore) -> Iterator[None]:
    """For a while it gives up soon, since its server is away. What must succeed is never hurried."""
    calls = store._calls
    patience = calls._patience
    calls._patience = OUTAGE_SECONDS
    try:
        yield
    finally:
        calls._patience = patience


async def test_content_of_which_a_part_is_missing_is_told(store: DynamoStore) -> None:
    run = begun(replace(a_run(), input=Raw(b'"' + b"i" * 700_000 + b'"')))
    await store.runs.begin([run])
    (part, _) = await store.table.query(f"part/run/{run.id}")
    await store.table.delete(key_of(part))
    with pytest.raises(RuntimeError, match="missing"):
        await store.runs.get(run.id)


async def test_what_cannot_be_stored_is_told_at_once(store: DynamoStore) -> None:
    """Also in a transaction: whoever takes it for an outage would send it again for ever."""
    await store.table.add({"pk": "one", "sk": "row", "n": "text"})
    with pytest.raises(ClientError, match="ValidationError"):
        await store.table.transact([Update(("one", "row"), add={"n": 1}), Put({"pk": "one", "sk": "other"})])


async def test_conflicts_beside_a_refused_condition_are_told() -> None:
    """What the conditions of the writes in conflict would say is unknown then."""
    for other, conflicts in (("None", False), ("TransactionConflict", True), ("ThrottlingError", True)):
        reasons = [{"Code": "ConditionalCheckFailed", "Item": {"ok": {"BOOL": True}}}, {"Code": other}]
        response = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}
        with pytest.raises(WriteRefused) as refused:
            calls._raise_refused(ClientError(response, "TransactWriteItems"), 1)
        assert (refused.value.items, refused.value.conflicts) == ({0: {"ok": True}}, conflicts)


def test_a_comparison_has_a_hundred_values_at_most() -> None:
    """Amazon refuses more; the emulator does not."""
    to = Expression()
    text = not_one_of("host", [f"{number}.test" for number in range(250)])(to)
    assert [part.count(":") for part in text.split(" AND ")] == [100, 100, 50]
    assert len(to.given()["ExpressionAttributeValues"]) == 250


@pytest.mark.parametrize(
    ("index", "is_ready"),
    [
        ({}, True),
        ({"IndexStatus": "ACTIVE"}, True),
        ({"IndexStatus": "CREATING"}, False),
        ({"Backfilling": True}, False),
    ],
)
def test_a_table_is_ready_when_its_indexes_are_filled(index: dict[str, Any], is_ready: bool) -> None:
    assert calls._is_ready({"TableStatus": "ACTIVE", "GlobalSecondaryIndexes": [{}, index]}) == is_ready
    assert not calls._is_ready({"TableStatus": "CREATING", "GlobalSecondaryIndexes": [{}, index]})


class Lagging:
    """A client of botocore whose indexes do not show these rows yet, or still show them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.hidden: set[str] = set()
        self.shown: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def query(self, **given: Any) -> Any:
        """As a moment ago."""
        answer = await self._client.query(**given)
        if "IndexName" in given:
            answer["Items"] = [item for item in answer["Items"] if item["sk"]["S"] not in self.hidden] + self.shown
        return answer


@pytest.fixture
def lagging(store: DynamoStore, monkeypatch: pytest.MonkeyPatch) -> Lagging:
    """The store's client from now on."""
    client = Lagging(store._calls._client)
    monkeypatch.setattr(store._calls, "_client", client)
    return client


async def test_a_firing_does_not_overtake_one_that_the_index_does_not_show(
    store: DynamoStore, lagging: Lagging
) -> None:
    schedule = a_schedule()
    await store.schedules.add(schedule, 10)
    first, second = a_firing(schedule, NOW + 60), a_firing(schedule, NOW + 120)
    assert await store.schedules.fire(schedule, [first, second], NOW + 180, NOW + 181)
    lagging.hidden = {at_text(first.due_at)}
    assert [firing.due_at for firing in await store.firings.waiting(NOW + 200, 10)] == [first.due_at]


async def test_a_message_that_was_replayed_is_not_forgotten(store: DynamoStore, lagging: Lagging) -> None:
    message = WebhookDelivery(
        id="delivery_1", subject="run_1", event="run.finished", url="http://a.test/", host="a.test", body=b"{}",
        created_at=NOW, next_at=NOW, give_up_at=NOW + 9, state=DeliveryState.WAITING,
    )  # fmt: skip
    await store.alerts.tell([message])
    taken = await store.deliveries.claim("me", NOW, NOW + 5, ())
    assert taken is not None
    assert await store.deliveries.end_attempt(
        replace(taken, state=DeliveryState.DELIVERED, finished_at=NOW, next_at=None)
    )
    answer = await store._calls._client.scan(TableName=store._calls.table)
    lagging.shown = answer["Items"]
    assert await store.deliveries.replay(message.id, NOW + 50, NOW + 99) is not None
    await store.deliveries.forget_before(NOW + 10, 10)
    kept = await store.deliveries.get(message.id)
    assert kept is not None
    assert kept.state is DeliveryState.WAITING
    lagging.shown = []
    again = await store.deliveries.claim("me", NOW + 50, NOW + 55, ())
    assert again is not None
    await store.deliveries.end_attempt(
        replace(again, state=DeliveryState.DELIVERED, finished_at=NOW + 51, next_at=None)
    )
    assert await store.deliveries.forget_before(NOW + 99, 10) == 1
    assert await store.deliveries.get(message.id) is None


async def test_a_repeated_call_leaves_no_content_of_runs_that_were_never_written(store: DynamoStore) -> None:
    first, second = (begun(replace(a_run(), input=Raw(b'"' + b"i" * 700_000 + b'"'))) for _ in range(2))
    answer = KeyedAnswer(key="k", body_digest="d", run_ids=(first.id,), created_at=NOW)
    assert await store.keys.remember(answer, [first]) == answer
    assert await store.keys.remember(replace(answer, run_ids=(second.id,)), [second]) == answer
    assert await store.table.count(f"part/run/{first.id}") == 2
    assert await store.table.count(f"part/run/{second.id}") == 0


async def test_a_schedule_too_large_for_a_row_is_changed_and_deleted_whole(store: DynamoStore) -> None:
    schedule = a_schedule()
    await store.schedules.add(schedule, 10)
    for size in (500_000, 10, 900_000):
        template = Raw(b'{"items": "%s"}' % (b"x" * size))
        changed = await store.schedules.change(schedule, replace(schedule, template=template))
        assert changed is not None
        schedule = changed
        assert bytes(schedule.template) == bytes(template)
        assert await store.table.count("part/schedule") == -(-size // 380_000) * (size > 10)
    assert await store.schedules.delete(schedule.id)
    assert await store.table.count("part/schedule") == 0
