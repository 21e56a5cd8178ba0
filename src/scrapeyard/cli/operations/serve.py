"""`up`, `gateway`, `worker`, `dispatcher`: the server's roles. `demo-site`: a shop to practise on."""

import contextlib
import gc
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from scrapeyard.settings import Settings
    from scrapeyard.wiring.platform import Role

_M_ARENA_MAX = -8
_ARENAS = 2
"""Arenas of all threads. glibc gives each thread its own, which keeps what was freed: a tenth of our memory."""
_TRIM_SECONDS = 60.0
"""How often freed memory goes back to the system. glibc keeps what lies between live objects, and we seem to grow."""

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
AllowPublic = Annotated[
    bool, typer.Option("--allow-public", help="Listen on a public --host, though the API asks nobody for a key.")
]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 takes a free one.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where embedded backends keep their files.")]
Scrapers = Annotated[Path | None, typer.Option("--scrapers", help="Folder with scrapers, watched.", file_okay=False)]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Let scrapers fetch private and loopback addresses.")
]


_COLLECT = (700, 10, 10)
"""Python's own thresholds of the collector, for a process that stays."""


def register_serve(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (up, gateway, worker, dispatcher):
        app.command()(command)


def up(
    host: Host = None,
    port: Port = None,
    *,
    data_dir: DataDir = None,
    scrapers: Scrapers = None,
    allow_private: AllowPrivate = False,
    allow_public: AllowPublic = False,
) -> None:
    """Everything in one process, with nothing to install beside it."""
    overrides = _overrides(host, port, data_dir, scrapers, allow_private=allow_private, allow_public=allow_public)
    _serve(None, overrides, next_step=True)


def gateway(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    scrapers: Scrapers = None,
    allow_public: AllowPublic = False,
) -> None:
    """The HTTP API alone. Needs REDIS_URL."""
    _serve(("gateway",), _overrides(host, port, data_dir, scrapers, allow_public=allow_public))


def worker(data_dir: DataDir = None, scrapers: Scrapers = None, allow_private: AllowPrivate = False) -> None:
    """A worker alone. Needs REDIS_URL. SIGTERM lets running work finish, then hands the rest back."""
    _serve(("worker",), _overrides(None, None, data_dir, scrapers, allow_private=allow_private))


def dispatcher(data_dir: DataDir = None) -> None:
    """The dispatcher alone: feeds and finishes jobs, starts schedules, sends webhooks, finds lost work, cleans up.
    Several may run; one leads. Needs REDIS_URL."""
    _serve(("dispatcher",), _overrides(None, None, data_dir, None))


def _overrides(
    host: str | None,
    port: int | None,
    data_dir: Path | None,
    scrapers: Path | None,
    *,
    allow_private: bool = False,
    allow_public: bool = False,
) -> dict[str, Any]:
    return {
        "data_dir": data_dir,
        "gateway": {"host": host, "port": port, "allow_public": allow_public or None},
        "repository": {"scrapers": scrapers},
        "http": {"allow_private": allow_private or None},
    }


def _serve(roles: "tuple[Role, ...] | None", overrides: dict[str, Any], *, next_step: bool = False) -> None:
    """Serve until a signal. `roles` is None for all roles."""
    gc.disable()  # nearly all objects made at startup stay alive, so collecting during it finds nothing
    _malloc("mallopt", _M_ARENA_MAX, _ARENAS)

    from scrapeyard.settings import load, not_used
    from scrapeyard.telemetry.events import configure, get_log

    settings = load(overrides)
    configure(settings.log)
    for name, reason in not_used():
        get_log("settings").warning("settings.not_used", name=name, reason=reason)
    runner()(_until_signal(roles, settings, next_step))


def _malloc(function: str, *arguments: int) -> None:
    """Call glibc's allocator; nothing happens where there is another."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(AttributeError):
            getattr(ctypes.CDLL(None), function)(*arguments)


def runner() -> Any:
    """uvloop where there is one: it halves the cost of a request."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run
    return uvloop.run


async def _until_signal(roles: "tuple[Role, ...] | None", settings: "Settings", next_step: bool) -> None:
    import asyncio

    from scrapeyard.wiring.platform import ALL_ROLES, Platform

    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    platform = Platform(settings, roles or ALL_ROLES)
    await platform.start()
    gc.set_threshold(*_COLLECT)
    gc.enable()
    gc.collect()
    gc.freeze()  # what is loaded now stays alive, so the collector can skip it
    try:
        if next_step and platform.gateway is not None:
            public = platform.gateway.urls if platform.gateway.is_public else ()
            _print_next_step(platform.gateway.url, public, settings.log.lang)
        while not asked.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), _TRIM_SECONDS)
            await asyncio.to_thread(_malloc, "malloc_trim", 0)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: None)
        await platform.stop()


_NEXT_STEP = {
    "en": """
Scrapeyard listens on {url} (its API: {url}/api/openapi.json). Ctrl-C stops it.

Next, in another terminal, a shop to practise on and a first scrape:
  {program} demo-site
  curl -s {url}/api/scrape -H 'content-type: application/json' -d '{{"url": "http://127.0.0.1:8800/"}}'
""",
    "ko": """
Scrapeyard가 {url}에서 요청을 받습니다(API: {url}/api/openapi.json). Ctrl-C로 종료합니다.

다음으로 다른 터미널에서 연습용 상점을 열고 첫 스크레이핑을 해 보세요:
  {program} demo-site
  curl -s {url}/api/scrape -H 'content-type: application/json' -d '{{"url": "http://127.0.0.1:8800/"}}'
""",
}
_PUBLIC = {
    "en": "\nWARNING: anyone who reaches {urls} may use this API.",
    "ko": "\n경고: {urls}에 접근할 수 있는 사람은 누구나 이 API를 사용할 수 있습니다.",
}


def _print_next_step(url: str, public: tuple[str, ...], lang: str) -> None:
    if public:
        typer.echo(_PUBLIC[lang].format(urls=", ".join(public)), err=True)
    program = "scrapeyard" if shutil.which("scrapeyard") else sys.argv[0]
    typer.echo(_NEXT_STEP[lang].format(url=url, program=program), err=True)


def register_demo(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo-site")(demo_site)


def demo_site(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8800,
) -> None:
    """Serve a small shop to scrape, so that a first try needs no network."""
    from scrapeyard.demo import serve
    from scrapeyard.errors import BadRequest

    try:
        serve(host, port, _ready)
    except OSError as error:
        raise BadRequest(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None


def _ready(url: str) -> None:
    typer.echo(f"The shop is open at {url}/ (a product: {url}/product/1). Ctrl-C closes it.", err=True)
