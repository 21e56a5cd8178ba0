"""The console of a page and its errors, where the driver does not tell of them.

Patchright hides that it drives by never listening. A page can notice whoever listens, so this is done only on request.
"""

from typing import TYPE_CHECKING, Any

from scrapeyard.engines.browser.port import LogMessage

if TYPE_CHECKING:
    from scrapeyard.engines.browser.inside.context import HeldContext, Tab

_MAX_VALUES = 20


async def listen(context: "HeldContext", tab: "Tab") -> None:
    """From now on, what the tab's console and its uncaught errors say goes to the context's log."""
    session = await context.new_devtools(tab, "console")
    session.on("Runtime.consoleAPICalled", lambda event: context.say(_message(event)))
    session.on("Runtime.exceptionThrown", lambda event: context.say(_error(event.get("exceptionDetails", {}))))
    await session.send("Runtime.enable")


def _message(event: dict[str, Any]) -> LogMessage:
    frames = event.get("stackTrace", {}).get("callFrames") or [{}]
    text = " ".join(_words(value) for value in event.get("args", [])[:_MAX_VALUES])
    return LogMessage(kind=str(event.get("type", "log")), text=text, url=str(frames[0].get("url", "")))


def _error(details: dict[str, Any]) -> LogMessage:
    thrown = details.get("exception", {})
    text = str(thrown.get("description") or details.get("text", "")).partition("\n")[0]
    return LogMessage(kind="error", text=text, url=str(details.get("url", "")))


def _words(value: dict[str, Any]) -> str:
    """As the console shows it, in short."""
    return str(value["value"]) if "value" in value else str(value.get("description", value.get("type", "")))
