"""Before the roles of a process start: what must be loaded, who else may run, and patience with a database."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Literal

import msgspec

from scrapeyard.errors import SettingsInvalid, StoreUnavailable
from scrapeyard.extras import missing
from scrapeyard.settings import Settings
from scrapeyard.settings.broker import BROKERS
from scrapeyard.telemetry.events import get_log
from scrapeyard.wiring.data_folder import lock_data_folder

log = get_log("wiring")
Role = Literal["gateway", "worker", "dispatcher"]
ALL_ROLES: tuple[Role, ...] = ("gateway", "worker", "dispatcher")
LOCAL_ROLES: tuple[Role, ...] = ("worker", "dispatcher")
"""The roles that a job needs in one process that controls it through `Platform.job_desk`."""
_START_PATIENCE = 30.0


_one_at_a_time = threading.Lock()


def build_type_info() -> None:
    """Build msgspec's type information of every Struct that is loaded, after the imports and before the first thread.

    msgspec builds it when a Struct is first used for decoding, and lets other threads see it half built. A thread that
    decodes the same Struct at that moment reads a null pointer, and the process dies with SIGSEGV.

    A Struct that msgspec cannot decode, such as one with a union of two custom types, has none and is passed over.
    """
    with _one_at_a_time:
        waiting = [msgspec.Struct]
        while waiting:
            struct = waiting.pop()
            waiting += type.__subclasses__(struct)
            try:
                msgspec.json.Decoder(struct)
            except (TypeError, NameError):
                continue


def load(roles: tuple[Role, ...], settings: Settings, *, jobs_only: bool) -> None:
    """Import what these roles need beyond this module, so that the type information of all Structs is built before the
    first thread is started. Raises SettingsInvalid if the packages of a broker are not installed."""
    if settings.redis_url.get_secret_value():
        _load_extra("redis", "redis_url", "scrapeyard.wiring.on_redis")
    if url := settings.queue.url.get_secret_value():
        broker = BROKERS[url.partition("://")[0]]
        _load_extra(broker, "queue.url", f"scrapeyard.queues.{broker}.queue")
        if not settings.redis_url.get_secret_value():
            log.warning("wiring.not_shared")
    if "gateway" in roles:
        import_module("scrapeyard.gateway.server")
    if "worker" in roles:
        import_module("scrapeyard.inputs.site_map")
    if "dispatcher" in roles and not jobs_only:
        import_module("scrapeyard.wiring.duties")
    build_type_info()


def _load_extra(extra: str, setting: str, module: str) -> None:
    if words := missing(extra):
        raise SettingsInvalid(f"{setting}: {words}")
    import_module(module)


async def patiently(start: Callable[[], Awaitable[None]]) -> None:
    """Retry the start, because a database that starts at the same time may need a moment."""
    deadline = time.monotonic() + _START_PATIENCE
    while True:
        try:
            await start()
        except StoreUnavailable as error:
            if time.monotonic() > deadline:
                raise
            log.warning("store.not_yet", error=error.message)
            await asyncio.sleep(1)
        else:
            return


def is_alone(settings: Settings) -> bool:
    """Whether this process alone uses its database: the one in the data directory, which `only_one` locks."""
    return not settings.has_broker and not settings.database_url.get_secret_value()


@contextmanager
def only_one(settings: Settings, roles: tuple[Role, ...]) -> Iterator[None]:
    """Refuse a second process: with a queue in memory, one process must have all roles and the data directory alone."""
    if set(roles) not in (set(ALL_ROLES), set(LOCAL_ROLES)):
        raise SettingsInvalid(
            "redis_url: a gateway, worker or dispatcher on its own needs Redis or another broker to meet the others; "
            "set REDIS_URL or queue.url, or use `scrapeyard up` for all of them in one process"
        )
    with lock_data_folder(settings.data_dir.resolve()):
        yield
