"""What a context looks like to pages, as the driver's arguments for a new context."""

import re
from typing import TYPE_CHECKING, Any, Final

from scrapeyard.engines.browser.inside.steps.failures import step_failed
from scrapeyard.engines.browser.port import ContextOptions, HostContext

if TYPE_CHECKING:
    from scrapeyard.engines.browser.inside.launch import LaunchedBrowser

_VIEWPORT: Final = {"width": 1280, "height": 720}
_SCREEN: Final = {"width": 1920, "height": 1080}


def context_arguments(context: HostContext, launched: "LaunchedBrowser", proxy: dict[str, str]) -> dict[str, Any]:
    """For `new_context`. Raises FetchFailed for a device that the driver does not know."""
    options = context.options
    arguments: dict[str, Any] = {
        **_device(options, launched),
        "proxy": proxy,
        "java_script_enabled": options.java_script,
        "accept_downloads": True,
        "locale": options.locale if options.locale != launched.language else None,
        "timezone_id": options.timezone or None,
        "extra_http_headers": dict(options.headers) or None,
        "storage_state": context.state or None,
    }
    if options.width is None and options.height is None:
        if "viewport" not in arguments and launched.facts.browser == "chromium":
            arguments["no_viewport"] = True
    else:
        usual = arguments.get("viewport", _VIEWPORT)
        arguments["viewport"] = {
            "width": options.width or usual["width"],
            "height": options.height or usual["height"],
        }
        arguments.setdefault("screen", _SCREEN)
    if options.latitude is not None and options.longitude is not None:
        arguments["geolocation"] = {"latitude": options.latitude, "longitude": options.longitude}
        arguments["permissions"] = ["geolocation"]
    if options.user_agent:
        arguments["user_agent"] = options.user_agent
    return {name: value for name, value in arguments.items() if value is not None}


def _device(options: ContextOptions, launched: "LaunchedBrowser") -> dict[str, Any]:
    if not options.device:
        return {"user_agent": _usual_agent(launched)} if launched.is_headless_chromium else {}
    try:
        device = dict(launched.playwright.devices[options.device])
    except KeyError:
        raise step_failed(
            f"there is no device {options.device!r}; see Playwright's list, for example `iPhone 15`"
        ) from None
    device.pop("default_browser_type", None)
    device["user_agent"] = re.sub(r"Chrome/[\d.]+", f"Chrome/{_major(launched)}.0.0.0", device["user_agent"])
    return device


def _usual_agent(launched: "LaunchedBrowser") -> str:
    """As the same browser says with a window: without a window it says `HeadlessChrome`."""
    return (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{_major(launched)}.0.0.0 Safari/537.36"
    )


def _major(launched: "LaunchedBrowser") -> str:
    return launched.facts.version.partition(".")[0]
