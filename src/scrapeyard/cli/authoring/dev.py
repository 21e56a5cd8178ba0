"""`dev`: run a scraper again whenever one of its files is saved, and show what changed in its result."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.common.options import AllowPrivate, Input, NoState, Pairs

if TYPE_CHECKING:
    from scrapeyard.authoring.cases import Case
    from scrapeyard.cli.runs.local import LocalYard
    from scrapeyard.model import Outcome
    from scrapeyard.settings import Settings

    Given = tuple[str | None, list[str]]

_LOOK_SECONDS = 0.3
_MAX_FILES = 5000
"""Files looked at for changes."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(dev)


def dev(
    scraper: Annotated[Path, typer.Argument(metavar="FOLDER", help="The scraper's folder.")],
    *,
    pairs: Pairs = None,
    given: Input = None,
    allow_private: AllowPrivate = False,
    no_state: NoState = False,
) -> None:
    """Run a scraper, and again on each save, and show how the result changed. Without an input, its first recorded case
    is run on its recorded pages. Ctrl-C ends it."""
    import asyncio

    from scrapeyard.authoring.findings import scraper_folder
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.runs.running import until_done

    folder = scraper_folder(scraper)
    settings = author_settings(http={"allow_private": allow_private or None})
    asyncio.run(until_done(_until_interrupted(folder, settings, (given, pairs or []), keeps_state=not no_state)))


async def _until_interrupted(folder: Path, settings: "Settings", given: "Given", *, keeps_state: bool) -> None:
    import asyncio

    from scrapeyard.cli.runs.local import open_yard

    async with open_yard(settings, keeps_state=keeps_state) as yard:
        session = _Session(yard, folder, given)
        while True:
            seen = snapshot(folder)
            await session.run()
            typer.echo("scrapeyard: waiting for a change; Ctrl-C ends", err=True)
            while snapshot(folder) == seen:  # noqa: ASYNC110  nothing tells of a file that is saved
                await asyncio.sleep(_LOOK_SECONDS)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """The time and size of each file of a scraper, by path; those that vanish meanwhile are left out."""
    from scrapeyard.repository.archive.files import is_skipped

    found: dict[str, tuple[int, int]] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_skipped(name)]
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118  a Path for each file takes ten times as long
            try:
                facts = os.stat(path)  # noqa: PTH116  as above
            except OSError:
                continue
            if not is_skipped(name) and len(found) < _MAX_FILES:
                found[path] = facts.st_mtime_ns, facts.st_size
    return found


class _Session:
    """The runs of one command: remembers the last result."""

    def __init__(self, yard: "LocalYard", folder: Path, given: "Given") -> None:
        self._yard = yard
        self._folder = folder
        self._given = given
        self._last: Any = None
        self._has_last = False

    async def run(self) -> None:
        """One run; what is wrong with the scraper or its input is told."""
        from scrapeyard.cli.common.output import plain
        from scrapeyard.errors import ScrapeyardError

        began = time.perf_counter()
        try:
            outcome, result = await self._outcome()
        except ScrapeyardError as error:
            typer.echo(f"scrapeyard: {plain(error.message, lines=True)}", err=True)
            return
        self._tell(outcome, result, (time.perf_counter() - began) * 1000)

    async def _outcome(self) -> "tuple[Outcome, Any]":
        import json

        from scrapeyard.authoring.testing import ReplayEngine, offline
        from scrapeyard.cli.common.inputs import read_input
        from scrapeyard.cli.runs.running import say

        scraper = self._yard.load(self._folder)
        case = self._case()
        if case is None:
            text, pairs = self._given
            value = self._yard.check(scraper, read_input(text, pairs, lambda: scraper.input_schema))
            _, outcome = await self._yard.run(scraper, value, hear=say)
        else:
            value, engine = self._yard.check(scraper, case.input), ReplayEngine(case.pages)
            _, outcome = await self._yard.run(offline(scraper), value, hear=say, engine=engine)
        return outcome, json.loads(await self._yard.result(outcome))

    def _case(self) -> "Case | None":
        """The first recorded case, if no input was given."""
        from scrapeyard.authoring.cases import case_folders, read_case

        if self._given != (None, []):
            return None
        folders = case_folders(self._folder)
        return read_case(folders[0]) if folders else None

    def _tell(self, outcome: "Outcome", result: Any, spent: float) -> None:
        from scrapeyard.authoring.comparing import difference
        from scrapeyard.cli.authoring.common import show_diff
        from scrapeyard.cli.common.output import duration, show_json
        from scrapeyard.cli.runs.summary import tell_local_end

        if not outcome.exit_reason.is_good:
            tell_local_end(outcome.exit_reason, outcome.error)
            return
        lines = difference(self._last, result)[2:] if self._has_last else []
        if not self._has_last:
            show_json(result)
        else:
            show_diff(lines)
        words = "" if not self._has_last else ", changed" if lines else ", the result is the same"
        typer.echo(f"scrapeyard: {outcome.exit_reason} in {duration(spent)}{words}", err=True)
        self._last, self._has_last = result, True
