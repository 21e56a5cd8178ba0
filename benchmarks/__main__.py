"""`python -m benchmarks [BENCH …]`: run benches, print what they measured, keep it where asked."""

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.printing import as_json, machine, markdown, show
from benchmarks.processes import adopt_orphans, interrupt_on_sigterm
from benchmarks.report import Options, Report

BENCHES = {
    "articles": "benchmarks.articles",
    "auth": "benchmarks.auth",
    "brokers": "benchmarks.brokers",
    "browser": "benchmarks.browser",
    "core": "benchmarks.core",
    "crawl": "benchmarks.site_crawl",
    "drift": "benchmarks.drift",
    "engine": "benchmarks.engine",
    "extraction": "benchmarks.extraction",
    "footprint": "benchmarks.footprint",
    "growth": "benchmarks.growth",
    "jobs": "benchmarks.jobs",
    "ladder": "benchmarks.ladder",
    "limits": "benchmarks.limits",
    "lists": "benchmarks.lists",
    "page": "benchmarks.dashboard",
    "patterns": "benchmarks.patterns",
    "repository": "benchmarks.repository",
    "sandbox": "benchmarks.sandbox",
    "sinks": "benchmarks.sinks",
    "stores": "benchmarks.stores",
}
"""Each module has PARTS, the names `--only` takes, and run(options, say) → Report."""
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 done; 1 a part could not be measured, or with --check a goal was missed; 130 interrupted."""
    given = _parser().parse_args(arguments)
    benches = given.bench or list(BENCHES)
    options = _options(given, benches)
    adopt_orphans()
    interrupt_on_sigterm()
    console, notes = _wide(), Console(stderr=True)
    about = machine()
    try:
        reports = [_run(bench, options, console, notes) for bench in benches]
    except KeyboardInterrupt:
        notes.print("interrupted; everything that was started has been stopped")
        return _INTERRUPTED
    if given.json:
        given.json.write_bytes(as_json(reports, about))
    if given.markdown:
        given.markdown.write_text(markdown(reports, about), "utf-8")
    return _exit_code(reports, check=given.check)


def _run(bench: str, options: Options, console: Console, notes: Console) -> Report:
    began = time.monotonic()

    def say(text: str) -> None:
        notes.print(f"{time.monotonic() - began:5.0f} s  {text}", highlight=False)

    report: Report = importlib.import_module(BENCHES[bench]).run(options, say)
    show(report, console)
    return report


def _wide() -> Console:
    """A terminal as wide as it is; anything else wide enough for our tables."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def _exit_code(reports: Sequence[Report], *, check: bool) -> int:
    if any(report.failures for report in reports):
        return 1
    return int(check and any(report.missed for report in reports))


def _options(given: argparse.Namespace, benches: Sequence[str]) -> Options:
    known = {part for bench in benches for part in importlib.import_module(BENCHES[bench]).PARTS}
    only = frozenset(part for part in given.only.split(",") if part)
    if unknown := only - known:
        sys.exit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    rounds, pace = (1, 0.4) if given.quick else (given.rounds, given.pace)
    return Options(
        only=only, rounds=rounds, pace=pace, clients=given.clients, processes=given.processes, slots=given.slots
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Scrapeyard beside its peers")
    parser.add_argument("bench", nargs="*", choices=[[], *BENCHES], help="which to run; all when none is named")
    parser.add_argument("--only", default="", metavar="PARTS", help="parts of a bench, with commas: rq,celery")
    parser.add_argument("--rounds", type=_count, default=3, help="turns of each system; figures are medians (3)")
    parser.add_argument("--pace", type=_pace, default=1.0, help="multiplies every measured duration (1.0)")
    parser.add_argument("--quick", action="store_true", help="one short round: a look, not a measurement")
    parser.add_argument("--clients", type=_count, default=32, help="clients when throughput is measured (32)")
    parser.add_argument("--processes", type=_count, default=2, help="worker processes of each system (2)")
    parser.add_argument("--slots", type=_count, default=8, help="runs at once in a worker (8, as on two cores)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there, for the documentation")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1024:
        raise argparse.ArgumentTypeError("from 1 to 1024")
    return number


def _pace(text: str) -> float:
    number = float(text)
    if not 0.05 <= number <= 20:
        raise argparse.ArgumentTypeError("from 0.05 to 20")
    return number


if __name__ == "__main__":
    sys.exit(main())
