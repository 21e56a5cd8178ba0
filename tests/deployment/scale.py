"""Nine hosts, each killed and cut off in turn, while a job and calls go on: `python -m tests.deployment.scale`.

Two gateways, two dispatchers, three workers, Valkey and PostgreSQL are hosts of their own (network namespaces). A
killed one is started again at once; one that is cut off comes back after `--away` seconds with all its connections as
they were. At the end every item has one outcome, every accepted call one run, and every call an answer in time. Needs
root. Ends with 1 on a fault.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.chaos import jobs
from tests.chaos.disturb import LEASE
from tests.chaos.load import Account, Load, settle
from tests.deployment.commands import say
from tests.deployment.hosts import Hosts, missing
from tests.job_calls import Jobs, Watcher
from tests.leaks import PATIENCE
from tests.programs import Cluster, Program, running
from tests.services.postgres import PostgresServer
from tests.services.valkey import ValkeyServer

HOSTS = (
    *("gateway-1", "gateway-2", "dispatcher-1", "dispatcher-2"),
    *("worker-1", "worker-2", "worker-3", "valkey", "postgres"),
)
_PORT = "8000"


class SpreadCluster(Cluster):
    """A cluster whose every process is on a host of its own. `away` names the hosts that are cut off."""

    def __init__(self, hosts: Hosts, environment: Mapping[str, str]) -> None:
        for name in HOSTS:
            hosts.add(name)
        valkey = ValkeyServer(host=hosts.address("valkey"), before=hosts.inside("valkey"))
        postgres = PostgresServer(host=hosts.address("postgres"), before=hosts.inside("postgres"))
        super().__init__(
            gateways=0, workers=0, dispatchers=0, environment=environment, broker=valkey, database=postgres
        )
        self.hosts = hosts
        self.away: set[str] = set()
        self.on: dict[str, Program] = {}

    def _start(self) -> None:
        super()._start()
        for name in HOSTS[:7]:
            self.start(name)
        self.wait_until_up()

    def start(self, name: str) -> None:
        """Start the program of a host. Returns at once."""
        role = name.partition("-")[0]
        words = {
            "gateway": ("--host", self.hosts.address(name), "--port", _PORT, "--insecure"),
            "worker": ("--allow-private",),
            "dispatcher": (),
        }[role]
        scrapers = () if role == "dispatcher" else ("--scrapers", str(self.scrapers))
        program = str(Path(sys.executable).with_name("scrapeyard"))
        command = [*self.hosts.inside(name), sys.executable, program, role]
        command += ["--data-dir", str(self.folder / "data"), *words, *scrapers]
        started = self.on[name] = Program(command, self._home(name), self.environment)
        self.programs.append(started)
        {"gateway": self.gateways, "worker": self.workers, "dispatcher": self.dispatchers}[role].append(started)

    @property
    def urls(self) -> list[str]:
        """As a load balancer knows them: without gateways that do not answer."""
        away = [f"http://{self.hosts.address(name)}:" for name in self.away]
        return [url for url in super().urls if not url.startswith(tuple(away))] if away else super().urls

    async def restart(self, name: str) -> None:
        """kill -9, and start anew."""
        if name in self.on:
            await asyncio.to_thread(self.on[name].kill)
            self.start(name)
            if name.startswith("gateway"):
                await asyncio.to_thread(self.ready, self.on[name])
            return
        server = self.broker if name == "valkey" else self.postgres
        for work in (server.stop, server.start):
            await asyncio.get_running_loop().run_in_executor(self.hands, work)

    async def cut_off(self, name: str, seconds: float) -> None:
        """No packet comes or goes for so long."""
        self.away.add(name)
        self.hosts.cut_off(name)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.hosts.join(name)
            self.away.discard(name)


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1500, help="items of the job, of a second each")
    parser.add_argument("--away", type=float, default=9.0, help="seconds that a host is cut off")
    parser.add_argument("--only", choices=HOSTS, action="append", help="hurt these hosts alone")
    parser.add_argument("--way", choices=("kill", "cut"), action="append", help="hurt in these ways alone")
    options = parser.parse_args()
    if why := missing():
        say(f"The scale test is left out: {why}.")
        return 0
    say(f"load before {os.getloadavg()[0]:.1f}, cores {os.cpu_count()}")
    with Hosts() as hosts, SpreadCluster(hosts, LEASE) as cluster:
        faults = asyncio.run(_drive(cluster, options))
    for fault in faults:
        say(f"FAULT {fault}")
    say(f"{len(faults)} faults")
    return 1 if faults else 0


async def _drive(cluster: SpreadCluster, options: argparse.Namespace) -> list[str]:
    """Hurt every host in every way while the job goes on; then take stock of items and calls."""
    came_to, began = jobs.Account(), time.monotonic()
    with cluster.client() as api:
        job_id = await asyncio.to_thread(jobs.create, Jobs(api), options.items, 1.0)
    load = Load(lambda: cluster.urls, per_second=3, seed=1)
    calling = asyncio.create_task(load.run())
    with Watcher(lambda: cluster.urls, [job_id]).watching() as watcher:
        for name in options.only or HOSTS:
            for way in options.way or ("kill", "cut"):
                await load.accepted(3)
                hurt = time.monotonic()
                await (cluster.restart(name) if way == "kill" else cluster.cut_off(name, options.away))
                await load.accepted(3)
                came_to.hurts.append(f"{way} {name}")
                say(f"{way} {name}: calls are accepted {time.monotonic() - hurt:.1f} s after it began")
        load.stop()
        calls = await calling
        await asyncio.to_thread(cluster.wait_until_up)
        await asyncio.to_thread(jobs.settle_job, cluster, job_id, came_to, PATIENCE * 5)
        account: Account = await settle(cluster.urls[0], calls, PATIENCE)
    came_to.seconds, came_to.samples = time.monotonic() - began, watcher.samples
    say(account.summary("calls"))
    say(came_to.summary("job"))
    say(f"workers at the end: {len(running(cluster.workers))}")
    return [*account.faults, *came_to.faults, *watcher.faults]


if __name__ == "__main__":
    sys.exit(main())
