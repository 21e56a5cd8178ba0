"""A cluster under load, hurt in one way or in many, and the account of it."""

import asyncio
import random
from collections.abc import Sequence

from tests.chaos.disturb import DISTURBANCES
from tests.chaos.load import Account, Load, settle
from tests.leaks import PATIENCE
from tests.programs import Cluster

PER_SECOND = 6.0
FEW = 3
"""Calls that are accepted before each hurt, and as many after it."""


async def play(
    cluster: Cluster,
    names: Sequence[str],
    *,
    seed: int = 1,
    before: float = 1.0,
    after: float = 1.5,
    per_second: float = PER_SECOND,
) -> Account:
    """Hurt the cluster in these ways, one after the other, while calls come; then wait for every run to end."""
    chance = random.Random(seed)
    load = Load(lambda: cluster.urls, per_second=per_second, seed=seed)
    calling = asyncio.create_task(load.run())
    try:
        for name in names:
            await asyncio.sleep(before)
            await load.accepted(FEW)
            await DISTURBANCES[name](cluster, chance)
            await asyncio.sleep(after)
            await load.accepted(FEW)
    finally:
        load.stop()
    calls = await calling
    await asyncio.to_thread(cluster.wait_until_up)
    return await settle(cluster.urls[0], calls, PATIENCE)
