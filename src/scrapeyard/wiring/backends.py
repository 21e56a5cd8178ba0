"""Chooses the store, the queue, the blob store and the sinks by the settings."""

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.blobs.port import Blobs
from scrapeyard.blobs.sealed import SealedBlobs
from scrapeyard.errors import SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.port import Queue
from scrapeyard.results.masking import Masking
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import Settings, SinkTarget
from scrapeyard.settings.broker import BROKERS, QueueSettings
from scrapeyard.store.ports.store import DurableStore
from scrapeyard.store.sql import SqlStore
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.wiring.data_folder import DATABASE, make_data_folder
from scrapeyard.wiring.starting import is_alone

if TYPE_CHECKING:
    from scrapeyard.gateway.limits.port import ClientLimiter
    from scrapeyard.inputs.source import Topics
    from scrapeyard.results.sinks.port import ResultSink
    from scrapeyard.sealing.port import Masters


def make_store(settings: Settings, *, temporary: bool = False, metrics: Metrics | None = None) -> DurableStore:
    """The database that the settings name; SQLite in the data directory when they name none. Secrets in a `temporary`
    one are not sealed."""
    url = settings.database_url.get_secret_value()
    if not url:
        folder = settings.data_dir.resolve()
        make_data_folder(folder)
        url = f"sqlite:///{folder / DATABASE}"
    if temporary:
        return SqlStore(url, temporary=True, metrics=metrics)
    encrypts = settings.secrets.encrypt_content
    return store_at(url, encrypts=encrypts, masters=make_masters(settings), metrics=metrics)


def store_at(
    url: str, *, encrypts: bool = False, masters: "Masters | None" = None, metrics: Metrics | None = None
) -> DurableStore:
    """The store that a URL names. Raises SettingsInvalid."""
    if url.startswith("dynamodb"):
        if words := missing("dynamodb"):
            raise SettingsInvalid(f"database_url: {words}")
        from scrapeyard.store.dynamo.store import DynamoStore  # noqa: PLC0415 - an extra

        return DynamoStore(url, encrypts=encrypts, masters=masters, metrics=metrics)
    return SqlStore(url, encrypts=encrypts, masters=masters, metrics=metrics)


async def end_old_leases(settings: Settings, store: DurableStore) -> None:
    """What a killed process held, where no other can hold anything."""
    if isinstance(store, SqlStore) and is_alone(settings):
        await store.end_leases(time.time())


def make_masters(settings: Settings) -> "Masters":
    """The master key, file or command that the settings name; otherwise a file in the data directory. Raises
    SettingsInvalid."""
    from scrapeyard.sealing import masters  # noqa: PLC0415 - a job without a server needs none

    secrets = settings.secrets
    if secrets.kms_command:
        return masters.CommandMasters(secrets.kms_command)
    if secrets.master_key_file is not None:
        return masters.FileMasters(secrets.master_key_file)
    if text := secrets.master_key.get_secret_value():
        old = (key.get_secret_value() for key in secrets.old_master_keys)
        first, read = masters.read_key(text, "secrets.master_key"), masters.read_key
        return masters.LocalMasters([first, *(read(key, "secrets.old_master_keys") for key in old)])
    return masters.FileMasters(settings.data_dir.resolve() / masters.FILE, create=True)


def make_queue(settings: Settings) -> Queue:
    """On the broker of `queue.url`, else on Redis, else in this process. Raises SettingsInvalid."""
    if settings.queue.url.get_secret_value():
        return _on_broker(settings.queue)
    url = settings.redis_url.get_secret_value()
    if not url:
        return MemoryQueue()
    from scrapeyard.wiring.on_redis import RedisQueue  # noqa: PLC0415 - an extra

    return RedisQueue(url)


def _on_broker(queue: QueueSettings) -> Queue:
    url, ca_file = queue.url.get_secret_value(), str(queue.ca_file or "")
    if BROKERS[url.partition("://")[0]] == "sqs":
        from scrapeyard.queues.sqs.queue import SqsQueue  # noqa: PLC0415 - an extra

        return SqsQueue(url, prefix=queue.prefix, ca_file=ca_file)
    if BROKERS[url.partition("://")[0]] == "kafka":
        from scrapeyard.queues.kafka.queue import KafkaQueue  # noqa: PLC0415 - an extra

        copies = queue.replicas if queue.replicas > 1 else -1
        return KafkaQueue(url, prefix=queue.prefix, partitions=queue.partitions, replicas=copies, ca_file=ca_file)
    from scrapeyard.queues.nats.queue import NatsQueue  # noqa: PLC0415 - an extra

    return NatsQueue(url, prefix=queue.prefix, replicas=queue.replicas, ca_file=ca_file)


def make_topics(settings: Settings) -> "Topics | None":
    """The Kafka topics that jobs may read; None if the settings name no cluster. Raises SettingsInvalid."""
    url = settings.jobs.kafka_url.get_secret_value()
    if not url:
        return None
    if words := missing("kafka"):
        raise SettingsInvalid(f"jobs.kafka_url: {words}")
    from scrapeyard.inputs.kafka import KafkaTopics  # noqa: PLC0415 - an extra
    from scrapeyard.kafka.address import KafkaAddress  # noqa: PLC0415 - as above

    return KafkaTopics(
        KafkaAddress(url, "jobs.kafka_url", str(settings.queue.ca_file or "")), settings.jobs.kafka_topics
    )


def make_limiter(settings: Settings) -> "ClientLimiter":
    """Counts the calls of clients: on Redis when the settings name one, otherwise in this process."""
    url = settings.redis_url.get_secret_value()
    if not url:
        from scrapeyard.gateway.limits.memory import MemoryLimiter  # noqa: PLC0415 - only a gateway needs it

        return MemoryLimiter()
    from scrapeyard.wiring.on_redis import RedisLimiter  # noqa: PLC0415 - an extra

    return RedisLimiter(url)


def make_masking(settings: Settings, sealer: Sealer) -> Masking:
    """Masks personal data; its tokens are the same in every process of a platform. Raises SettingsInvalid."""
    return Masking(settings.masking, sealer.derive("masking"))


def make_blobs(settings: Settings, sealer: Sealer) -> Blobs:
    """The bucket that the settings name; a folder in the data directory when they name none. `sealer` knows its keys,
    unless the store is temporary."""
    if settings.blobs.url:
        stored = ObjectBlobs.in_bucket(settings.blobs)
    else:
        stored = ObjectBlobs.in_folder(settings.data_dir.resolve() / "blobs")
    return SealedBlobs(stored, sealer, encrypts=settings.blobs.encrypt and sealer.has_keys)


def make_sink(settings: Settings, target: SinkTarget) -> "ResultSink":
    """The sink that a target names. Raises SettingsInvalid."""
    if target.extra and (words := missing(target.extra)):
        raise SettingsInvalid(f"sinks.targets: {target.name}: {words}")
    match target.kind:
        case "sql":
            from scrapeyard.results.sinks.sql import SqlSink  # noqa: PLC0415 - most servers have no sinks

            return SqlSink(target)
        case "parquet":
            from scrapeyard.results.sinks.parquet import ParquetSink  # noqa: PLC0415 - as above

            return ParquetSink(target, timeout_seconds=settings.sinks.timeout_seconds)
        case "kafka":
            from scrapeyard.results.sinks.kafka import KafkaSink  # noqa: PLC0415 - an extra

            return KafkaSink(target, timeout_seconds=settings.sinks.timeout_seconds)
        case "webhook":
            return _to_webhook(settings, target)


def _to_webhook(settings: Settings, target: SinkTarget) -> "ResultSink":
    """With its own engine, which also reaches the address that the operator wrote."""
    from scrapeyard.engines.http.engine import WreqEngine  # noqa: PLC0415 - most servers have no sinks
    from scrapeyard.results.sinks.webhook import WebhookSink  # noqa: PLC0415 - as above

    secret = target.secret.get_secret_value() or settings.webhooks.secret.get_secret_value()
    if not secret:
        raise SettingsInvalid(f"sinks.targets: {target.name}: there is no secret to sign with; set `secret`")
    seconds = settings.sinks.timeout_seconds
    host = urlsplit(target.url.get_secret_value()).hostname or ""
    allowed = (*settings.http.allow_hosts, host)
    changes = {"allow_hosts": allowed, "profile": "none", "total_seconds": seconds, "user_agent": ""}
    engine = WreqEngine(settings.http.model_copy(update=changes))
    return WebhookSink(target, engine, secret=secret, timeout_seconds=seconds)
