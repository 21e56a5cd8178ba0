"""What a command runs, and running it until its end or until a signal."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from scrapeyard.model import LogLine
    from scrapeyard.settings import LogSettings


def folder_of(target: str) -> Path | None:
    """The scraper's folder if the target is one, or the id of one in ./scrapers; None if it is another id. Raises
    BadRequest for the path of a folder that is not there."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.settings.repository import USUAL_SCRAPERS

    folder = Path(target)
    if folder.name == "scraper.toml" and folder.is_file():
        return folder.parent
    is_scraper = (folder / "scraper.toml").exists() or not _looks_like_id(target)
    if folder.is_dir() and is_scraper:
        return folder
    if not folder.exists() and target.startswith((".", "/", "~")):
        raise BadRequest(f"{target}: no such folder")
    usual = USUAL_SCRAPERS / target
    return usual if (usual / "scraper.toml").is_file() else None


async def until_done(work: Any) -> Any:
    """Run `work` to its end. SIGTERM acts like Ctrl-C: it kills the child and leaves nothing behind."""
    import asyncio

    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if stopped:
            raise typer.Exit(128 + signal.SIGTERM) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _looks_like_id(target: str) -> bool:
    from scrapeyard.model import SCRAPER_ID

    return SCRAPER_ID.fullmatch(target.partition("@")[0]) is not None


def quiet(log: "LogSettings") -> None:
    """Log only warnings, as plain text, because platform logs are not part of the script's output."""
    from scrapeyard.telemetry.events import configure

    level = "warning" if log.level == "info" else log.level
    configure(log.model_copy(update={"level": level, "format": "human" if log.format == "auto" else log.format}))


def say(line: "LogLine") -> None:
    """One line of the script, on stderr."""
    from msgspec.structs import asdict

    from scrapeyard.cli.common.output import log_line

    typer.echo(log_line(asdict(line)), err=True)


def read_beside(folder: Path, name: str) -> bytes:
    """A schema's file in a scraper's folder. Raises ScraperInvalid."""
    from scrapeyard.authoring.cassette import read_bounded
    from scrapeyard.repository.manifest.schemas import MAX_BYTES

    return read_bounded(folder / name, MAX_BYTES)
