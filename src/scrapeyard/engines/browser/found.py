"""Which browser this machine has. Looks at files only: starts and imports nothing."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from scrapeyard.settings import BrowserSettings

PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "firefox": (),
    "webkit": (),
}
"""Names on PATH. Firefox and WebKit need the driver's own builds."""


class FoundBrowser(Struct, frozen=True, kw_only=True):
    """What there is."""

    executable: str = ""
    """Empty with an empty `missing`: the driver's own download."""
    missing: str = ""
    """What is missing, with the command that brings it; empty: nothing is."""


def find_browser(settings: BrowserSettings) -> FoundBrowser:
    """The browser that the settings ask for."""
    if not settings.enabled:
        return FoundBrowser(missing="browsers are off; set browser.enabled")
    if find_spec(settings.driver) is None:
        extra = "scrapeyard[browser]" if settings.driver == "patchright" else "playwright"
        return FoundBrowser(missing=f"the driver {settings.driver} is not installed; run: pip install '{extra}'")
    if settings.name != "chromium" and settings.driver != "playwright":
        return FoundBrowser(missing=f'{settings.driver} drives no {settings.name}; set browser.driver = "playwright"')
    if settings.executable:
        found = shutil.which(settings.executable)
        words = f"browser.executable: there is no program {settings.executable}"
        return FoundBrowser(executable=found) if found else FoundBrowser(missing=words)
    for name in PROGRAMS[settings.name]:
        if path := shutil.which(name):
            return FoundBrowser(executable=path)
    if any(downloads().glob(f"{settings.name}*-*")):
        return FoundBrowser()
    return FoundBrowser(missing=f"no {settings.name} is installed; run: scrapeyard browser install")


def find_light(settings: BrowserSettings) -> FoundBrowser:
    """The light browser: the program of its package, or one on PATH."""
    if not settings.enabled:
        return FoundBrowser(missing="browsers are off; set browser.enabled")
    if find_spec("playwright") is None:
        return FoundBrowser(missing="the driver playwright is not installed; run: pip install 'scrapeyard[light]'")
    if found := _packed_light() if not settings.light_executable else shutil.which(settings.light_executable):
        return FoundBrowser(executable=found)
    if settings.light_executable:
        return FoundBrowser(missing=f"browser.light_executable: there is no program {settings.light_executable}")
    return FoundBrowser(missing="Lightpanda is not installed; run: pip install 'scrapeyard[light]'")


def _packed_light() -> str:
    spec = find_spec("lightpanda")
    places = [Path(each) / "lightpanda" for each in (spec.submodule_search_locations or ())] if spec else []
    return next((str(each) for each in places if each.is_file()), "") or shutil.which("lightpanda") or ""


def downloads() -> Path:
    """Where drivers keep the browsers that they download."""
    if given := os.environ.get("PLAYWRIGHT_BROWSERS_PATH"):
        return Path(given)
    place = "Library/Caches/ms-playwright" if sys.platform == "darwin" else ".cache/ms-playwright"
    return Path.home() / place


def install_commands(settings: BrowserSettings, *, is_root: bool) -> list[list[str]]:
    """The commands that bring a browser: by apt where that is allowed, otherwise by the driver's own download."""
    if settings.name == "chromium" and is_root and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium", "fonts-liberation"]
        return [["apt-get", "update"], install]
    return [[sys.executable, "-m", settings.driver, "install", settings.name]]
