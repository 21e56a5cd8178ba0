"""Checks of what the settings name: database, queue, blobs, a running server."""

import asyncio
import os

from sqlalchemy.exc import DBAPIError

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.cli.client import Refused, Server, ServerUnreachable
from scrapeyard.cli.doctor.findings import Finding, fail, ok, warn
from scrapeyard.errors import ScrapeyardError
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import Settings, hide_password
from scrapeyard.store.database import Database
from scrapeyard.store.migrate import HEAD, revision

PATIENCE_SECONDS = 5.0


async def check_store(settings: Settings) -> Finding:
    """Whether the database answers and which schema it holds. Changes nothing."""
    url = settings.database_url.get_secret_value()
    path = settings.data_dir.resolve() / "scrapeyard.db"
    if not url and not path.exists():
        return ok("store", f"SQLite at {path}, made at the first start")
    shown = hide_password(url) or f"SQLite at {path}"
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            stands_at = await _revision(url or f"sqlite:///{path}")
    except (ScrapeyardError, DBAPIError, OSError) as error:
        words = getattr(error, "orig", None) or str(error) or f"no answer within {PATIENCE_SECONDS:g} s"
        return fail("store", f"{shown}: {words}", "check DATABASE_URL and the server or file behind it")
    if stands_at == HEAD:
        return ok("store", f"{shown}, schema {stands_at}")
    if stands_at is None or stands_at < HEAD:
        return ok("store", f"{shown}, schema {stands_at or 'none'}; the next start brings it to {HEAD}")
    return fail("store", f"{shown}, schema {stands_at}, ours is {HEAD}", "this database is of a newer version: upgrade")


async def check_queue(settings: Settings) -> Finding:
    """Whether Redis answers, where the settings name one."""
    url = settings.redis_url.get_secret_value()
    if not url:
        return ok("queue", "in memory, for one process; set REDIS_URL for several")
    shown = hide_password(url)
    try:
        queue = RedisQueue(url)
    except ScrapeyardError as error:
        return fail("queue", error.message, "correct REDIS_URL")
    try:
        await queue.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            return ok("queue", f"{shown}, {await queue.ping():.1f} ms")
    except (ScrapeyardError, TimeoutError) as error:
        return fail("queue", f"{shown}: {error or 'no answer'}", "check REDIS_URL and the server behind it")
    finally:
        await queue.stop()


async def check_blobs(settings: Settings) -> Finding:
    """Whether an object can be written and read back."""
    if settings.blobs.url:
        return await _check_bucket(settings)
    folder = settings.data_dir.resolve() / "blobs"
    if not folder.is_dir():
        return ok("blobs", f"{folder}, made at the first start")
    try:
        return ok("blobs", f"{folder}, {await ObjectBlobs.in_folder(folder).ping():.1f} ms")
    except ScrapeyardError as error:
        return fail("blobs", error.message, "check that this user may write there and that the disk has room")


async def _check_bucket(settings: Settings) -> Finding:
    try:
        return ok("blobs", f"{settings.blobs.url}, {await ObjectBlobs.in_bucket(settings.blobs).ping():.1f} ms")
    except ScrapeyardError as error:
        return fail("blobs", error.message, "check the section `blobs` of the settings and the server behind it")


def check_server(url: str, *, asked_for: bool) -> Finding:
    """The health of a server, where one answers. `asked_for`: silence is worth a warning."""
    try:
        health = Server(url).get("/api/health", patience=PATIENCE_SECONDS)
    except ServerUnreachable as error:
        words = f"none answers at {url}"
        return warn("server", words, error.message) if asked_for else ok("server", words)
    except Refused as refusal:
        health = refusal.document
    except ScrapeyardError as error:
        return fail("server", error.message, "correct SCRAPEYARD_URL")
    return _health(url, health)


def _health(url: str, health: object) -> Finding:
    status = health.get("status") if isinstance(health, dict) else None
    dependencies = health.get("dependencies") if isinstance(health, dict) else None
    if not isinstance(dependencies, dict):
        return fail("server", f"{url} answers, but not as Scrapeyard does", "correct SCRAPEYARD_URL")
    away = ", ".join(f"{name} ({each['detail']})" for name, each in dependencies.items() if each["state"] != "ok")
    if status == "ok":
        return ok("server", f"{url} is well")
    return (fail if status == "down" else warn)("server", f"{url} is {status}: {away}", "look at the server's log")


async def _revision(url: str) -> str | None:
    """None when there is no schema yet. A file that is not there is not made."""
    if url.startswith("sqlite:") and not os.path.exists(url.removeprefix("sqlite:///")):  # noqa: ASYNC240, PTH110  once
        return None
    return await revision(Database(url).backend)
