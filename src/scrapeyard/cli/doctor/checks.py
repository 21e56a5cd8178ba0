"""The checks of `doctor`: the machine, the sandbox, database, queue, blobs, sinks, a running server."""

import asyncio
import importlib.util
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy.exc import DBAPIError

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.cli.common.client import Refused, Server, ServerUnreachable, is_loopback
from scrapeyard.cli.common.output import size
from scrapeyard.cli.runs.local import LocalYard, open_yard
from scrapeyard.errors import ScrapeyardError, refuses_certificate
from scrapeyard.extras import EXTRAS, install, is_installed, missing
from scrapeyard.model import ExitReason
from scrapeyard.queues.port import MAX_MESSAGE_BYTES, Queue
from scrapeyard.sandbox.port import Wall
from scrapeyard.settings import Settings, hide_password
from scrapeyard.settings.broker import BROKERS
from scrapeyard.store.database.database import UNTRUSTED, Database
from scrapeyard.store.database.migrate import HEAD, revision

State = Literal["ok", "warn", "fail"]


class CheckResult(Struct, frozen=True, kw_only=True):
    """One check. `remedy` is empty when there is nothing to do."""

    check: str
    state: State
    detail: str
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return asdict(self)


def ok(check: str, detail: str) -> CheckResult:
    """All is well."""
    return CheckResult(check=check, state="ok", detail=detail)


def warn(check: str, detail: str, remedy: str) -> CheckResult:
    """It works, but less well or less safely than it could."""
    return CheckResult(check=check, state="warn", detail=detail, remedy=remedy)


def fail(check: str, detail: str, remedy: str) -> CheckResult:
    """It does not work."""
    return CheckResult(check=check, state="fail", detail=detail, remedy=remedy)


LEAST_PYTHON = (3, 11)
GOOD_FILES = 4096
LEAST_FILES = 256
GOOD_DISK = 1024**3
LEAST_DISK = 64 * 1024**2


def check_machine() -> Iterator[CheckResult]:
    """Python, extras, kernel, event loop, open files."""
    yield _python(sys.version_info[:3])
    yield _extras()
    yield _kernel(platform.system(), platform.release())
    yield _event_loop()
    yield _open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def check_data_dir(folder: Path) -> CheckResult:
    """Whether it can be written, or made; and how much room there is."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        who = f"{there} cannot be written by this user"
        return fail("data dir", who, "choose another with --data-dir or SCRAPEYARD_DATA_DIR, or change its owner")
    free = shutil.disk_usage(there).free
    made = "" if there == folder else ", made at the first start"
    words = f"{folder}: {size(free)} free{made}"
    if free < LEAST_DISK:
        return fail("data dir", words, "make room: runs can no longer be recorded")
    return ok("data dir", words) if free >= GOOD_DISK else warn("data dir", words, "make room, or lower retention")


def _python(version: tuple[int, ...]) -> CheckResult:
    words = ".".join(map(str, version))
    if version < LEAST_PYTHON:
        return fail("python", words, "install Python 3.11 or newer")
    return ok("python", f"{words} at {sys.executable}")


def _extras() -> CheckResult:
    absent = [name for name in EXTRAS if not is_installed(name)]
    if not absent:
        return ok("extras", "all installed")
    words = ", ".join(f"{name} ({EXTRAS[name].purpose})" for name in absent)
    return ok("extras", f"not installed: {words}; to add them: {install(*absent)}")


def _kernel(system: str, release: str) -> CheckResult:
    if system != "Linux":
        return fail("kernel", f"{system} {release}", "the walls around children need Linux")
    return ok("kernel", f"{system} {release}, {platform.machine()}")


def _event_loop() -> CheckResult:
    if importlib.util.find_spec("uvloop") is None:
        return warn("event loop", "asyncio's own", "install uvloop: it halves the cost of a request")
    return ok("event loop", "uvloop")


def _open_files(soft: int) -> CheckResult:
    if soft == resource.RLIM_INFINITY or soft >= GOOD_FILES:
        return ok("open files", "no limit" if soft == resource.RLIM_INFINITY else f"limit {soft}")
    remedy = f"raise it: ulimit -n {GOOD_FILES}, or LimitNOFILE in the service's unit"
    return (fail if soft < LEAST_FILES else warn)("open files", f"limit {soft}", remedy)


SLOW_WARM_MS = 250.0
_MANIFEST = 'schema = 1\nid = "doctor/child"\nversion = "1.0.0"\n'
_SCRIPT = "def run(ctx, number: int) -> int:\n    return number + 1\n"
_REMEDIES = {
    "namespaces": "allow user namespaces (sysctl user.max_user_namespaces above 0, "
    "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0); in a container, run it with "
    "the seccomp profile deploy/seccomp/scrapeyard.json (docker run --security-opt seccomp=…) and without an AppArmor "
    "profile that forbids mounts (--security-opt apparmor=unconfined)",
    "root": "needs the namespaces wall; in a container also the right to mount, see there",
    "user": "run the worker as root, so that each scraper gets a user id of its own",
    "landlock": "use a kernel of 5.13 or newer with landlock in its list of security modules (lsm=…)",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64",
    "rlimits": "do not run with limits below those of the scrapers",
}


async def check_sandbox(settings: Settings) -> AsyncIterator[CheckResult]:
    """Start a real sandbox and check its walls, then run a tiny script in a child, cold and warm."""
    began = time.perf_counter()
    try:
        async with open_yard(settings) as yard:
            yield ok("sandbox", f"mode {settings.sandbox.mode}, ready in {_since(began):.0f} ms")
            for wall in yard.walls():
                yield _wall(wall)
            yield await _child(yard)
    except ScrapeyardError as error:
        yield fail("sandbox", error.message, "set sandbox.mode to auto to go without, or raise the walls it names")


def _wall(wall: Wall) -> CheckResult:
    name = f"wall {wall.name}"
    if wall.up:
        return ok(name, wall.detail or "up")
    return warn(name, wall.detail or "missing", _REMEDIES.get(wall.name, "see docs/security.md"))


async def _child(yard: LocalYard) -> CheckResult:
    with tempfile.TemporaryDirectory(prefix="scrapeyard-doctor-") as name:
        folder = Path(name)
        (folder / "scraper.toml").write_text(_MANIFEST)
        (folder / "scraper.py").write_text(_SCRIPT)
        scraper = yard.load(folder)
    times = []
    for number in (1, 2):
        began = time.perf_counter()
        _, outcome = await yard.run(scraper, {"number": number})
        times.append(_since(began))
        if outcome.exit_reason is not ExitReason.SUCCEEDED or await yard.result(outcome) != b"%d" % (number + 1):
            words = outcome.error.message if outcome.error else outcome.exit_reason.value
            return fail("child", words, "leave walls out one by one with SCRAPEYARD_SANDBOX__WITHOUT to find which")
    detail = f"a script ran in {times[0]:.0f} ms cold, {times[1]:.1f} ms warm"
    return ok("child", detail) if times[1] < SLOW_WARM_MS else warn("child", detail, "the machine is slow or busy")


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


PATIENCE_SECONDS = 5.0


async def check_browser(settings: Settings) -> CheckResult:
    """Starts the browser once. A machine without one is well: it does not offer the engine."""
    from scrapeyard.engines.browser.found import find_browser, find_light
    from scrapeyard.engines.browser.host import start_host

    if words := find_browser(settings.browser).missing:
        return ok("browser", f"none: {words}")
    with tempfile.TemporaryDirectory(prefix="scrapeyard-doctor-") as folder:
        try:
            host = await start_host(settings.browser, str(Path(folder) / "socket"), Path(folder))
        except ScrapeyardError as error:
            remedy = "docs/browser-operations.md tells which libraries a container needs"
            return fail("browser", error.message, remedy)
        facts = host.facts
        await host.end()
    words = f"{facts.browser} {facts.version} by {facts.driver}"
    weak = [why for why in (facts.no_sandbox, facts.no_namespace) if why]
    words += ", and Lightpanda" if not find_light(settings.browser).missing else ""
    if not weak:
        return ok("browser", f"{words}, in its own sandbox and network namespace")
    return warn(
        "browser", f"{words}; {'; '.join(weak)}", "allow user namespaces to this user; see docs/browser-operations.md"
    )


async def check_store(settings: Settings) -> CheckResult:
    """Whether the database answers and which schema it holds. Changes nothing."""
    url = settings.database_url.get_secret_value()
    path = settings.data_dir.resolve() / "scrapeyard.db"
    if not url and not path.exists():
        return ok("store", f"SQLite at {path}, made at the first start")
    shown = hide_password(url) or f"SQLite at {path}"
    if url.startswith("dynamodb"):
        return await _check_table(url, shown)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            stands_at = await _revision(url or f"sqlite:///{path}")
    except (ScrapeyardError, DBAPIError, OSError) as error:
        words = getattr(error, "orig", None) or str(error) or f"no answer within {PATIENCE_SECONDS:g} s"
        remedy = UNTRUSTED if refuses_certificate(error) else "check DATABASE_URL and the server or file behind it"
        return fail("store", f"{shown}: {words}", remedy)
    shown += _tls_words(url)
    if stands_at == HEAD:
        return ok("store", f"{shown}, schema {stands_at}")
    if stands_at is None or stands_at < HEAD:
        return ok("store", f"{shown}, schema {stands_at or 'none'}; the next start brings it to {HEAD}")
    return fail("store", f"{shown}, schema {stands_at}, ours is {HEAD}", "this database is of a newer version: upgrade")


async def _check_table(url: str, shown: str) -> CheckResult:
    if words := missing("dynamodb"):
        return fail("store", words, f"run: {install('dynamodb')}")
    from scrapeyard.store.dynamo.store import DynamoStore

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            status = await DynamoStore(url).table_status()
    except (ScrapeyardError, TimeoutError) as error:
        words = str(error) or f"no answer within {PATIENCE_SECONDS:g} s"
        return fail("store", f"{shown}: {words}", "check DATABASE_URL, the credentials and docs/dynamodb.md")
    shown += _tls_words(url)
    return ok("store", f"{shown}, table {status}" if status else f"{shown}, a table that the next start creates")


async def check_queue(settings: Settings) -> CheckResult:
    """Whether the broker answers, where the settings name one."""
    name, url = "queue.url", settings.queue.url.get_secret_value()
    if not url:
        name, url = "REDIS_URL", settings.redis_url.get_secret_value()
    if not url:
        return ok("queue", "in memory, for one process; set REDIS_URL or queue.url for several")
    extra = BROKERS.get(url.partition("://")[0], "redis")
    if words := missing(extra):
        return fail("queue", words, f"run: {install(extra)}")
    from scrapeyard.wiring.backends import make_queue

    shown = hide_password(url)
    try:
        queue = make_queue(settings)
    except ScrapeyardError as error:
        return fail("queue", error.message, f"correct {name}")
    try:
        await queue.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            words = f"{shown}{_tls_words(url)}, {await queue.ping():.1f} ms{_limit_words(queue)}"
        if settings.redis_url.get_secret_value():
            return ok("queue", words)
        return warn("queue", f"{words}; {_NOT_SHARED}", "set REDIS_URL too; see docs/brokers.md")
    except (ScrapeyardError, TimeoutError) as error:
        return fail("queue", f"{shown}: {error or 'no answer'}", f"check {name} and the server behind it")
    finally:
        await queue.stop()


_NOT_SHARED = (
    "without Redis each process keeps its own rates of sites, budgets of jobs, limits of clients and cached pages"
)


def _limit_words(queue: Queue) -> str:
    largest = queue.capabilities.max_message_bytes
    return "" if largest == MAX_MESSAGE_BYTES else f", messages up to {largest // 1024} KiB"


def _tls_words(url: str) -> str:
    """How safe the connection to a server is; empty for files and sockets of this machine."""
    place = urlsplit(url)
    options = dict(parse_qsl(place.query))
    if place.scheme == "rediss":
        return ", TLS not verified" if options.get("ssl_cert_reqs") == "none" else ", TLS verified"
    if place.scheme.startswith("postgres") and options.get("sslmode", "").startswith("verify-"):
        return ", TLS verified"
    if place.scheme in ("tls", "sqs", "sqs+https", "kafka+ssl", "dynamodb", "dynamodb+https"):
        return ", TLS verified"
    if place.scheme in ("sqlite", "unix", "") or is_loopback(place.hostname or ""):
        return ""
    is_postgres = place.scheme.startswith("postgres") and options.get("sslmode") != "disable"
    return ", TLS not verified (docs/security.md)" if is_postgres else ", no TLS (docs/security.md)"


async def check_blobs(settings: Settings) -> CheckResult:
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


async def check_sinks(settings: Settings) -> AsyncIterator[CheckResult]:
    """Whether each sink would take results. A table that is missing is created; a receiver gets a signed ping."""
    from scrapeyard.wiring.backends import make_sink

    for target in settings.sinks.targets:
        check = f"sink {target.name}"
        try:
            sink = make_sink(settings, target)
            await sink.start()
            try:
                async with asyncio.timeout(settings.sinks.timeout_seconds):
                    words = await sink.check()
                yield ok(check, f"{words}, {'exactly' if sink.repeats == 'once' else 'at least'} once")
            finally:
                await sink.stop()
        except TimeoutError:
            words = f"no answer within {settings.sinks.timeout_seconds:g} s"
            yield fail(check, words, "check its address in sinks.targets, and the server behind it")
        except ScrapeyardError as error:
            yield fail(check, error.message, "check its table in sinks.targets: address, keys and permissions")


async def _check_bucket(settings: Settings) -> CheckResult:
    try:
        return ok("blobs", f"{settings.blobs.url}, {await ObjectBlobs.in_bucket(settings.blobs).ping():.1f} ms")
    except ScrapeyardError as error:
        return fail("blobs", error.message, "check the section `blobs` of the settings and the server behind it")


_OTHER_SERVER = "name another with `scrapeyard login URL` or SCRAPEYARD_SERVER"


def check_server(url: str, *, asked_for: bool) -> CheckResult:
    """The health of a server, if one answers. With `asked_for`, warns if none does."""
    try:
        health = Server(url).get("/api/health", patience=PATIENCE_SECONDS)
    except ServerUnreachable as error:
        words = f"none answers at {url}"
        return warn("server", words, error.message) if asked_for else ok("server", words)
    except Refused as refusal:
        health = refusal.document
    except ScrapeyardError as error:
        return fail("server", error.message, _OTHER_SERVER)
    return _health(url, health)


def _health(url: str, health: object) -> CheckResult:
    status = health.get("status") if isinstance(health, dict) else None
    dependencies = health.get("dependencies") if isinstance(health, dict) else None
    if not isinstance(dependencies, dict):
        return fail(
            "server",
            f"{url} answers, but not as Scrapeyard does",
            _OTHER_SERVER,
        )
    away = ", ".join(f"{name} ({each['detail']})" for name, each in dependencies.items() if each["state"] != "ok")
    if status == "ok":
        return ok("server", f"{url} is well")
    return (fail if status == "down" else warn)("server", f"{url} is {status}: {away}", "look at the server's log")


async def _revision(url: str) -> str | None:
    """The schema revision; None if there is no schema yet. Does not create a missing database file."""
    if url.startswith("sqlite:") and not os.path.exists(url.removeprefix("sqlite:///")):  # noqa: ASYNC240, PTH110  once
        return None
    return await revision(Database(url).backend)
