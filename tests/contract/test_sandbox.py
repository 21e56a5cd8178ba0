"""What every sandbox promises, whichever walls it could raise."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.errors import SandboxError, ScraperInvalid
from scrapeyard.model import ExitReason
from scrapeyard.sandbox.port import Verdict
from tests.contract.sandboxes import (
    CONFIGURATIONS,
    SMALL,
    Bench,
    Served,
    Walls,
    bench,
    descendants,
    eventually,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
HERE = Path(__file__)

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
    "retry_nan": lambda ctx: (_ for _ in ()).throw(Retry("later", after=float("nan"))),
    "retry_text": lambda ctx: (_ for _ in ()).throw(Retry("later", after="soon")),
    "retry_years": lambda ctx: (_ for _ in ()).throw(Retry("later", after=1e9)),
    "skip": lambda ctx: (_ for _ in ()).throw(Skip("empty")),
    "blocked": lambda ctx: (_ for _ in ()).throw(Blocked("captcha")),
    "fail": lambda ctx: (_ for _ in ()).throw(Fail("gone for good")),
    "own_fetch_error": lambda ctx: (_ for _ in ()).throw(FetchError("fetch_dns", "no name", "odd")),
    "memory": lambda ctx: len(bytearray(400 << 20)),
    "sleep": lambda ctx: time.sleep(60),
    "say": say, "bare": lambda ctx: bare(), "text": text, "odd_fields": odd_fields,
    "long_line": lambda ctx: print("x" * 100_000),
    "much_bare": lambda ctx: os.write(1, b"y" * 100_000),
    "much": lambda ctx: [print("line", n) for n in range(5000)] and None,
    "nan": lambda ctx: float("nan"), "inf": lambda ctx: [float("inf")], "set": lambda ctx: {1},
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
        await asyncio.sleep(60)
    return case
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS, ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    walls: Walls = request.param
    async with bench(walls) as made:
        yield made


def result(verdict: Verdict) -> Any:
    assert verdict.exit_reason is ExitReason.SUCCEEDED, verdict
    assert verdict.result is not None
    return json.loads(bytes(verdict.result))


async def test_a_plain_function_returns_its_value(stand: Bench) -> None:
    verdict = await stand.run(CASES, case="value")
    assert result(verdict) == {"run": "run_1", "attempt": 1, "text": "café"}
    assert verdict.wall_ms > 0
    assert verdict.cpu_ms > 0
    assert verdict.memory_mb > 1
    assert result(await stand.run(CASES, case="nothing")) is None


async def test_a_coroutine_returns_its_value(stand: Bench) -> None:
    assert result(await stand.run(ASYNC, case="echo")) == "echo"


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_generator_sends_its_records_in_order(stand: Bench, kind: str) -> None:
    verdict = await stand.run(f"{kind} run(ctx, n: int):\n    for i in range(n): yield {{'i': i}}", n=500)
    assert result(verdict) == [{"i": i} for i in range(500)]
    assert verdict.records == 500
    assert result(await stand.run(f"{kind} run(ctx, n: int):\n    for i in range(n): yield i", n=0)) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [({}, "case"), ({"case": "x", "more": 1}, "more"), ({"case": "x", "ctx": 1}, "ctx")],
)
async def test_input_that_does_not_fit_the_function_is_bad_input(
    stand: Bench, given: dict[str, Any], words: str
) -> None:
    verdict = await stand.run(CASES, **given)
    assert verdict.exit_reason is ExitReason.BAD_INPUT
    assert verdict.error is not None
    assert words in verdict.error.message


async def test_input_reaches_the_script_as_it_is(stand: Bench) -> None:
    given: dict[str, Any] = {
        "text": "caf\u00e9 \U0001f600",
        "number": 2**60,
        "deep": [[{"a": None}]],
        "big": "x" * 2_000_000,
    }
    echo = "def run(ctx): return [len(ctx.input['big']), {k: v for k, v in ctx.input.items() if k != 'big'}]"
    size, rest = result(await stand.run(echo, **given))
    assert size == 2_000_000
    assert rest == {key: value for key, value in given.items() if key != "big"}


async def test_an_exception_is_told_with_the_scripts_frames_alone(stand: Bench) -> None:
    verdict = await stand.run(CASES, case="raise")
    assert verdict.exit_reason is ExitReason.SCRIPT_ERROR
    assert verdict.error is not None
    assert verdict.error.type == "KeyError"
    assert "inner" in verdict.error.traceback
    assert "scrapeyard_sdk" not in verdict.error.traceback
    assert "sandbox" not in verdict.error.traceback


@pytest.mark.parametrize("case", ["odd", "exit"])
async def test_whatever_leaves_the_script_is_a_script_error(stand: Bench, case: str) -> None:
    assert (await stand.run(CASES, case=case)).exit_reason is ExitReason.SCRIPT_ERROR


@pytest.mark.parametrize(
    ("case", "reason", "after"),
    [
        ("retry", ExitReason.RETRY, 7.0),
        ("retry_nan", ExitReason.RETRY, 0.0),
        ("retry_text", ExitReason.RETRY, 0.0),
        ("retry_years", ExitReason.RETRY, 86400.0),
        ("skip", ExitReason.SKIPPED, None),
        ("blocked", ExitReason.BLOCKED, None),
        ("fail", ExitReason.FAILED, None),
        ("own_fetch_error", ExitReason.FETCH_DNS, None),
    ],
)
async def test_the_verbs_steer(stand: Bench, case: str, reason: ExitReason, after: float | None) -> None:
    verdict = await stand.run(CASES, case=case)
    assert verdict.exit_reason is reason
    assert verdict.retry_after == after
    assert verdict.result is None


async def test_memory_is_limited(stand: Bench) -> None:
    assert (await stand.run(CASES, case="memory")).exit_reason is ExitReason.MEMORY_LIMIT


async def test_a_run_that_takes_too_long_is_killed(stand: Bench) -> None:
    verdict = await stand.run(CASES, case="sleep", limits=replace(SMALL, wall_seconds=0.3))
    assert verdict.exit_reason is ExitReason.TIMEOUT
    assert 300 <= verdict.wall_ms < 2000


async def test_cancelling_kills_the_child_and_is_felt_by_the_caller(stand: Bench) -> None:
    served = Served()
    task = asyncio.create_task(stand.run(ASYNC, served, case="wait"))
    await served.seen.wait()
    before = set(descendants(os.getpid()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: before - set(descendants(os.getpid())), lambda: "the child lives on")
    assert result(await stand.run(ASYNC, case="next")) == "next"


async def test_cancelling_at_any_moment_of_the_start_leaves_the_scraper_usable(stand: Bench) -> None:
    scraper = stand.scraper(ASYNC)
    for turns in range(12):
        task = asyncio.create_task(stand.run(scraper, case="x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert result(await stand.run(scraper, case="still")) == "still"


async def test_what_is_written_is_captured_in_order(stand: Bench) -> None:
    served = Served()
    await stand.run(CASES, served, case="say")
    told = [(line.stream, line.text, line.level) for line in served.logs]
    assert sorted(told[:3]) == sorted(
        [("stdout", "one", "info"), ("stderr", "two", "info"), ("log", "three", "warning")]
    )
    assert told[0][1] == "one"
    assert told[3] == ("stdout", "four", "info")
    assert served.logs[2].fields == {"n": 3, "x": 1.5}
    assert [line.at_ms for line in served.logs] == sorted(line.at_ms for line in served.logs)


async def test_bare_descriptors_are_captured_too(stand: Bench) -> None:
    served = Served()
    result(await stand.run(CASES, served, case="bare"))
    assert sorted(served.text) == ["bare", "from C", "original"]


async def test_text_that_no_encoding_takes_is_logged_without_it(stand: Bench) -> None:
    served = Served()
    result(await stand.run(CASES, served, case="text"))
    assert served.text == ["café \U0001f600 ?", "lone ?"]
    assert served.logs[1].fields == {"key": "?"}


async def test_odd_fields_never_end_a_run(stand: Bench) -> None:
    served = Served()
    result(await stand.run(CASES, served, case="odd_fields"))
    assert len(served.logs[0].fields) == 20
    assert served.logs[0].fields["inf"] == "inf"


@pytest.mark.parametrize("case", ["much", "long_line", "much_bare"])
async def test_logs_are_cut_at_their_cap_and_said_so(stand: Bench, case: str) -> None:
    served = Served()
    verdict = await stand.run(CASES, served, case=case)
    assert verdict.exit_reason is ExitReason.SUCCEEDED
    assert verdict.logs_cut
    assert 0.8 * SMALL.log_kb * 1024 < sum(len(text) + 32 for text in served.text) <= SMALL.log_kb * 1024 + 64


async def test_logs_within_their_cap_are_whole(stand: Bench) -> None:
    assert not (await stand.run(CASES, case="say")).logs_cut


async def test_fetches_are_answered(stand: Bench) -> None:
    served = Served()
    assert result(await stand.run(ASYNC, served, case="fetches")) == [200, "GET 0", 20, "POST 8"]
    assert len(served.asked) == 22
    assert served.asked[-1].headers == {"x-a": "b", "content-type": "application/json"}
    assert served.asked[-1].url == "http://a.test/?q=1"
    assert served.asked[-1].timeout_seconds == 3


async def test_a_plain_function_fetches_too(stand: Bench) -> None:
    script = "def run(ctx): return [p.status for p in ctx.fetch_all(['http://a.test/1', 'http://missing.test/2'])]"
    assert result(await stand.run(script)) == [200, 404]


async def test_a_failed_fetch_ends_the_run_with_its_reason(stand: Bench) -> None:
    verdict = await stand.run(ASYNC, case="refused")
    assert verdict.exit_reason is ExitReason.FETCH_CONNECT
    assert verdict.error is not None
    assert "nobody listens" in verdict.error.message


async def test_too_many_fetches_are_refused_in_words(stand: Bench) -> None:
    told = result(await stand.run(ASYNC, case="too_many"))
    assert told[:40] == ["ok"] * 40
    assert all("40 pages" in words for words in told[40:])


async def test_wrong_options_are_the_scripts_errors(stand: Bench) -> None:
    told = result(await stand.run(ASYNC, case="wrong"))
    assert all(words.startswith("ValueError: fetch():") for words in told), told


async def test_artifacts_are_kept_or_refused_in_words(stand: Bench) -> None:
    served = Served()
    told = result(await stand.run(ASYNC, served, case="artifacts"))
    assert told[0] == "ok"
    assert "disk is full" in told[1]
    assert "name" in told[2]
    assert "name" in told[3]
    assert "name" in told[4]
    assert "1 MB" in told[5]
    assert served.artifacts == {"page.html": ("text/html", b"<p>")}


async def test_validate_result_corrects_accepts_and_refuses(stand: Bench) -> None:
    hook = """
def validate_result(value):
    if value == "bad": raise ValueError("not this")
    return value.upper() if value == "low" else None
"""
    script = "def run(ctx, value: str): return value\n" + hook
    assert result(await stand.run(script, value="low")) == "LOW"
    assert result(await stand.run(script, value="fine")) == "fine"
    verdict = await stand.run(script, value="bad")
    assert verdict.exit_reason is ExitReason.BAD_RESULT
    assert verdict.error is not None
    assert "not this" in verdict.error.message
    records = "def run(ctx):\n    yield 'low'\n    yield 'x'\n" + hook
    assert result(await stand.run(records)) == ["LOW", "x"]


@pytest.mark.parametrize(
    "case", ["nan", "inf", "set", "surrogate", "circle", "deep", "too_deep", "endless_int", "bytes"]
)
async def test_what_is_not_json_is_a_bad_result(stand: Bench, case: str) -> None:
    verdict = await stand.run(CASES, case=case)
    assert verdict.exit_reason is ExitReason.BAD_RESULT, verdict


async def test_unusual_json_passes(stand: Bench) -> None:
    assert result(await stand.run(CASES, case="huge_int")) == 10**300
    assert len(result(await stand.run(CASES, case="large"))) == 900_000
    assert str(result(await stand.run(CASES, case="deep_enough"))).count("[") == 151


async def test_output_is_limited(stand: Bench) -> None:
    assert (await stand.run(CASES, case="too_large")).exit_reason is ExitReason.OUTPUT_LIMIT
    endless = "def run(ctx):\n    while True: yield 'x' * 1000"
    assert (await stand.run(endless)).exit_reason is ExitReason.OUTPUT_LIMIT


@pytest.mark.parametrize("case", ["die", "kill", "crash", "stop"])
async def test_a_child_that_dies_without_a_word_has_crashed(stand: Bench, case: str) -> None:
    verdict = await stand.run(CASES, case=case)
    expected = {ExitReason.CRASHED}
    if case in ("kill", "stop"):
        expected |= {ExitReason.SCRIPT_ERROR, ExitReason.SUCCEEDED}  # some walls refuse even a signal to oneself
    assert verdict.exit_reason in expected, verdict
    assert verdict.wall_ms < 2000


async def test_a_child_killed_from_outside_has_crashed(stand: Bench) -> None:
    served = Served()
    before = set(descendants(os.getpid()))
    task = asyncio.create_task(stand.run("import time\ndef run(ctx): ctx.log('up'); time.sleep(60)", served))
    await served.seen.wait()
    sleeper = next(session.child.pid for session in stand.sandbox._watch._sessions)
    assert sleeper not in before
    os.kill(sleeper, signal.SIGKILL)
    assert (await task).exit_reason is ExitReason.CRASHED


async def test_each_run_has_a_folder_of_its_own(stand: Bench) -> None:
    first, second = [result(await stand.run(CASES, case="folder")) for _ in range(2)]
    assert first[0] == first[1] != second[0]
    assert "mine" in first[3]
    assert second[3].count("mine") == 1


async def test_nothing_of_the_workers_environment_is_inherited(stand: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    names = result(await stand.run(CASES, case="environment"))
    assert set(names) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR"}


async def test_twenty_runs_at_once(stand: Bench) -> None:
    scraper = stand.scraper("import time\ndef run(ctx, n: int):\n    time.sleep(0.05)\n    return [n, ctx.run_id]")
    verdicts = await asyncio.gather(*(stand.run(scraper, n=n, run_id=f"run_{n}") for n in range(20)))
    assert [result(verdict) for verdict in verdicts] == [[n, f"run_{n}"] for n in range(20)]


async def test_children_are_forked_ahead(stand: Bench) -> None:
    scraper = stand.scraper("def run(ctx): return 1\n# ahead")
    first = await stand.run(scraper)
    assert first.exit_reason is ExitReason.SUCCEEDED
    parent = stand.sandbox._parents[scraper.ref.digest]
    await eventually(lambda: len(parent._ready) == 2)
    assert (await stand.run(scraper)).forked_ahead


async def test_what_one_run_imports_later_ones_have_from_the_start(stand: Bench) -> None:
    scraper = stand.scraper(
        "import sys\ndef run(ctx):\n    had = 'colorsys' in sys.modules\n    import colorsys\n    return had\n"
    )
    assert result(await stand.run(scraper)) is False
    had = [result(await stand.run(scraper)) for _ in range(6)]
    assert had[-1] is True, "children that were being forked meanwhile are used up by now"


async def test_an_import_that_fails_for_the_parent_harms_no_run(stand: Bench) -> None:
    code = "import sys\ndef run(ctx):\n    sys.modules['no.such.module'] = sys\n    return 1\n"
    scraper = stand.scraper(code)
    assert [result(await stand.run(scraper)) for _ in range(3)] == [1, 1, 1]


async def test_an_edit_is_another_scraper_and_both_may_run(stand: Bench) -> None:
    old, new = stand.scraper("def run(ctx): return 'old'"), stand.scraper("def run(ctx): return 'new'")
    verdicts = await asyncio.gather(*(stand.run(scraper) for scraper in (old, new, old, new)))
    assert [result(verdict) for verdict in verdicts] == ["old", "new", "old", "new"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def run(ctx:", "SyntaxError"),
        ("raise ValueError('at import')", "at import"),
        ("x = 1", "no function run"),
        ("import sys; sys.exit(1)", "1"),
        ("import nowhere_to_be_found", "nowhere_to_be_found"),
    ],
)
async def test_a_script_that_cannot_be_loaded_is_invalid(stand: Bench, source: str, words: str) -> None:
    verdict = await stand.run(source)
    assert verdict.exit_reason is ExitReason.SCRAPER_INVALID
    assert verdict.error is not None
    assert words in verdict.error.message + verdict.error.type
    with pytest.raises(ScraperInvalid):
        await stand.sandbox.check(stand.scraper(source))


async def test_check_loads_without_running(stand: Bench) -> None:
    await stand.sandbox.check(stand.scraper("def run(ctx): raise SystemExit"))


async def test_a_script_may_import_its_neighbours_and_read_them(stand: Bench) -> None:
    scraper = stand.scraper("import near\ndef run(ctx): return [near.X, open(near.__file__).read()[:5]]")
    assert scraper.folder is not None
    (scraper.folder / "near.py").write_text("X = 5\n")
    assert result(await stand.run(scraper)) == [5, "X = 5"]


async def test_the_walls_are_told(stand: Bench) -> None:
    told = {wall.name: wall for wall in stand.sandbox.walls()}
    for name in stand.walls.settings.without:
        assert not told[name].up
        assert "without" in told[name].detail
    if stand.walls.settings.mode == "off":
        assert not any(wall.up for wall in told.values())


async def test_a_killed_zygote_is_replaced(stand: Bench) -> None:
    served = Served()
    task = asyncio.create_task(stand.run(ASYNC, served, case="wait"))
    await served.seen.wait()
    os.kill(stand.sandbox._zygotes[""].pid, signal.SIGKILL)
    with pytest.raises(SandboxError):
        await task
    assert result(await stand.run(ASYNC, case="again")) == "again"


async def test_a_killed_parent_is_replaced(stand: Bench) -> None:
    scraper, served = stand.scraper(ASYNC), Served()
    task = asyncio.create_task(stand.run(scraper, served, case="wait"))
    await served.seen.wait()
    os.kill(stand.sandbox._parents[scraper.ref.digest].pid, signal.SIGKILL)
    with pytest.raises(SandboxError):
        await task
    assert result(await stand.run(scraper, case="again")) == "again"


WORKER = """
import asyncio, sys
from tests.contract.sandboxes import CONFIGURATIONS, Served, bench

SPIN = "x = 0\\nwhile True: x += 1"
SLEEP = "import time\\ndef run(ctx):\\n    ctx.log('up')\\n    time.sleep(60)"

async def main():
    walls = next(walls for walls in CONFIGURATIONS if walls.name == sys.argv[1])
    async with bench(walls) as made:
        served = Served()
        runs = [asyncio.create_task(made.run(SLEEP, served)) for _ in range(2)]
        await served.seen.wait()
        loading = asyncio.create_task(made.run(SPIN))
        while len([p for p in made.sandbox._by_number.values() if p.pid]) < 2:
            await asyncio.sleep(0.01)
        print("up", made.sandbox._folder, flush=True)
        await asyncio.gather(*runs, loading)

asyncio.run(main())
"""


async def test_a_killed_worker_takes_everything_along(stand: Bench) -> None:
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, stand.walls.name, stdout=subprocess.PIPE, cwd=HERE.parents[2]
    )
    assert worker.stdout is not None
    told = (await worker.stdout.readuntil(b"up ") + await worker.stdout.readline()).decode().split()
    family = set(descendants(worker.pid))
    assert len(family) >= 5
    worker.kill()
    await worker.wait()
    await eventually(lambda: not any(_lives(pid) for pid in family), lambda: f"of {family}", seconds=2)
    async with bench(stand.walls):
        assert not Path(told[-1]).exists()
    worker._transport.close()  # type: ignore[attr-defined]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_strict_refuses_to_start_without_a_wall() -> None:
    walls = Walls(name="strict", settings=CONFIGURATIONS[2].settings.model_copy(update={"mode": "strict"}))
    with pytest.raises(SandboxError, match="landlock"):
        async with bench(walls):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="this process has no privileges to give up: the others ran without them")
@pytest.mark.timeout(180)
async def test_all_of_it_holds_for_a_worker_without_privileges() -> None:
    with tempfile.TemporaryDirectory(prefix="unprivileged-") as folder:
        shutil.chown(folder, 65534, 65534)
        tests = [str(HERE), "-k", "all or namespaces", "-p", "no:cacheprovider", f"--basetemp={folder}/base"]
        process = await asyncio.create_subprocess_exec(
            "unshare", "--mount", "--propagation=private", "sh", "-ec",
            f"{_uncover(Path(sys.base_prefix), Path(folder))} exec setpriv --reuid=65534 --regid=65534 --clear-groups"
            ' --inh-caps=-all --bounding-set=-all "$@"',
            "sh", sys.executable, "-B", "-m", "pytest", *tests,
            env={"PATH": os.environ["PATH"], "TMPDIR": folder, "HOME": folder}, cwd=HERE.parents[2],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-6000:]
    assert b"passed" in output


def _uncover(prefix: Path, folder: Path) -> str:
    """Shell commands that, in a mount namespace, make an interpreter below a private folder readable for all."""
    private = [place for place in reversed(prefix.parents) if place.stat().st_mode & 0o005 != 0o005]
    if not private:
        return ""
    kept = folder / "kept"
    kept.mkdir()
    return (
        f"mount --bind {prefix} {kept}; mount -t tmpfs -o mode=755 none {private[0]};"
        f" mkdir -p {prefix}; mount --bind {kept} {prefix};"
    )
