"""The queue on Redis of this checkout beside that of another: messages a second, and latency from publish to take.

`python -m benchmarks.redis_queue --beside FOLDER` takes the folder of another checkout. The two take short turns on one
server, so that a slow moment of the machine falls on both. For each checkout one process publishes and one takes; each
taker in it has a queue, and so connections, of its own.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop
from msgspec import Raw, Struct

from benchmarks.processes import ROOT
from benchmarks.quantiles import median, quantile
from benchmarks.report import spread
from scrapeyard.model import Delivery, Priority
from scrapeyard.queues.redis.queue import RedisQueue

_TAKERS = (1, 4)
_PACED = 100
_PACE_SECONDS = 0.003
_FLOOD = 1500
_PUBLISHERS = 8
"""Callers that publish one delivery after another, all at once."""
_SLOTS = 8
"""How many deliveries a taker asks for at once."""


class Turn(Struct, frozen=True, kw_only=True):
    """One short turn of one checkout."""

    p50_ms: float
    p99_ms: float
    per_second: float
    cpu_us: float
    """Processor time of both processes for one message of the flood."""
    per_take: float
    """Messages of the flood that one take got."""


def main() -> None:
    """Print the median over the rounds, and from where to where they went."""
    given = _parser().parse_args()
    if given.role:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_ROLES[given.role](given.url, given.prefix, given.takers))
        return
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        from tests.services.valkey import ValkeyServer
    checkouts = {"here": ROOT, **({"beside": given.beside.resolve()} if given.beside else {})}
    with ValkeyServer() as server:
        for takers in _TAKERS:
            _show(takers, _measure(checkouts, server.url, takers, given.rounds))


def _measure(checkouts: dict[str, Path], url: str, takers: int, rounds: int) -> dict[str, list[Turn]]:
    turns: dict[str, list[Turn]] = {name: [] for name in checkouts}
    with contextlib.ExitStack() as stack:
        pairs = {name: stack.enter_context(_pair(name, path, url, takers)) for name, path in checkouts.items()}
        for number in range(rounds + 1):
            for name in sorted(pairs, reverse=bool(number % 2)):
                turn = pairs[name].turn()
                if number:  # the first one warms up
                    turns[name].append(turn)
    return turns


def _show(takers: int, turns: dict[str, list[Turn]]) -> None:
    for name, found in turns.items():
        figures = (f"{field} {spread([getattr(turn, field) for turn in found])}" for field in Turn.__struct_fields__)
        print(f"{takers} takers, {name}: {', '.join(figures)}")
    if "beside" in turns:
        pairs = list(zip(turns["here"], turns["beside"], strict=True))
        parts = {
            field: median(getattr(here, field) / getattr(other, field) for here, other in pairs)
            for field in Turn.__struct_fields__
        }
        figures = (f"{field} {part:.2f}" for field, part in parts.items())
        print(f"{takers} takers, here / beside, median of the rounds: {', '.join(figures)}")


class _Pair(Struct, frozen=True):
    """The two processes of one checkout, which do as they are told on their stdin."""

    taking: subprocess.Popen[str]
    publishing: subprocess.Popen[str]

    def turn(self) -> Turn:
        """Deliveries at a pace, then as many as go through."""
        paced, _ = self._pass(_PACED, _PACE_SECONDS)
        flood, began = self._pass(_FLOOD, 0.0)
        waits = sorted(paced["waits"])
        return Turn(
            p50_ms=quantile(waits, 0.5) * 1000,
            p99_ms=quantile(waits, 0.99) * 1000,
            per_second=_FLOOD / (flood["ended"] - began["began"]),
            cpu_us=(flood["cpu"] + began["cpu"]) / _FLOOD * 1e6,
            per_take=_FLOOD / flood["takes"],
        )

    def _pass(self, wanted: int, pace: float) -> tuple[dict[str, Any], dict[str, Any]]:
        _tell(self.taking, [wanted])
        _hear(self.taking)
        _tell(self.publishing, [wanted, pace])
        published = _hear(self.publishing)
        return _hear(self.taking), published


def _tell(process: subprocess.Popen[str], words: list[float]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(words) + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@contextlib.contextmanager
def _pair(name: str, checkout: Path, url: str, takers: int) -> Iterator[_Pair]:
    """They end when their stdin is closed."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(ROOT)))}
    given = ["--url", url, "--prefix", name, "--takers", str(takers)]
    with contextlib.ExitStack() as stack:
        taking, publishing = (
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.redis_queue", *given, "--role", role],
                    env=env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for role in _ROLES
        )
        yield _Pair(taking, publishing)


async def _take(url: str, prefix: str, takers: int) -> None:
    queues = [RedisQueue(url, prefix=prefix) for _ in range(takers)]
    for queue in queues:
        await queue.start()
    while line := await asyncio.to_thread(sys.stdin.readline):
        await _take_many(queues, json.loads(line)[0])
    for queue in queues:
        await queue.stop()


async def _take_many(queues: list[RedisQueue], wanted: int) -> None:
    waits: list[float] = []
    takes = 0
    done = asyncio.Event()

    async def taker(queue: RedisQueue) -> None:
        nonlocal takes
        while True:
            found = await queue.take(["default"], _SLOTS, tuple(Priority), 5.0)
            now = time.monotonic()
            takes += 1
            waits.extend(now - delivery.queued_at for delivery in found)
            if len(waits) >= wanted:
                done.set()

    tasks = [asyncio.create_task(taker(queue)) for queue in queues]
    await asyncio.sleep(0.02)
    print("0", flush=True)
    cpu = time.process_time()
    await done.wait()
    ended, cpu = time.monotonic(), time.process_time() - cpu
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps({"waits": waits, "ended": ended, "cpu": cpu, "takes": takes}), flush=True)


async def _publish(url: str, prefix: str, _takers: int) -> None:
    queue = RedisQueue(url, prefix=prefix)
    await queue.start()
    while line := await asyncio.to_thread(sys.stdin.readline):
        wanted, pace = json.loads(line)
        left = iter(range(wanted))
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.gather(*(_publish_some(queue, left, pace) for _ in range(1 if pace else _PUBLISHERS)))
        print(json.dumps({"began": began, "cpu": time.process_time() - cpu}), flush=True)
    await queue.stop()


async def _publish_some(queue: RedisQueue, left: Iterator[int], pace: float) -> None:
    for number in left:
        await queue.publish([_delivery(number)])
        if pace:
            await asyncio.sleep(pace)


def _delivery(number: int) -> Delivery:
    now = time.monotonic()
    text = Raw(b'{"url":"https://www.shop.example/products/tea?page=2"}')
    return Delivery(run_id=f"run_{number:020}", scraper="shop/product@1", input=text, created_at=now, queued_at=now)


_ROLES = {"take": _take, "publish": _publish}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_queue", description="The queue on Redis")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout, measured by turns with this")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each; figures are medians (40)")
    for name in ("--role", "--url", "--prefix"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    parser.add_argument("--takers", type=int, default=1, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
