"""What is kept of a context for people to look at, and its end."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapeyard.engines.browser.inside.steps.deadline import within
from scrapeyard.engines.browser.inside.steps.failures import crashed
from scrapeyard.engines.browser.port import ContextEnd, Evidence, KeptFile
from scrapeyard.engines.browser.wire import MAX_FILES_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from scrapeyard.engines.browser.inside.context import HeldContext

_STATE_SECONDS: Final = 6
_COOKIES_SECONDS: Final = 2
_PICTURE_SECONDS: Final = 2
_TRACE_SECONDS: Final = 4
_CLOSE_SECONDS: Final = 5
"""Together less than the engine waits for the end of a context."""
_TYPES: Final = {
    "trace.zip": "application/zip",
    "network.har": "application/json",
    "video.webm": "video/webm",
    "video.avi": "video/x-msvideo",
    "failure.png": "image/png",
}


def evidence_arguments(evidence: Evidence, folder: Path, no_video: str) -> dict[str, Any]:
    """For `new_context`."""
    arguments: dict[str, Any] = {}
    if evidence.har:
        arguments |= {"record_har_path": str(folder / "network.har"), "record_har_content": "embed"}
    if evidence.video and not no_video:
        arguments["record_video_dir"] = str(folder / "video")
    return arguments


async def start_trace(context: "HeldContext") -> None:
    """If it is asked for."""
    if context.options.evidence.trace:
        await context.native.tracing.start(screenshots=True, snapshots=True)


async def close(context: "HeldContext", folder: Path) -> ContextEnd:
    """Collect what is left and close, whatever state the context is in. Raises FetchFailed (`browser_crashed`)."""
    evidence = context.options.evidence
    if context.live_view is not None:
        context.live_view.cancel()
    if context.film is not None:
        context.film.stop()
        await asyncio.to_thread((folder / "video.avi").write_bytes, context.film.data())
    if context.has_failed and evidence.screenshot_on_failure:
        await _within(_PICTURE_SECONDS, _picture(context, folder), context)
    state = await _state(context)
    if evidence.trace:
        await _within(_TRACE_SECONDS, context.native.tracing.stop(path=folder / "trace.zip"), context)
    await context.background.stop()
    if await _within(_CLOSE_SECONDS, _close(context), context) is None:
        raise crashed("the context does not close; its browser is started anew")
    return ContextEnd(
        state=state,
        pages=context.pages,
        blocked=context.blocking.count,
        blocked_bytes=context.blocking.bytes,
        files=await asyncio.to_thread(_files, folder),
    )


async def _within(seconds: float, work: "Awaitable[Any]", context: "HeldContext") -> Any:
    """Its result; None if it takes longer or fails."""
    with suppress(TimeoutError, context.driver.error):
        return await within(seconds, work)
    return None


async def _picture(context: "HeldContext", folder: Path) -> None:
    if tabs := context.open_tabs:
        await tabs[-1].page.screenshot(path=folder / "failure.png", timeout=_PICTURE_SECONDS * 1000)


async def _state(context: "HeldContext") -> dict[str, Any]:
    """Only where it is kept under a name. What cannot be read stays as it was at the beginning."""
    if not context.options.session:
        return {}
    if context.keeps_storage:
        if (state := await _within(_STATE_SECONDS, context.native.storage_state(), context)) is not None:
            return dict(state)
        context.warn("the page's local storage cannot be read; it is kept as it was before")
    cookies = await _within(_COOKIES_SECONDS, context.native.cookies(), context)
    if cookies is None:
        context.warn("the page's cookies cannot be read; they are kept as they were before")
        cookies = context.first_state.get("cookies", [])
    return {"cookies": cookies, "origins": context.first_state.get("origins", [])}


async def _close(context: "HeldContext") -> bool:
    await context.native.close()
    return True


def _files(folder: Path) -> tuple[KeptFile, ...]:
    """Those that fit."""
    for number, video in enumerate(sorted((folder / "video").glob("*.webm"))):
        video.rename(folder / (f"video-{number}.webm" if number else "video.webm"))
    kept, left = [], MAX_FILES_BYTES
    for path in sorted(folder.iterdir()):
        content_type = _TYPES.get(path.name) or ("video/webm" if path.suffix == ".webm" else "")
        if content_type and path.is_file() and path.stat().st_size <= left:
            data = path.read_bytes()
            left -= len(data)
            kept.append(KeptFile(name=path.name, content_type=content_type, data=data))
    return tuple(kept)
