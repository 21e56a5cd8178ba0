"""Chooses the store, the queue and the blob store by the settings."""

from typing import TYPE_CHECKING

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.blobs.port import Blobs
from scrapeyard.blobs.sealed import SealedBlobs
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.queues.port import Queue
from scrapeyard.results.masking import Masking
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.settings import Settings
from scrapeyard.settings.broker import BROKERS, QueueSettings
from scrapeyard.store.sql import SqlStore
from scrapeyard.telemetry.metrics import Metrics
from scrapeyard.wiring.data_folder import DATABASE, make_data_folder

if TYPE_CHECKING:
    from scrapeyard.gateway.limits.port import ClientLimiter
    from scrapeyard.sealing.port import Masters


def make_store(settings: Settings, *, temporary: bool = False, metrics: Metrics | None = None) -> SqlStore:
    """The database that the settings name; SQLite in the data directory when they name none. Secrets in a `temporary`
    one are not sealed."""
    url = settings.database_url.get_secret_value()
    if not url:
        folder = settings.data_dir.resolve()
        make_data_folder(folder)
        url = f"sqlite:///{folder / DATABASE}"
    if temporary:
        return SqlStore(url, temporary=True, metrics=metrics)
    return SqlStore(url, encrypts=settings.secrets.encrypt_content, masters=make_masters(settings), metrics=metrics)


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
    from scrapeyard.queues.nats.queue import NatsQueue  # noqa: PLC0415 - an extra

    return NatsQueue(url, prefix=queue.prefix, replicas=queue.replicas, ca_file=ca_file)


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
