"""What only the queue on SQS does: its addresses, inboxes, and messages that come again."""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec import Raw

from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.sqs.pubsub import STALE_SECONDS
from scrapeyard.queues.sqs.queue import SqsQueue, sqs_options
from tests.contract.queues.test_queue import SOON, running, take
from tests.services.sqs import SqsServer


@pytest.fixture
def queue(sqs_server: SqsServer) -> SqsQueue:
    """Not started. No other test sees what it does."""
    return SqsQueue(sqs_server.url, prefix=f"t{uuid4().hex[:12]}", patience_seconds=SOON)


async def names(client: Any, queue: SqsQueue, kind: str) -> list[str]:
    found = await client.list_queues(QueueNamePrefix=f"{queue._prefix}-{kind}")
    return [url.rpartition("/")[2] for url in found.get("QueueUrls", ())]


def test_a_url_names_amazon_or_a_server() -> None:
    assert sqs_options("sqs://eu-west-1") == {"region_name": "eu-west-1"}
    assert sqs_options("sqs://key:se%2Fcret@eu-west-1") == {
        "region_name": "eu-west-1",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "se/cret",
    }
    assert sqs_options("sqs+https://broker.internal/us-east-1") == {
        "region_name": "us-east-1",
        "endpoint_url": "https://broker.internal",
    }
    assert sqs_options("sqs+http://[::1]:4566/us-east-1")["endpoint_url"] == "http://[::1]:4566"


@pytest.mark.parametrize(
    "url",
    [
        "sqs://",
        "sqs://key:hush@",
        "sqs://hush@eu-west-1",
        "sqs://key:hush@eu-west-1:80",
        "sqs://key:hush@eu-west-1/queue",
        "sqs://key:hush@eu-west-1?hush=1",
        "sqs://key:hush@eu_west",
        "sqs+http://key:hush@host:4566",
        "sqs+http://key:hush@host:port/eu-west-1",
        "sqs+ftp://key:hush@host/eu-west-1",
        "https://key:hush@host/eu-west-1",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"queue\.url") as refused:
        SqsQueue(url)
    assert "hush" not in refused.value.message
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("prefix", ["", "a b", "a-b", "x" * 14])
def test_a_prefix_that_cannot_be_used_is_refused(prefix: str) -> None:
    with pytest.raises(SettingsInvalid, match="prefix"):
        SqsQueue("sqs://eu-west-1", prefix=prefix)


def test_an_authority_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"queue\.ca_file"):
        SqsQueue("sqs://eu-west-1", ca_file=str(tmp_path / "none.pem"))


async def test_every_lane_has_a_name_on_sqs_that_can_be_read_back(queue: SqsQueue) -> None:
    lanes = ["a", "a-b_c", "a.b.c", "l-default", "x" * 64, "0." + "y" * 62]
    async with running(queue):
        await queue.publish([_delivery(lane=lane) for lane in lanes])
        assert await queue.depth() == {(lane, Priority.NORMAL): 1 for lane in lanes}


async def test_a_message_that_was_received_before_is_marked(queue: SqsQueue, sqs_server: SqsServer) -> None:
    async with running(queue), sqs_server.client() as client:
        await queue.publish([_delivery()])
        url = (await client.get_queue_url(QueueName=f"{queue._prefix}-n-default"))["QueueUrl"]
        received = await client.receive_message(QueueUrl=url, VisibilityTimeout=0)  # by one that died
        assert len(received["Messages"]) == 1
        assert [one.redelivered for one in await take(queue, timeout=SOON)] == [True]


async def test_an_inbox_goes_with_its_process_or_after_it(queue: SqsQueue, sqs_server: SqsServer) -> None:
    async with sqs_server.client() as client:
        async with running(queue), queue.listen("signals"), queue.listen("replies:gw_1"):
            (mine,) = await names(client, queue, "inbox-all-")
            dead, unknown = (mine[:-1] + letter for letter in "yz")
            tags = {"seen": str(int(time.time() - STALE_SECONDS - 1))}
            await client.create_queue(QueueName=dead, tags=tags)
            await client.create_queue(QueueName=unknown)
            await queue._ear.clean()
            assert sorted(await names(client, queue, "inbox-all-")) == sorted([mine, unknown])
            assert len(await names(client, queue, "inbox-replies-")) == 1
        assert await names(client, queue, "inbox") == [unknown]


async def test_nothing_is_sent_to_those_who_listen_to_other_families(queue: SqsQueue, sqs_server: SqsServer) -> None:
    other = SqsQueue(sqs_server.url, prefix=queue._prefix, patience_seconds=SOON)
    async with sqs_server.client() as client, running(queue), running(other), queue.listen("signals") as heard:
        (inbox,) = await names(client, queue, "inbox")
        await other.send("events:run_1", b"a line")
        await other.send("replies:gw_1", b"an outcome for a gateway that is gone")
        assert await names(client, queue, "inbox") == [inbox]
        await other.send("signals", b"a signal")
        assert await anext(heard) == b"a signal"


async def test_what_is_no_delivery_lies_with_the_dead_letters(queue: SqsQueue, sqs_server: SqsServer) -> None:
    async with sqs_server.client() as client, running(queue):
        name = f"{queue._prefix}-h-default"
        url = (await client.create_queue(QueueName=name))["QueueUrl"]
        await client.send_message(QueueUrl=url, MessageBody="rubbish")
        assert await take(queue) == []
        dead = (await client.get_queue_url(QueueName=f"{queue._prefix}-dead"))["QueueUrl"]
        (letter,) = (await client.receive_message(QueueUrl=dead, MessageAttributeNames=["All"]))["Messages"]
        assert letter["Body"] == "rubbish"
        assert letter["MessageAttributes"]["queue"]["StringValue"] == name
        assert "malformed" in letter["MessageAttributes"]["error"]["StringValue"]


def _delivery(lane: str = "default") -> Delivery:
    return Delivery(run_id="run_1", scraper="a/b", input=Raw(b"{}"), lane=lane, created_at=1.0, queued_at=2.0)
