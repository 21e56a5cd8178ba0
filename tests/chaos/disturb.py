"""Ways in which a cluster is hurt. Each kills or stops something, and brings back what an operator would."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable

from tests.leaks import Process
from tests.programs import Cluster, Program, Yard, running

AWAY_SECONDS = 5.0
FROZEN_SECONDS = 7.0
"""Longer than a lease and a lead (5 s)."""
LEASE = {"SCRAPEYARD_WORKER__LEASE_SECONDS": "3"}
"""For every cluster that is hurt, so that a lost worker is soon noticed. One that a busy machine holds up is taken for
lost as well: no run may depend on the number of its attempts."""
LOOK_SECONDS = 20.0
"""A way of hurting that finds nothing to hurt is given up after so long."""
Disturbance = Callable[[Cluster, random.Random], Awaitable[None]]


async def kill_worker(cluster: Cluster, chance: random.Random) -> None:
    """kill -9 of a worker; another is started in its place."""
    await _kill(chance.choice(running(cluster.workers)))
    cluster.add_worker()


async def kill_child(cluster: Yard, chance: random.Random) -> None:
    """kill -9 of every child of a worker, those that run and those that wait."""
    await _kill_some(chance.choice(running(cluster.workers)).children)


async def kill_parent(cluster: Yard, chance: random.Random) -> None:
    """kill -9 of a worker's scraper parents."""
    await _kill_some(chance.choice(running(cluster.workers)).scraper_parents)


async def kill_zygote(cluster: Yard, chance: random.Random) -> None:
    """kill -9 of a worker's zygote."""
    worker = chance.choice(running(cluster.workers))
    await _kill_some(lambda: [zygote] if (zygote := worker.zygote()) else [])


async def kill_gateway(cluster: Cluster, chance: random.Random) -> None:
    """kill -9 of a gateway; the other takes the calls, and later a new one."""
    await _kill(chance.choice(running(cluster.gateways)))
    gateway = cluster.add_gateway()
    await asyncio.to_thread(cluster.ready, gateway)


async def kill_dispatcher(cluster: Cluster, _chance: random.Random) -> None:
    """kill -9 of the dispatcher that leads; another is started."""
    leader = cluster.leader()
    if leader is not None:
        await _kill(leader)
        cluster.add_dispatcher()


async def freeze_worker(cluster: Cluster, chance: random.Random) -> None:
    """A worker stands still until its runs were given to others, and then goes on as if nothing had been."""
    await _freeze(chance.choice(running(cluster.workers)))


async def freeze_dispatcher(cluster: Cluster, _chance: random.Random) -> None:
    """The leader stands still until another leads, and then goes on."""
    leader = cluster.leader()
    if leader is not None:
        await _freeze(leader)


async def freeze_database(cluster: Cluster, _chance: random.Random) -> None:
    """The database takes no request for a while, and then goes on with all that it holds."""
    if pid := cluster.database.pid:
        await _stop_for_a_while(pid, AWAY_SECONDS)


async def stop_redis(cluster: Cluster, _chance: random.Random) -> None:
    """The broker is away for a while; Redis comes back empty."""
    await _by_hand(cluster, cluster.broker.stop)
    await asyncio.sleep(AWAY_SECONDS)
    await _by_hand(cluster, cluster.broker.start)


async def stop_postgres(cluster: Cluster, _chance: random.Random) -> None:
    """PostgreSQL crashes, is away for a while and recovers."""
    await _by_hand(cluster, cluster.postgres.stop)
    await asyncio.sleep(AWAY_SECONDS)
    await _by_hand(cluster, cluster.postgres.start)


async def stop_both(cluster: Cluster, chance: random.Random) -> None:
    """The broker and PostgreSQL are away at the same time."""
    await asyncio.gather(stop_redis(cluster, chance), stop_postgres(cluster, chance))


async def restart_redis(cluster: Cluster, _chance: random.Random) -> None:
    """The broker is gone for a moment only; Redis with all that it held."""
    await _by_hand(cluster, cluster.broker.stop)
    await _by_hand(cluster, cluster.broker.start)


DISTURBANCES: dict[str, Disturbance] = {
    "worker": kill_worker,
    "child": kill_child,
    "parent": kill_parent,
    "zygote": kill_zygote,
    "gateway": kill_gateway,
    "dispatcher": kill_dispatcher,
    "frozen-worker": freeze_worker,
    "frozen-dispatcher": freeze_dispatcher,
    "frozen-database": freeze_database,
    "redis": stop_redis,
    "postgres": stop_postgres,
    "both": stop_both,
    "redis-restart": restart_redis,
}


async def _by_hand(cluster: Cluster, work: Callable[[], None]) -> None:
    await asyncio.get_running_loop().run_in_executor(cluster.hands, work)


async def _kill(program: Program) -> None:
    await asyncio.to_thread(program.kill)


async def _freeze(program: Program) -> None:
    await _stop_for_a_while(program.pid, FROZEN_SECONDS)


async def _stop_for_a_while(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _kill_some(find: Callable[[], list[Process]]) -> None:
    """Kill what is found, once something is."""
    deadline = time.monotonic() + LOOK_SECONDS
    while not (found := await asyncio.to_thread(find)) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    for process in found:
        if process.lives:
            os.kill(process.pid, signal.SIGKILL)
