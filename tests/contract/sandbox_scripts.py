"""Scripts that the contract of sandboxes is tried with, and what they returned."""

import json
from typing import Any

from scrapeyard.model import ExitReason
from scrapeyard.sandbox.port import Verdict

CASES = """
import asyncio, ctypes, os, sys, time
from scrapeyard_sdk import Blocked, Fail, FetchError, Retry, Skip

class Odd(Exception):
    def __str__(self):
        raise RuntimeError

def inner(): raise KeyError("deep")

def deep(n):
    value = []
    for _ in range(n): value = [value]
    return value

def circle():
    value = []; value.append(value)
    return value

def say(ctx):
    print("one"); print("two", file=sys.stderr); ctx.log("three", level="warning", n=3, x=1.5); print("four", end="")

def bare():
    os.write(1, b"bare\\n"); ctypes.CDLL(None).puts(b"from C"); ctypes.CDLL(None).fflush(None)
    print("original", file=sys.__stdout__)

def text(ctx):
    print("caf\\u00e9 \\U0001f600 \\ud800"); ctx.log("lone \\udfff", key="\\ud800")

def odd_fields(ctx):
    ctx.log(10**5000, huge=10**5000, inf=float("inf"), broken=Odd(), **{f"f{i}": i for i in range(50)})

ACTS = {
    "value": lambda ctx: {"run": ctx.run_id, "attempt": ctx.attempt, "text": "caf\\u00e9"},
    "nothing": lambda ctx: None,
    "raise": lambda ctx: inner(),
    "odd": lambda ctx: (_ for _ in ()).throw(Odd()),
    "exit": lambda ctx: sys.exit(3),
    "retry": lambda ctx: (_ for _ in ()).throw(Retry("later", after=7, engine="browser")),
    "retry_plain": lambda ctx: (_ for _ in ()).throw(Retry("later")),
    "retry_nan": lambda ctx: (_ for _ in ()).throw(Retry("later", after=float("nan"))),
    "retry_text": lambda ctx: (_ for _ in ()).throw(Retry("later", after="soon")),
    "retry_years": lambda ctx: (_ for _ in ()).throw(Retry("later", after=1e9)),
    "skip": lambda ctx: (_ for _ in ()).throw(Skip("empty")),
    "blocked": lambda ctx: (_ for _ in ()).throw(Blocked("captcha")),
    "fail": lambda ctx: (_ for _ in ()).throw(Fail("gone for good")),
    "own_fetch_error": lambda ctx: (_ for _ in ()).throw(FetchError("fetch_dns", "no name", "odd")),
    "memory": lambda ctx: len(bytearray(400 << 20)),
    "sleep": lambda ctx: time.sleep(600),
    "say": say, "bare": lambda ctx: bare(), "text": text, "odd_fields": odd_fields,
    "long_line": lambda ctx: print("x" * 100_000),
    "much_bare": lambda ctx: os.write(1, b"y" * 100_000),
    "much": lambda ctx: [print("line", n) for n in range(5000)] and None,
    "nan": lambda ctx: float("nan"), "inf": lambda ctx: [float("inf")], "complex": lambda ctx: {1j},
    "surrogate": lambda ctx: "\\ud800", "circle": lambda ctx: circle(), "deep": lambda ctx: deep(100_000),
    "too_deep": lambda ctx: deep(300), "deep_enough": lambda ctx: deep(150),
    "huge_int": lambda ctx: 10**300, "endless_int": lambda ctx: 10**5000, "bytes": lambda ctx: b"x",
    "large": lambda ctx: "x" * 900_000, "too_large": lambda ctx: "x" * 1_100_000,
    "kill": lambda ctx: os.kill(os.getpid(), 9),
    "die": lambda ctx: os._exit(7),
    "stop": lambda ctx: os.kill(os.getpid(), 33),
    "crash": lambda ctx: ctypes.string_at(0),
    "folder": lambda ctx: [os.getcwd(), os.environ["HOME"], open("mine", "w").write("x"), sorted(os.listdir())],
    "environment": lambda ctx: sorted(os.environ),
}

def run(ctx, case: str):
    return ACTS[case](ctx)
"""
ASYNC = """
import asyncio
from scrapeyard_sdk import ArtifactError, FetchError

async def outcome(awaitable):
    try:
        await awaitable
    except (ArtifactError, FetchError, ValueError) as error:
        return type(error).__name__ + ": " + str(error)
    return "ok"

async def fetches(ctx):
    page, pages = await ctx.fetch("http://a.test/"), await ctx.fetch_all([f"http://a.test/{n}" for n in range(20)])
    post = await ctx.fetch("http://a.test/", json={"a": 1}, headers={"x-a": "b"}, params={"q": "1"}, timeout=3)
    return [page.status, page.text("h1"), len(pages), post.text("h1")]

async def artifacts(ctx):
    names = ["page.html", "full", "../up", "n" * 300, "a\\nb"]
    told = [await outcome(ctx.artifact(name, "<p>")) for name in names]
    return [*told, await outcome(ctx.artifact("big", b"x" * 2**21))]

async def wrong(ctx):
    options = [{"timeout": 0}, {"timeout": "x"}, {"max_bytes": -1}, {"headers": {"x" * 300: "y"}}]
    return [await outcome(ctx.fetch("http://a.test/", **option)) for option in options]

async def run(ctx, case: str):
    if case == "fetches": return await fetches(ctx)
    if case == "refused": return (await ctx.fetch("http://refused.test/")).status
    if case == "artifacts": return await artifacts(ctx)
    if case == "wrong": return await wrong(ctx)
    if case == "too_many": return [await outcome(ctx.fetch("http://a.test/")) for _ in range(42)]
    if case == "wait":
        ctx.log("waiting")
        await asyncio.sleep(600)
    return case
"""


def result(verdict: Verdict) -> Any:
    """What a run that succeeded returned."""
    assert verdict.exit_reason is ExitReason.SUCCEEDED, verdict
    assert verdict.result is not None
    return json.loads(bytes(verdict.result))
