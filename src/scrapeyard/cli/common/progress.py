"""Progress on stderr: a bar where that is a terminal, a line now and then where it is not."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from scrapeyard.cli.common.output import plain, span

if TYPE_CHECKING:
    from rich.progress import Progress

_LINE_SECONDS = 5.0
"""Between two lines where there is no terminal."""

Advance = Callable[[int], None]


@contextmanager
def byte_bar(words: str, total: int | None) -> Iterator[Advance]:
    """A progress bar of bytes if stderr is a terminal; call the yielded function with each number of new bytes."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}", markup=False), *columns, console=_console(), transient=True) as bar:
        task = bar.add_task(plain(words), total=total)
        yield lambda count: bar.advance(task, count)


@contextmanager
def share_bar(words: str) -> Iterator[Callable[[float], None]]:
    """A progress bar of a fraction from 0 to 1, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=_console(), transient=True) as bar:
        task = bar.add_task(plain(words), total=1.0)
        yield lambda share: bar.update(task, completed=share)


class JobBar:
    """A job's progress. Use it as a context; `show` takes the API's `progress` event or a job's document."""

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = plain(name)
        self._clock = clock
        self._bar: Progress | None = None
        self._task: Any = None
        self._shown_at = float("-inf")
        self._said = ""

    def __enter__(self) -> "JobBar":
        if sys.stderr.isatty():
            self._bar = _job_progress()
            self._task = self._bar.add_task(self._name, total=None, facts="", numbers="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: Mapping[str, Any]) -> None:
        """Show the current progress."""
        if self._bar is None:
            self._say(progress)
            return
        counts = progress["counts"]
        total = None if progress["reading"] and not counts["total"] else counts["total"]
        self._bar.update(
            self._task, total=total, completed=_done(counts), numbers=_numbers(progress), facts=facts(progress)
        )

    def note(self, words: str) -> None:
        """Print a line that stays above the bar."""
        if self._bar is None:
            typer.echo(f"scrapeyard: {plain(words)}", err=True)
        else:
            from rich.text import Text

            self._bar.console.print(Text(plain(words)))

    def _say(self, progress: Mapping[str, Any]) -> None:
        now = self._clock()
        if now - self._shown_at < _LINE_SECONDS:
            return
        words = f"scrapeyard: {progress['status']}: {_numbers(progress)}, {facts(progress)}"
        if words != self._said:
            typer.echo(words, err=True)
            self._said, self._shown_at = words, now


def facts(progress: Mapping[str, Any]) -> str:
    """What goes beside the bar: state, rate, errors, time left."""
    counts, rate, left = progress["counts"], progress["items_per_second"], progress["eta_seconds"]
    found = [] if progress["status"] == "running" else [str(progress["status"])]
    found += [f"{rate:,.1f}/s" if rate < 10 else f"{rate:,.0f}/s"] if rate is not None else []
    found.append(f"{counts['error']:,} errors")
    found += [f"{span(left)} left"] if left is not None else []
    found += ["more is read"] if progress["reading"] else []
    return ", ".join(found + _breaker(progress["breaker"]))


def _breaker(breaker: Mapping[str, Any] | str) -> list[str]:
    """Its state, unless it is closed; a job's document also says until when."""
    if isinstance(breaker, str):
        breaker = {"state": breaker}
    until = breaker.get("probes_at")
    state = breaker["state"].replace("_", " ")
    return [] if state == "closed" else [f"breaker {state}{f' until {clock_time(until)}' if until else ''}"]


def clock_time(instant: str) -> str:
    """An ISO instant as the time of day here: `14:05:09`."""
    return datetime.fromisoformat(instant).astimezone().strftime("%H:%M:%S")


def _numbers(progress: Mapping[str, Any]) -> str:
    counts = progress["counts"]
    share = f" ({_done(counts) / counts['total']:.0%})" if counts["total"] and not progress["reading"] else ""
    return f"{_done(counts):,} of {counts['total']:,}{share}"


def _done(counts: Mapping[str, int]) -> int:
    return counts["success"] + counts["error"] + counts["cancelled"]


def _job_progress() -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [
        TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[numbers]", "fields[facts]")
    ]
    return Progress(columns[0], BarColumn(bar_width=24), *columns[1:], console=_console())


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
