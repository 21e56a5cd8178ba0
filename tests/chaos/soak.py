"""Use and hurt a yard for half an hour, and see that no process grows: `make soak`, or
`python -m tests.chaos.soak --minutes 30 --yard embedded`.

Each process that is never killed must end with the memory and the descriptors that it had when it was warm. Ends with 1
when one has grown, or when a user met what nobody should.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.disturb import kill_child, kill_parent, kill_zygote
from tests.chaos.mixed import Mixed
from tests.programs import Cluster, Embedded, Program, Yard

WARM_SHARE = 0.4
"""Of the time: caches fill and pools open. What is held after that is what must not grow."""
SAMPLE_SECONDS = 5.0
SAMPLES_PER_LINE = 24
HURT_SECONDS = (4.0, 12.0)
MORTAL_EVERY = 6
"""A cluster's second worker is killed every so many hurts."""
GROWTH = 0.03
"""Of its memory. The heap of a Python process breathes by a few percent."""
MORE_DESCRIPTORS = 3.0


@dataclass(kw_only=True)
class Watched:
    """One process over time."""

    name: str
    pid: int
    at: list[float] = field(default_factory=list)
    kilobytes: list[float] = field(default_factory=list)
    descriptors: list[float] = field(default_factory=list)

    def sample(self, now: float) -> None:
        """Look once."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text("ascii").splitlines()
        held = next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))
        self.at.append(now)
        self.kilobytes.append(held)
        self.descriptors.append(len(list(Path(f"/proc/{self.pid}/fd").iterdir())))

    @property
    def now(self) -> str:
        """What it holds."""
        return f"{self.name} {self.kilobytes[-1] / 1024:.1f} MB, {self.descriptors[-1]:.0f} descriptors"

    def report(self) -> tuple[str, bool]:
        """One line, and whether it has not grown since it was warm."""
        warm = int(len(self.at) * WARM_SHARE)
        at = self.at[warm:]
        memory, files = slope(at, self.kilobytes[warm:]), slope(at, self.descriptors[warm:])
        span = at[-1] - at[0]
        middle = statistics.median(self.kilobytes[warm:])
        is_good = memory * span <= middle * GROWTH and files * span <= MORE_DESCRIPTORS
        opened = statistics.median(self.descriptors[warm:])
        line = (
            f"{self.name}: {self.kilobytes[0] / 1024:.1f} MB at first, {middle / 1024:.1f} MB when warm, "
            f"{memory * 60:+.1f} KB/min; {self.descriptors[0]:.0f} and {opened:.0f} descriptors, "
            f"{files * 3600:+.2f} an hour"
        )
        return line, is_good


def slope(at: list[float], values: list[float]) -> float:
    """Change per second: the median over all pairs, which single peaks do not move (Theil and Sen)."""
    pairs = [
        (values[late] - values[early]) / (at[late] - at[early])
        for early in range(len(at))
        for late in range(early + 1, len(at))
    ]
    return statistics.median(pairs)


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="decides what is hurt, and when")
    parser.add_argument("--yard", choices=_YARDS, action="append", help="only this one (default: both, at once)")
    options = parser.parse_args()
    return asyncio.run(_all(options.yard or list(_YARDS), options.minutes * 60, options.seed))


async def _all(names: list[str], seconds: float, seed: int) -> int:
    results = await asyncio.gather(*(asyncio.to_thread(_soak, name, seconds, seed) for name in names))
    return max(results)


def _soak(name: str, seconds: float, seed: int) -> int:
    with _YARDS[name]() as yard:
        watched, mixed = asyncio.run(_drive(name, yard, seconds, seed))
    reports = [each.report() for each in watched]
    lines = [f"{line}{'' if is_good else '  GROWS'}" for line, is_good in reports]
    done = ", ".join(f"{count:,} {what}" for what, count in sorted(mixed.done.items()))
    faults = [f"{name}: FAULT {fault}, {count} times" for fault, count in mixed.faults.most_common(30)]
    for line in (*lines, f"{name}: {done}", *faults):
        _say(line)
    return 0 if all(is_good for _, is_good in reports) and not mixed.faults else 1


async def _drive(name: str, yard: Yard, seconds: float, seed: int) -> tuple[list[Watched], Mixed]:
    mixed = Mixed(yard, seed)
    watched = [Watched(name=f"{name} {what}", pid=program.pid) for what, program in _lasting(yard).items()]
    using = asyncio.create_task(mixed.run())
    hurting = asyncio.create_task(_hurt(yard, mixed, random.Random(seed)))
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until and not using.done() and not hurting.done():
        for each in watched:
            await asyncio.to_thread(each.sample, now)
        if len(watched[0].at) % SAMPLES_PER_LINE == 0:
            _say(f"{(until - now) / 60:.0f} min left: " + "; ".join(each.now for each in watched))
        await asyncio.sleep(SAMPLE_SECONDS)
    hurting.cancel()
    mixed.stop()
    await asyncio.gather(using, hurting, return_exceptions=True)
    for task in (using, hurting):
        if not task.cancelled() and (error := task.exception()):
            raise error
    return watched, mixed


async def _hurt(yard: Yard, mixed: Mixed, chance: random.Random) -> None:
    """kill -9 of children, their parents and zygotes, and of the one worker that may die."""
    mortal: Program | None = yard.workers[1] if len(yard.workers) > 1 else None
    for number in range(1, 1_000_000):
        await asyncio.sleep(chance.uniform(*HURT_SECONDS))
        if isinstance(yard, Cluster) and mortal is not None and number % MORTAL_EVERY == 0:
            await asyncio.to_thread(mortal.kill)
            mortal = yard.add_worker()
            mixed.done["kill_worker"] += 1
            continue
        kill = chance.choices((kill_child, kill_parent, kill_zygote), (6, 2, 1))[0]
        await kill(yard, chance)
        mixed.done[kill.__name__] += 1


def _lasting(yard: Yard) -> Mapping[str, Program]:
    """The programs that nobody kills."""
    if isinstance(yard, Embedded):
        return {"up": yard.gateways[0]}
    return {"gateway": yard.gateways[0], "worker": yard.workers[0], "dispatcher": yard.dispatchers[0]}


_NEAR = {"SCRAPEYARD_HTTP__ALLOW_PRIVATE": "true"}
"""The practice shop's sitemap is read by the dispatcher, too."""


def _embedded() -> Yard:
    return Embedded(is_fresh=True)


def _cluster() -> Yard:
    return Cluster(gateways=1, workers=2, dispatchers=1, environment=_NEAR, is_fresh=True)


_YARDS = {"embedded": _embedded, "cluster": _cluster}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
