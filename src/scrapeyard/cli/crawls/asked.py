"""What a crawl is asked for, and how it ended."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOB_ID = "crawl"
MANNERS = "--rate and --ignore-robots change that"
FOLDER = "folder"


@dataclass(frozen=True, kw_only=True)
class Crawl:
    """The options of the command."""

    table: dict[str, Any]
    """The call, as `/api/crawl` takes it."""
    output: Path | None
    form: str
    """Of the file; `folder` for a folder of markdown files."""
    resume: bool

    @property
    def state(self) -> Path | None:
        """Where a crawl without a server is kept until it has ended; None if it is not kept."""
        return None if self.output is None else self.output.with_name(f"{self.output.name}.crawl")

    @property
    def wish(self) -> dict[str, Any]:
        """The export that it is written from."""
        return {"type": "pages", "format": "jsonl" if self.form == FOLDER else self.form}

    @property
    def is_folder(self) -> bool:
        """Whether it is written as a folder of files."""
        return self.form == FOLDER

    def check(self, *, as_json: bool, on_server: bool) -> None:
        """Raises BadRequest, before anything is fetched."""
        from scrapeyard.errors import BadRequest

        if self.output is None and (as_json or self.resume):
            raise BadRequest(f"{'--resume' if self.resume else '--json'} needs -o FILE")
        if on_server and self.resume:
            raise BadRequest("a crawl on a server goes on by itself: `scrapeyard jobs watch ID`, or `jobs resume ID`")
        if self.state is not None and not on_server and self.state.exists() and not self.resume:
            raise BadRequest(f"{self.state}: an interrupted crawl; --resume goes on with it. To begin anew, remove it")

    def forget(self) -> None:
        """Remove what was kept for --resume."""
        if self.state is not None:
            shutil.rmtree(self.state, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a crawl ended."""

    job: dict[str, Any]
    """Its document."""
    notes: tuple[str, ...]
    """What its file tells of it."""
    interrupted: bool = False
