"""What `scrapeyard up` holds in memory and takes of a core, in all its processes, when it has nothing to do."""

import time
from collections.abc import Callable

from msgspec import Struct

from benchmarks.load import LoadFailed, Target
from benchmarks.processes import Memory, free_port
from benchmarks.report import Goal, Table, figure
from benchmarks.systems import SCRAPE, Ground, ask, scrapeyard_up, wait_until_answers

_RUNS = 100
_IDLE_SECONDS = 2.0
_WATCH_SECONDS = 20.0
_MOST_MB = 170
_MOST_PERCENT = 2


class Idle(Struct, frozen=True, kw_only=True):
    """Memory two seconds after the start, and two seconds after the last of a hundred runs; then processor time."""

    before: Memory
    after: Memory
    percent: float
    """Of one core, after those runs."""

    def table(self) -> Table:
        """One row for each moment."""
        named = (("nothing run yet", self.before), (f"after {_RUNS} runs", self.after))
        rows = tuple((name, str(m.processes), figure(m.pss_mb), figure(m.rss_mb)) for name, m in named)
        return Table(
            title="Idle `scrapeyard up`",
            columns=("moment", "processes", "PSS MB", "RSS MB"),
            rows=rows,
            note="PSS counts a page that processes share once; RSS counts it in each of them.",
        )

    def goals(self) -> tuple[Goal, ...]:
        """At both moments; and little of a core."""
        named = (("nothing run yet", self.before), (f"after {_RUNS} runs", self.after))
        return (
            *(
                Goal(name=f"idle memory, {name}", measured=m.pss_mb, bound=_MOST_MB, at_least=False, unit="MB")
                for name, m in named
            ),
            Goal(name="idle, of a core", measured=self.percent, bound=_MOST_PERCENT, at_least=False, unit="%"),
        )


def measure(ground: Ground, say: Callable[[str], None]) -> Idle:
    """Start it as it ships, look, let it work, look again. Raises StartFailed or LoadFailed."""
    say("idle memory")
    port = free_port()
    with scrapeyard_up(ground, port, {}) as program:
        wait_until_answers(Target(port=port, path="/api/ready", body="", method="GET"), (program,))
        time.sleep(_IDLE_SECONDS)
        before = program.memory()
        _work(Target(port=port, path="/api/scrape", body=SCRAPE))
        time.sleep(_IDLE_SECONDS)
        after, spent = program.memory(), program.tree_seconds()
        time.sleep(_WATCH_SECONDS)
        percent = 100 * (program.tree_seconds() - spent) / _WATCH_SECONDS
        return Idle(before=before, after=after, percent=percent)


def _work(target: Target) -> None:
    for _ in range(_RUNS):
        answer = ask(target)
        if not answer.startswith("200 "):
            raise LoadFailed(f"a run failed: {answer}")
