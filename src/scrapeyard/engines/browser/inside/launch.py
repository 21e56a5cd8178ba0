"""Start the driver and the browser, so that it reaches nothing but the forwarder and looks as it does for people."""

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapeyard.engines.browser.found import downloads
from scrapeyard.engines.browser.wire import TEMPORARY, HostFacts, HostPlan

if TYPE_CHECKING:
    from patchright.async_api import Browser, Playwright

_SECONDS: Final = 60
_ARGUMENTS: Final = (
    "--proxy-bypass-list=<-loopback>",  # loopback, too, is reached through the proxy or not at all
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-back-forward-cache",  # a page that comes from there never says that it is loaded
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-crash-reporter",
    "--no-pings",
    "--mute-audio",
    "--window-size=1366,768",  # a usual window on a usual screen with a taskbar; contexts may name another size
    "--screen-info={1920x1080 workAreaBottom=48}",
    "--disable-blink-features=AutomationControlled",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",  # a mouse
    "--force-effective-connection-type=4G",  # otherwise the proxy on loopback looks like a network without any delay
    "--use-fake-device-for-media-stream",  # a camera and a microphone, as most computers have
    "--js-flags=--max-old-space-size=1024",
)
_DISABLE_FEATURES: Final = "--disable-features="
_NO_FEATURES: Final = (
    "SpareRendererForSitePerProcess",  # a process more for each page, made ahead and thrown away with the context
    "WebUIOmniboxPopup",  # each window loads two pages for the list under its address bar, which nobody sees
    "WebUIOmniboxAimPopup",
    "AimEnabled",  # from here on what the drivers disable
    "AutoDeElevate",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "BlockOriginHeaderModificationOnRedirect",
    "DestroyProfileOnBrowserClose",
    "DialMediaRouteProvider",
    "GlobalMediaControls",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
    "Translate",
)
"""Features that are switched off. Of several such lists Chromium takes the last: this one replaces the driver's."""
_WINDOWED: Final = (
    "--ozone-platform=headless",
    "--ignore-gpu-blocklist",
    "--use-gl=angle",
    "--use-angle=gl-egl",
    "--disable-gpu-compositing",
    "--disable-gpu-rasterization",
)
"""On Linux the browser runs in its usual mode, with windows on a screen that nobody sees: headless mode tells in the
user agents of workers, in client hints and by its scrollbars. Mesa draws WebGL, and nothing else."""
_GRAPHICS: Final = {"force_gl_vendor": "Intel", "force_gl_renderer": "Mesa Intel(R) UHD Graphics 620 (KBL GT2)"}
"""What Mesa calls itself where the machine has no graphics card: a common one."""
_HAS_WINDOWS: Final = sys.platform == "linux"


class Driver:
    """The package that drives the browser. Both have the same API; one hides better that it drives."""

    def __init__(self, name: str) -> None:
        self._api = importlib.import_module(f"{name}.async_api")
        self.name = name
        self.error: type[Exception] = self._api.Error
        self.timeout_error: type[Exception] = self._api.TimeoutError
        self.hears_console = name != "patchright"
        """Whether it tells of consoles and errors of pages, which pages can notice."""
        self.in_page: dict[str, Any] = {"isolated_context": False} if name == "patchright" else {}
        """Arguments that let JavaScript see the page's own variables; one driver hides them by default."""

    async def start(self) -> "Playwright":
        """Start its process."""
        started: Playwright = await self._api.async_playwright().start()
        return started


class LaunchedBrowser:
    """A browser with its driver."""

    def __init__(
        self, driver: Driver, playwright: "Playwright", browser: "Browser", facts: HostFacts, language: str
    ) -> None:
        self.driver = driver
        self.playwright = playwright
        self.browser = browser
        self.facts = facts
        self.language = language
        """Of the whole browser; empty: it has none of its own."""

    @property
    def films(self) -> bool:
        """Whether films are made of its screencast: the driver cannot make them, and the browser has one."""
        return self.facts.browser == "chromium" and bool(self.facts.no_video)

    @property
    def is_headless_chromium(self) -> bool:
        """Whether it says so in its user agent."""
        return self.facts.browser == "chromium" and not _HAS_WINDOWS


class NoBrowser(Exception):
    """There is none, or it does not start. The message says why and what to do."""


async def launch(plan: HostPlan, port: int, no_namespace: str) -> LaunchedBrowser:
    """Start driver and browser. Raises NoBrowser."""
    if no_namespace and plan.name != "chromium":
        words = "only Chromium can be kept from the network by its arguments; use it, or allow user namespaces"
        raise NoBrowser(f"{plan.name} needs a network namespace, and there is none: {no_namespace}. {words}")
    driver = Driver(plan.driver)
    playwright = await driver.start()
    browser, no_sandbox = await _try_sandboxes(driver, playwright, plan, port)
    facts = HostFacts(
        driver=plan.driver,
        browser=plan.name,
        version=browser.version,
        no_namespace=no_namespace,
        no_sandbox=no_sandbox,
        no_video=_find_video_obstacle(),
    )
    return LaunchedBrowser(driver, playwright, browser, facts, plan.language if plan.name == "chromium" else "")


async def _try_sandboxes(driver: Driver, playwright: "Playwright", plan: HostPlan, port: int) -> "tuple[Browser, str]":
    """The browser, and why it has no sandbox."""
    if plan.sandbox == "off" or plan.name != "chromium":
        why = "switched off by browser.sandbox" if plan.name == "chromium" else f"{plan.name} has its own"
        return await _launch(driver, playwright, plan, port, sandbox=False), why
    try:
        return await _launch(driver, playwright, plan, port, sandbox=True), ""
    except NoBrowser as failure:
        if plan.sandbox == "require":
            raise
        return await _launch(driver, playwright, plan, port, sandbox=False), str(failure)


async def _launch(driver: Driver, playwright: "Playwright", plan: HostPlan, port: int, *, sandbox: bool) -> "Browser":
    kind = getattr(playwright, plan.name)
    is_chromium = plan.name == "chromium"
    has_windows = is_chromium and _HAS_WINDOWS
    try:
        browser: Browser = await kind.launch(
            executable_path=plan.executable or None,
            headless=not has_windows,
            args=_arguments(plan, has_windows=has_windows),
            chromium_sandbox=sandbox if is_chromium else None,
            downloads_path=f"{plan.folder}/downloads",
            timeout=_SECONDS * 1000,
            proxy={"server": f"http://127.0.0.1:{port}"},
            env=_environment(plan),
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
    except driver.error as error:
        raise NoBrowser(_explain(str(error), plan)) from None
    return browser


def _arguments(plan: HostPlan, *, has_windows: bool) -> list[str]:
    if plan.name != "chromium":
        return list(plan.arguments)
    languages = dict.fromkeys((plan.language, plan.language.partition("-")[0]))  # as browsers have it: de-DE, de
    return [
        *_ARGUMENTS,
        *(_WINDOWED if has_windows else ()),
        f"--accept-lang={','.join(languages)}",
        *(each for each in plan.arguments if not each.startswith(_DISABLE_FEATURES)),
        _DISABLE_FEATURES + ",".join((*_NO_FEATURES, *_disabled_by_user(plan))),
    ]


def _disabled_by_user(plan: HostPlan) -> list[str]:
    return [each.removeprefix(_DISABLE_FEATURES) for each in plan.arguments if each.startswith(_DISABLE_FEATURES)]


def _environment(plan: HostPlan) -> dict[str, str | float | bool]:
    """The browser needs no more of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    temporary = str(Path(plan.folder, TEMPORARY).resolve())
    graphics = {} if any(Path("/dev/dri").glob("renderD*")) else _GRAPHICS
    mesa = {"EGL_PLATFORM": "surfaceless", "LP_NUM_THREADS": "1", **graphics}
    return {**kept, **mesa, "HOME": plan.folder, "TMPDIR": temporary, "XDG_CONFIG_HOME": plan.folder}


def _find_video_obstacle() -> str:
    """Videos are made by the ffmpeg that the driver downloads."""
    found = any(downloads().glob("ffmpeg*/ffmpeg*"))
    return "" if found else "the driver's ffmpeg is missing; run: patchright install ffmpeg"


def _explain(text: str, plan: HostPlan) -> str:
    if "Executable doesn't exist" in text:
        return f"there is no browser at {plan.executable or plan.name}; install one, or set browser.executable"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = next((line for line in lines if "FATAL" in line or "ERROR" in line or "without --no-sandbox" in line), "")
    return f"the browser does not start: {(telling or lines[0])[:300]}"
