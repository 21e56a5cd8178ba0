"""A cluster under load, hurt in one way or in many, and the account of it."""

import asyncio
import random
from collections.abc import Sequence

from tests.chaos.disturb import DISTURBANCES
from tests.chaos.load import Account, Load, settle
from tests.programs import Cluster

PER_SECOND = 6.0
SETTLE_SECONDS = 45.0


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
    for name in names:
        await asyncio.sleep(before)
        await DISTURBANCES[name](cluster, chance)
        await asyncio.sleep(after)
    load.stop()
    calls = await calling
    await asyncio.to_thread(cluster.wait_until_up)
    return await settle(cluster.urls[0], calls, SETTLE_SECONDS)
