"""The load generator: one process, keep-alive connections, a closed loop.

Each client sends its next request when the last was answered. Answers during the warm-up are not counted. Run as a
program it reads a plan as JSON from stdin and prints what it measured: `drive` does both from outside, so that making
load never shares an interpreter with anything else.
"""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from typing import Any, cast

import httptools
import msgspec
import uvloop
from msgspec import Struct

from benchmarks.processes import ROOT, clean_environment
from benchmarks.quantiles import quantile

_KEPT_BODIES = 20_000
_DRAIN_SECONDS = 2.0
"""How long requests under way may take after the window; then their connections are closed."""


class Target(Struct, frozen=True, kw_only=True):
    """Where a no-op is asked for."""

    port: int
    path: str
    body: str
    method: str = "POST"
    host: str = "127.0.0.1"
    headers: dict[str, str] = {}
    """Beside the usual ones."""

    def request(self) -> bytes:
        """The whole request as bytes: the same every time."""
        payload = self.body.encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        head = (
            f"{self.method} {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json\r\nContent-Length: {len(payload)}\r\n{more}\r\n"
        )
        return head.encode() + payload


class Plan(Struct, frozen=True, kw_only=True):
    """What one run of the generator does."""

    target: Target
    clients: int
    seconds: float
    warmup_seconds: float = 0.5
    keep_timing: bool = False
    """Whether to keep the `timing` object of each answer."""


class Load(Struct, frozen=True, kw_only=True):
    """What one run of the generator saw. `errors` counts every answer that was not a 200, by what it was."""

    answers: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    errors: dict[str, int]
    unanswered: int
    """Requests still under way some time after the window: a system with a long line leaves many."""
    timing: list[dict[str, Any]]


class LoadFailed(Exception):
    """The generator could not measure: nothing was answered, or it ended badly."""


def drive(plan: Plan) -> Load:
    """Run the generator in a process of its own. Raises LoadFailed when not one good answer came."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=msgspec.json.encode(plan),
        capture_output=True,
        cwd=ROOT,
        env=clean_environment(),
        timeout=plan.warmup_seconds + plan.seconds + _DRAIN_SECONDS + 20,
        check=False,
    )
    if done.returncode:
        raise LoadFailed(done.stderr.decode("utf-8", "replace")[-1500:])
    load = msgspec.json.decode(done.stdout, type=Load)
    if not load.answers:
        raise LoadFailed(f"no good answer in {plan.seconds} s: {load.errors or 'silence'}")
    return load


class Score:
    """Counts what ends within the window."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._from = time.perf_counter() + plan.warmup_seconds
        self.until = self._from + plan.seconds
        self._latencies: list[float] = []
        self._bodies: list[bytes] = []
        self._errors: Counter[str] = Counter()
        self._unanswered = 0

    def answered(self, *, status: int, body: bytes, began: float) -> None:
        """One answer has come whole."""
        now = time.perf_counter()
        if not self._from <= now <= self.until:
            return
        if status != 200:
            self._errors[f"status {status}"] += 1
            return
        self._latencies.append(now - began)
        if self._plan.keep_timing and len(self._bodies) < _KEPT_BODIES:
            self._bodies.append(body)

    def unanswered(self) -> None:
        """A request is still under way at the end."""
        self._unanswered += 1

    def failed(self, why: str) -> None:
        """A request got no answer."""
        self._errors[why] += 1

    def load(self) -> Load:
        """The figures."""
        spent = sorted(latency * 1000 for latency in self._latencies)
        return Load(
            answers=len(spent),
            per_second=len(spent) / self._plan.seconds,
            p50_ms=quantile(spent, 0.5),
            p95_ms=quantile(spent, 0.95),
            p99_ms=quantile(spent, 0.99),
            errors=dict(self._errors),
            unanswered=self._unanswered,
            timing=[msgspec.json.decode(body).get("timing") or {} for body in self._bodies],
        )


class Client(asyncio.Protocol):
    """One connection that asks, hears the whole answer, and asks again until the window ends."""

    def __init__(self, request: bytes, score: Score, finished: asyncio.Future[bool]) -> None:
        self._request = request
        self._score = score
        self._finished = finished
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._body += body

    def on_message_complete(self) -> None:
        """Called by the parser."""
        body = bytes(self._body)
        self._body.clear()
        self._score.answered(status=self._parser.get_status_code(), body=body, began=self._began)
        if time.perf_counter() >= self._score.until:
            self._finish(False)
        elif self._parser.should_keep_alive():
            self._ask()
        else:
            self._finish(True)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self._finished.done():
            self._score.failed("connection lost")
            self._finish(time.perf_counter() < self._score.until)

    def give_up(self) -> None:
        """The window is over and no answer has come."""
        if not self._finished.done():
            self._score.unanswered()
            self._finish(False)

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._request)

    def _finish(self, again: bool) -> None:
        if not self._finished.done():
            self._finished.set_result(again)
        self._transport.close()


async def _client(target: Target, score: Score) -> None:
    """A client for the whole window; a closed connection is opened again."""
    loop = asyncio.get_running_loop()
    request = target.request()
    again = True
    while again:
        finished: asyncio.Future[bool] = loop.create_future()
        client = Client(request, score, finished)
        try:
            await loop.create_connection(lambda: client, target.host, target.port)  # noqa: B023 - called at once
        except OSError as error:
            score.failed(f"cannot connect: {error.strerror}")
            return
        giving_up = loop.call_later(score.until - time.perf_counter() + _DRAIN_SECONDS, client.give_up)
        again = await finished
        giving_up.cancel()


async def _measure(plan: Plan) -> Load:
    score = Score(plan)
    async with asyncio.TaskGroup() as clients:
        for _ in range(plan.clients):
            clients.create_task(_client(plan.target, score))
    return score.load()


def main() -> None:
    """Read a plan, carry it out, print the figures."""
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(_measure(plan))))


if __name__ == "__main__":
    main()
