"""Hurts a cluster at random for as long as told: `python -m tests.chaos.driver --seconds 60 --seed 1`.

The same seed hurts in the same order. Ends with 1 when a run was lost, doubled or left open, or a caller left waiting.
"""

import argparse
import asyncio
import random
import sys
import time

from tests.chaos.disturb import DISTURBANCES, LEASE
from tests.chaos.load import Account
from tests.chaos.scenario import PER_SECOND, play
from tests.programs import Cluster


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on hurting")
    parser.add_argument("--seed", type=int, default=1, help="decides what is hurt, and when")
    parser.add_argument("--only", choices=sorted(DISTURBANCES), action="append", help="hurt in these ways alone")
    parser.add_argument("--per-second", type=float, default=PER_SECOND, help="calls that come in a second")
    options = parser.parse_args()
    with Cluster(gateways=2, workers=2, dispatchers=2, environment=LEASE) as cluster:
        faults = asyncio.run(_drive(cluster, options))
    for fault in faults:
        _say(f"FAULT {fault}")
    _say(f"seed {options.seed}: {len(faults)} faults")
    return 1 if faults else 0


async def _drive(cluster: Cluster, options: argparse.Namespace) -> list[str]:
    """Rounds of one to three hurts, each round settled and checked before the next."""
    names, seed = options.only or sorted(DISTURBANCES), options.seed
    chance = random.Random(seed)
    faults: list[str] = []
    until = time.monotonic() + options.seconds
    number = 0
    while time.monotonic() < until:
        number += 1
        chosen = [chance.choice(names) for _ in range(chance.randint(1, 3))]
        before, after = chance.uniform(0.3, 2.0), chance.uniform(0.3, 2.0)
        account: Account = await play(
            cluster,
            chosen,
            seed=seed * 1000 + number,
            before=before,
            after=after,
            per_second=options.per_second,
        )
        _say(account.summary(f"round {number} ({', '.join(chosen)})"))
        faults += account.faults
    return faults


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
