"""`up`, `gateway`, `worker`, `dispatcher`: the server's roles. `demo-site`: a shop to practise on."""

import contextlib
import gc
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from scrapeyard.settings import Settings
    from scrapeyard.wiring.starting import Role

_M_ARENA_MAX = -8
_ARENAS = 2
"""Arenas of all threads. glibc gives each thread its own, which keeps what was freed: a tenth of our memory."""
_TRIM_SECONDS = 60.0
"""How often freed memory goes back to the system. glibc keeps what lies between live objects, and we seem to grow."""

Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", "--allow-public", help="Allow a public --host without authentication."),
]
Auth = Annotated[
    Literal["auto", "on", "off"] | None,
    typer.Option("--auth", help="Require an API key: on, off, or auto (as soon as one exists)."),
]
Port = Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 for any free one.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder for the files of the embedded backends.", readable=False)
]
Scrapers = Annotated[
    Path | None, typer.Option("--scrapers", help="Folder of scrapers; changes are picked up at once.", file_okay=False)
]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Allow requests to private and loopback addresses.")
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
    insecure: Insecure = False,
    auth: Auth = None,
) -> None:
    """Everything in one process, with nothing to install beside it. Unless --scrapers or the settings name others,
    scrapers come from ./scrapers, which is made and watched."""
    overrides = _overrides(host, port, data_dir, scrapers, allow_private=allow_private, insecure=insecure, auth=auth)
    _serve(None, overrides, is_up=True)


def gateway(
    host: Host = None,
    port: Port = None,
    data_dir: DataDir = None,
    *,
    scrapers: Scrapers = None,
    insecure: Insecure = False,
    auth: Auth = None,
) -> None:
    """The HTTP API alone. Needs REDIS_URL."""
    _serve(("gateway",), _overrides(host, port, data_dir, scrapers, insecure=insecure, auth=auth))


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
    insecure: bool = False,
    auth: str | None = None,
) -> dict[str, Any]:
    from scrapeyard.errors import BadRequest

    if scrapers is not None and not scrapers.is_dir():
        raise BadRequest(f"--scrapers {scrapers}: there is no such folder; make it, or name another")
    return {
        "data_dir": data_dir,
        "gateway": {"host": host, "port": port, "allow_public": insecure or None},
        "auth": {"mode": auth},
        "repository": {"scrapers": scrapers},
        "http": {"allow_private": allow_private or None},
    }


def _serve(roles: "tuple[Role, ...] | None", overrides: dict[str, Any], *, is_up: bool = False) -> None:
    """Serve until a signal. `roles` is None for all roles. With `is_up`, watch the usual folder of scrapers unless the
    settings name one, and print what to do next."""
    gc.disable()  # nearly all objects made at startup stay alive, so collecting during it finds nothing
    _malloc("mallopt", _M_ARENA_MAX, _ARENAS)

    from scrapeyard.settings import load, not_used
    from scrapeyard.telemetry.events import configure, get_log

    settings = load(overrides)
    if is_up and (folder := _usual_scrapers(settings)) is not None:
        settings = load({**overrides, "repository": {"scrapers": folder}})
    configure(settings.log)
    for name, reason in not_used():
        get_log("settings").warning("settings.not_used", name=name, reason=reason)
    runner()(_until_signal(roles, settings, is_up))


def _usual_scrapers(settings: "Settings") -> Path | None:
    """The folder for those who name no other; None if there are others, or if it cannot be made."""
    from scrapeyard.settings.repository import USUAL_SCRAPERS

    others = settings.repository
    if others.scrapers is not None or others.source.type or others.more:
        return None
    with contextlib.suppress(OSError):
        USUAL_SCRAPERS.mkdir(exist_ok=True)
    return USUAL_SCRAPERS if USUAL_SCRAPERS.is_dir() else None


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


async def _until_signal(roles: "tuple[Role, ...] | None", settings: "Settings", is_up: bool) -> None:
    import asyncio

    from scrapeyard.wiring.platform import Platform
    from scrapeyard.wiring.starting import ALL_ROLES

    loop = asyncio.get_running_loop()
    platform = Platform(settings, roles or ALL_ROLES)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, platform.done.set)
    await platform.start()
    gc.set_threshold(*_COLLECT)
    gc.enable()
    gc.collect()
    gc.freeze()  # what is loaded now stays alive, so the collector can skip it
    try:
        if platform.gateway is not None and platform.gateway.first_key:
            typer.echo(_FIRST_KEY[settings.log.lang].format(key=platform.gateway.first_key), err=True)
        if is_up and platform.gateway is not None:
            public = platform.gateway.urls if platform.gateway.is_open else ()
            _print_next_step(platform.gateway.url, public, settings)
        while not platform.done.is_set():
            await asyncio.to_thread(_malloc, "malloc_trim", 0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TRIM_SECONDS):
                    await platform.done.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: None)
        await platform.stop()


_LISTENS = {
    "en": "\nScrapeyard listens on {url} (its API: {url}/docs). Ctrl-C stops it.{watched}",
    "ko": "\nScrapeyard가 {url}에서 요청을 받습니다(API: {url}/docs). Ctrl-C로 종료합니다.{watched}",
}
_WATCHED = {
    "en": "\nScrapers come from {folder}, which is watched.",
    "ko": "\n스크레이퍼는 {folder}에서 읽으며, 변경을 감시합니다.",
}
_PRACTICE = {
    "en": """
Next, in a second terminal, open a shop to practise on:
  {program} demo-site
And in a third, scrape a page of it:
  {program} scrape http://127.0.0.1:8800/{server}
""",
    "ko": """
다음으로 두 번째 터미널에서 연습용 상점을 여세요:
  {program} demo-site
그리고 세 번째 터미널에서 상점의 페이지를 스크레이핑하세요:
  {program} scrape http://127.0.0.1:8800/{server}
""",
}
_PUBLIC_PAGE = {
    "en": """
Next, in a second terminal, scrape a page:
  {program} scrape https://example.com/{server}
""",
    "ko": """
다음으로 두 번째 터미널에서 페이지를 스크레이핑하세요:
  {program} scrape https://example.com/{server}
""",
}
"""Without --allow-private, the practice shop on this machine cannot be reached."""
_FIRST_KEY = {
    "en": """
This start made an admin key. It is shown this once:
  {key}
Keep it: `scrapeyard login URL --key -` asks for it. Make others with `scrapeyard keys create NAME --role ROLE`.
""",
    "ko": """
이번 시작에서 관리자 키를 만들었습니다. 이 키는 지금 한 번만 표시됩니다:
  {key}
보관하세요: `scrapeyard login URL --key -`가 키를 묻습니다.
다른 키는 `scrapeyard keys create NAME --role ROLE`로 만드세요.
""",
}
_PUBLIC = {
    "en": "\nWARNING: anyone who reaches {urls} may use this API.",
    "ko": "\n경고: {urls}에 접근할 수 있는 사람은 누구나 이 API를 사용할 수 있습니다.",
}


def _print_next_step(url: str, public: tuple[str, ...], settings: "Settings") -> None:
    from scrapeyard.cli.common.server_address import DEFAULT_URL

    lang, folder = settings.log.lang, settings.repository.scrapers
    if public:
        typer.echo(_PUBLIC[lang].format(urls=", ".join(public)), err=True)
    program = "scrapeyard" if shutil.which("scrapeyard") else shlex.quote(sys.argv[0])
    server = "" if url == DEFAULT_URL else f" --server {url}"
    watched = _WATCHED[lang].format(folder=folder) if folder else ""
    typer.echo(_LISTENS[lang].format(url=url, watched=watched), err=True)
    words = _PRACTICE if settings.http.allow_private else _PUBLIC_PAGE
    typer.echo(words[lang].format(program=program, server=server), err=True)


def register_demo(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo-site")(demo_site)


def demo_site(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65535)] = 8800,
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
