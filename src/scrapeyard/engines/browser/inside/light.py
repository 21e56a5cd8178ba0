"""The light browser: Lightpanda, driven over Chromium's protocol. It runs scripts and has no layout.

It takes its proxy when it starts, so each context has a process of its own: 40 MB, and started in a few hundredths of a
second. It runs only in a network namespace: that nothing of it leaves but by the proxy is for nobody to promise.
"""

import asyncio
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapeyard.engines.browser.inside.launch import Driver, LaunchedBrowser, NoBrowser
from scrapeyard.engines.browser.wire import TEMPORARY, HostFacts, HostPlan

if TYPE_CHECKING:
    from patchright.async_api import Browser, BrowserContext, Playwright

_START_SECONDS: Final = 20.0
_PAUSE: Final = 0.02
_TAG: Final = re.compile(r"[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8})*")
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_ARGUMENTS: Final = (
    "--disable-metrics",
    "--log-level", "fatal",
    "--load-resources", "iframe",
    "--load-resources", "worker",
    "--http-timeout", "60000",
    "--http-max-response-size", str(64 * 1024 * 1024),
    "--v8-max-heap-mb", "1024",
)  # fmt: skip


async def launch_light(plan: HostPlan, no_namespace: str) -> LaunchedBrowser:
    """Start the driver; each context starts a browser. Raises NoBrowser."""
    if no_namespace:
        raise NoBrowser(f"the light browser needs a network namespace of its own: {no_namespace}")
    driver = Driver(plan.driver)
    playwright = await driver.start()
    browsers: Any = LightBrowsers(plan, playwright, driver.error)
    facts = HostFacts(
        driver=plan.driver,
        browser=plan.name,
        version=await browsers.find_version(),
        no_sandbox="it has none; the namespaces hold it",
        no_video="the light browser draws nothing",
        abilities=(),
    )
    return LaunchedBrowser(driver, playwright, browsers, facts, "")


class LightBrowsers:
    """Stands for the browser: what the host uses of Playwright's `Browser`."""

    def __init__(self, plan: HostPlan, playwright: "Playwright", error: type[Exception]) -> None:
        self._plan = plan
        self._playwright = playwright
        self._error = error
        temporary = str(Path(plan.folder, TEMPORARY).resolve())
        self._environment = {"LIGHTPANDA_DISABLE_TELEMETRY": "true", "HOME": plan.folder, "TMPDIR": temporary}

    def on(self, event: str, call: Callable[..., None]) -> None:
        """There is no browser that could end for all contexts."""

    async def find_version(self) -> str:
        """As the program says. Raises NoBrowser."""
        process = await self._start("version", stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        if process.returncode or not output.strip():
            raise NoBrowser(f"{self._plan.executable} does not start: it ended with {process.returncode}")
        return output.decode("ascii", "replace").strip()[:40]

    async def new_context(self, **arguments: Any) -> "BrowserContext":
        """In a browser of its own, which ends with it."""
        port = _free_port()
        process = await self._start("serve", "--host", "127.0.0.1", "--port", str(port), *_own_arguments(arguments))
        try:
            async with asyncio.timeout(_START_SECONDS):
                browser = await self._connect(process, port)
            context = await browser.new_context(extra_http_headers=arguments.get("extra_http_headers"))
            if cookies := arguments.get("storage_state", {}).get("cookies"):
                await context.add_cookies(cookies)
        except BaseException:
            await _end(process)
            raise
        context.on("close", lambda _: _kill(process))
        browser.on("disconnected", lambda _: _kill(process))
        return context

    async def _connect(self, process: asyncio.subprocess.Process, port: int) -> "Browser":
        while process.returncode is None:
            with suppress(self._error):
                return await self._playwright.chromium.connect_over_cdp(f"ws://127.0.0.1:{port}/")
            await asyncio.sleep(_PAUSE)
        raise self._error(f"the light browser has crashed with {process.returncode}")

    async def _start(self, *arguments: str, stdout: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
        plan = self._plan
        try:
            return await asyncio.create_subprocess_exec(
                plan.executable,
                *arguments,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise NoBrowser(f"{plan.executable} does not start: {error}") from None


def _own_arguments(arguments: dict[str, Any]) -> list[str]:
    """Of one context. Its proxy knows whose it is."""
    given = [*_ARGUMENTS, "--http-proxy", arguments["proxy"]["server"]]
    if _TAG.fullmatch(locale := arguments.get("locale", "")):
        given += ["--locale", locale]
    if _ZONE.fullmatch(zone := arguments.get("timezone_id", "")):
        given += ["--timezone", zone]
    return given


def _free_port() -> int:
    """Only our own processes are in this network namespace."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def _end(process: asyncio.subprocess.Process) -> None:
    _kill(process)
    await process.wait()
