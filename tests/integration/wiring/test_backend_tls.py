"""TLS to Redis, NATS, PostgreSQL and S3: verified by an authority of one's own, and refused by any other."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import SecretStr

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.cli.doctor.checks import check_blobs, check_queue, check_store
from scrapeyard.errors import BlobsUnavailable, QueueUnavailable, SettingsInvalid, StoreUnavailable
from scrapeyard.queues.nats.queue import NatsQueue
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import BlobSettings, Settings
from scrapeyard.store.sql import SqlStore
from tests.services.nats import NatsServer
from tests.services.postgres import PostgresServer
from tests.services.seaweed import ACCESS_KEY, SECRET_KEY, SeaweedServer
from tests.services.tls import Authority, encrypted
from tests.services.valkey import ValkeyServer

pytestmark = pytest.mark.asyncio(loop_scope="module")
Ports = dict[str, int]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ports(
    authority: Authority, valkey_server: ValkeyServer, postgres_server: PostgresServer, seaweed_server: SeaweedServer
) -> AsyncIterator[Ports]:
    """Of the real servers, behind TLS; `other` are those whose certificate is for another name."""
    good, other = authority.context(), authority.context("elsewhere.example")
    s3 = int(seaweed_server.endpoint.rpartition(":")[2])
    async with AsyncExitStack() as stack:
        opened = {
            "redis": encrypted(valkey_server.port, good),
            "redis other": encrypted(valkey_server.port, other),
            "postgres": encrypted(postgres_server.port, good, postgres=True),
            "postgres other": encrypted(postgres_server.port, other, postgres=True),
            "s3": encrypted(s3, good),
            "s3 other": encrypted(s3, other),
        }
        yield {name: await stack.enter_async_context(each) for name, each in opened.items()}


def redis_url(port: int, file: Path | None) -> str:
    return f"rediss://127.0.0.1:{port}/0" + (f"?ssl_ca_certs={file}" if file else "")


async def ping_redis(url: str) -> float:
    queue = RedisQueue(url)
    await queue.start()
    try:
        return await queue.ping()
    finally:
        await queue.stop()


async def test_redis_is_verified(authority: Authority, ports: Ports) -> None:
    assert await ping_redis(redis_url(ports["redis"], authority.file)) >= 0
    wrong = [("redis", authority.wrong_file), ("redis", None), ("redis other", authority.file)]
    # each tries for some seconds
    answers = await asyncio.gather(
        *(ping_redis(redis_url(ports[name], file)) for name, file in wrong), return_exceptions=True
    )
    for error in answers:
        assert isinstance(error, QueueUnavailable)
        assert re.search(r"certificate verify failed.*ssl_ca_certs=", str(error))
    with pytest.raises(SettingsInvalid, match=r"ssl_ca_certs: .*none.pem cannot be read"):
        RedisQueue(redis_url(ports["redis"], authority.file.with_name("none.pem")))


async def ping_nats(url: str, file: Path | None) -> float:
    queue = NatsQueue(url, ca_file=str(file or ""), patience_seconds=3)
    await queue.start()
    try:
        return await queue.ping()
    finally:
        await queue.stop()


async def test_nats_is_verified(authority: Authority, real_servers: None) -> None:
    with (
        NatsServer(certificate=authority.certificate()) as server,
        NatsServer(certificate=authority.certificate("elsewhere.example")) as other,
    ):
        assert await ping_nats(server.url, authority.file) >= 0
        wrong = [(server.url, authority.wrong_file), (server.url, None), (other.url, authority.file)]
        # each tries for some seconds
        answers = await asyncio.gather(*(ping_nats(url, file) for url, file in wrong), return_exceptions=True)
        for error in answers:
            assert isinstance(error, QueueUnavailable)
            assert re.search(r"certificate verify failed.*queue\.ca_file", str(error))


async def test_nats_tells_why_it_failed_while_it_tries_again() -> None:
    hangs = asyncio.Event()

    async def refuse_and_then_hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if hangs.is_set():
                await reader.read()  # until the other side gives up
        finally:
            writer.close()

    async with await asyncio.start_server(refuse_and_then_hang, "127.0.0.1") as server:
        queue = NatsQueue(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", patience_seconds=1)
        await queue.start()
        hangs.set()
        try:
            with pytest.raises(QueueUnavailable, match=r"the queue does not answer: \w"):
                await queue.ping()
        finally:
            await queue.stop()


def database_url(port: int, options: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/postgres?{options}"


async def ping_postgres(url: str) -> float:
    store = SqlStore(url)
    await store.start()
    try:
        return await store.ping()
    finally:
        await store.stop()


async def test_postgresql_is_verified(authority: Authority, ports: Ports) -> None:
    good = f"sslmode=verify-full&sslrootcert={authority.file}"
    assert await ping_postgres(database_url(ports["postgres"], good)) >= 0
    by_authority = f"sslmode=verify-ca&sslrootcert={authority.file}"
    assert await ping_postgres(database_url(ports["postgres other"], by_authority)) >= 0
    wrong = f"sslmode=verify-full&sslrootcert={authority.wrong_file}"
    for name, options in (("postgres", wrong), ("postgres other", good)):
        with pytest.raises(StoreUnavailable, match=r"certificate verify failed.*sslrootcert="):
            await ping_postgres(database_url(ports[name], options))


async def test_postgresql_may_ask_for_a_certificate(
    authority: Authority, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    context = authority.context()
    context.verify_mode = ssl.CERT_REQUIRED
    authority.authority.configure_trust(context)
    mine = authority.authority.issue_cert("client.example")
    mine.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "mine.pem"))
    options = f"sslmode=verify-full&sslrootcert={authority.file}"
    async with encrypted(postgres_server.port, context, postgres=True) as port:
        both = f"&sslcert={tmp_path / 'mine.pem'}&sslkey={tmp_path / 'mine.pem'}"
        assert await ping_postgres(database_url(port, options + both)) >= 0
        with pytest.raises(StoreUnavailable):
            await ping_postgres(database_url(port, options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("sslmode=full", "sslmode: full is not known"),
        ("sslmode=verify-full&sslrootcert=/none.pem", "sslrootcert: /none.pem cannot be read"),
        (f"sslmode=verify-full&sslrootcert={__file__}", "cannot be used"),
        ("sslmode=require&sslrootcert=/none.pem", "need sslmode=verify-full"),
        ("sslrootcert=/none.pem", "need sslmode=verify-full"),
    ],
)
async def test_options_of_postgresql_that_cannot_work_are_refused(options: str, words: str) -> None:
    with pytest.raises(SettingsInvalid, match=words):
        SqlStore(database_url(1, options))


def blob_settings(port: int, file: Path | None, bucket: str = "none") -> BlobSettings:
    return BlobSettings(
        url=f"s3://{bucket}",
        endpoint=f"https://127.0.0.1:{port}",
        region="us-east-1",
        access_key=SecretStr(ACCESS_KEY),
        secret_key=SecretStr(SECRET_KEY),
        ca_file=file,
    )


async def test_s3_is_verified(authority: Authority, ports: Ports, bucket: str) -> None:
    blobs = ObjectBlobs.in_bucket(blob_settings(ports["s3"], authority.file, bucket))
    await blobs.put("a", b"tea", "text/plain")
    assert await blobs.get("a") == b"tea"
    for name, file in (("s3", authority.wrong_file), ("s3", None), ("s3 other", authority.file)):
        with pytest.raises(BlobsUnavailable, match=r"not trusted.*blobs\.ca_file"):
            await ObjectBlobs.in_bucket(blob_settings(ports[name], file, bucket)).put("a", b"", "text/plain")
    for file in (authority.file.with_name("none.pem"), Path(__file__)):
        with pytest.raises(SettingsInvalid, match=r"ca_file: .* has no certificates"):
            ObjectBlobs.in_bucket(blob_settings(ports["s3"], file))


async def test_doctor_tells(authority: Authority, ports: Ports) -> None:
    for file, state in ((authority.file, "ok"), (authority.wrong_file, "fail")):
        settings = Settings(
            redis_url=SecretStr(redis_url(ports["redis"], file)),
            database_url=SecretStr(database_url(ports["postgres"], f"sslmode=verify-full&sslrootcert={file}")),
            blobs=blob_settings(ports["s3"], file),
        )
        found = [await check_queue(settings), await check_store(settings)]
        assert [each.state for each in found] == [state, state], found
        if state == "ok":
            assert all("TLS verified" in each.detail for each in found)
            continue
        found.append(await check_blobs(settings))
        told = [each.detail + each.remedy for each in found]
        for words, name in zip(told, ("ssl_ca_certs", "sslrootcert", "blobs.ca_file"), strict=True):
            assert name in words
