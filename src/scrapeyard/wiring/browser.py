"""The browser engine put together: host, forward proxy, sessions. Imported only where a browser is installed."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from scrapeyard.engines.browser.engine import Browsers, ChooseExit
from scrapeyard.engines.browser.host import start_host
from scrapeyard.engines.browser.hosts import BrowserHosts
from scrapeyard.engines.browser.port import BrowserHost, HostKind
from scrapeyard.engines.browser.proxy.server import BrowserProxy
from scrapeyard.engines.browser.sessions import BrowserSessions
from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.proxies.pools import ProxyPools
from scrapeyard.settings import Settings
from scrapeyard.store.ports.operations import SessionStore

_MEGABYTE = 2**20
_MAX_FOLDER = 70
"""Bytes of a path, so that a socket two levels below has less than 108."""


def make_browsers(
    settings: Settings,
    *,
    sites: Sites,
    pools: ProxyPools,
    meters: Meters | None,
    budgets: Budgets,
    sessions: SessionStore,
    choose_exit: ChooseExit,
) -> Browsers:
    """The engine. Starts nothing."""
    dns = GuardedDns(settings.http, own_port=settings.gateway.port)
    proxy = BrowserProxy(
        settings.http, dns=dns, budgets=budgets, pools=pools, sites=sites, meters=meters, folder=_socket_folder
    )

    async def start(kind: HostKind) -> BrowserHost:
        await proxy.start()
        return await start_host(settings.browser, proxy.path, _private_folder(), kind)

    return Browsers(
        settings.browser,
        hosts=BrowserHosts(settings.browser, start),
        proxy=proxy,
        sessions=BrowserSessions(sessions, settings.http.session_days),
        choose_exit=choose_exit,
        max_bytes=int(settings.http.max_body_mb * _MEGABYTE),
        on_stop=_leave,
    )


def _common() -> Path:
    return Path(tempfile.gettempdir()) / f"scrapeyard-browser-{os.getuid()}"


def _leave() -> None:
    with suppress(OSError):
        _common().rmdir()  # unless another worker uses it


def _socket_folder() -> Path | None:
    """Where the path of a socket is not too long."""
    folder = _private_folder()
    return folder if len(os.fsencode(folder)) <= _MAX_FOLDER else Path("/tmp")  # noqa: S108 - a folder of its own in it


def _private_folder() -> Path:
    """For the profiles of this user's browsers, so that one finds what another left that was killed."""
    folder = _common()
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
        return Path(tempfile.mkdtemp(prefix="scrapeyard-browser-"))
    return folder
