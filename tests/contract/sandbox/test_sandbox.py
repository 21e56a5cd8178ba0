"""What every sandbox promises about processes and walls, whichever it could raise."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.errors import SandboxError, ScraperInvalid
from scrapeyard.model import ExitReason
from tests.contract.sandbox_scripts import ASYNC, CASES, result
from tests.contract.sandboxes import CONFIGURATIONS, SMALL, Bench, Served, Walls, bench, descendants, eventually
from tests.leaks import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")
HERE = Path(__file__)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS, ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    walls: Walls = request.param
    async with bench(walls) as made:
        yield made


async def test_a_plain_function_returns_its_value(stand: Bench) -> None:
    verdict = await stand.run(CASES, case="value")
    assert result(verdict) == {"run": "run_1", "attempt": 1, "text": "café"}
    assert verdict.wall_ms > 0
    assert verdict.cpu_ms > 0
    assert verdict.memory_mb > 1
    assert result(await stand.run(CASES, case="nothing")) is None


async def test_a_coroutine_returns_its_value(stand: Bench) -> None:
    assert result(await stand.run(ASYNC, case="echo")) == "echo"


async def test_memory_is_limited(stand: Bench) -> None:
    assert (await stand.run(CASES, case="memory")).exit_reason is ExitReason.MEMORY_LIMIT


async def test_a_run_that_takes_too_long_is_killed(stand: Bench) -> None:
    verdict = await stand.run(CASES, case="sleep", limits=replace(SMALL, wall_seconds=0.3))
    assert verdict.exit_reason is ExitReason.TIMEOUT
    assert 300 <= verdict.wall_ms < PATIENCE * 1000, "by itself it would have slept far longer"


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
        task = asyncio.create_task(stand.run(scraper, case="wait"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert result(await stand.run(scraper, case="still")) == "still"


async def test_bare_descriptors_are_captured_too(stand: Bench) -> None:
    served = Served()
    result(await stand.run(CASES, served, case="bare"))
    assert sorted(served.text) == ["bare", "from C", "original"]


@pytest.mark.parametrize("case", ["die", "kill", "crash", "stop"])
async def test_a_child_that_dies_without_a_word_has_crashed(stand: Bench, case: str) -> None:
    verdict = await stand.run(CASES, case=case)
    expected = {ExitReason.CRASHED}
    if case in ("kill", "stop"):
        expected |= {ExitReason.SCRIPT_ERROR, ExitReason.SUCCEEDED}  # some walls refuse even a signal to oneself
    assert verdict.exit_reason in expected, verdict
    assert verdict.wall_ms < SMALL.wall_seconds * 1000


async def test_a_child_killed_from_outside_has_crashed(stand: Bench) -> None:
    served = Served()
    before = set(descendants(os.getpid()))
    task = asyncio.create_task(stand.run("import time\ndef run(ctx): ctx.log('up'); time.sleep(600)", served))
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
    assert set(names) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR", "USER"}


async def test_twenty_runs_at_once(stand: Bench) -> None:
    scraper = stand.scraper("import time\ndef run(ctx, n: int):\n    time.sleep(0.05)\n    return [n, ctx.run_id]")
    verdicts = await asyncio.gather(*(stand.run(scraper, n=n, run_id=f"run_{n}") for n in range(20)))
    assert [result(verdict) for verdict in verdicts] == [[n, f"run_{n}"] for n in range(20)]


async def test_children_are_forked_ahead(stand: Bench) -> None:
    scraper = stand.scraper("def run(ctx): return 1\n# ahead")
    first = await stand.run(scraper)
    assert first.exit_reason is ExitReason.SUCCEEDED
    parent = stand.sandbox._parents[scraper.ref.digest]
    await eventually(lambda: parent._spares.ready == 2)
    assert (await stand.run(scraper)).forked_ahead


IMPORTS = "import sys\ndef run(ctx):\n    had = 'colorsys' in sys.modules\n    import colorsys\n    return had\n"


async def test_what_one_run_imports_later_ones_have_from_the_start(stand: Bench) -> None:
    scraper = stand.scraper(IMPORTS)
    assert result(await stand.run(scraper)) is False
    parent = stand.sandbox._parents[scraper.ref.digest]
    await eventually(lambda: parent._spares.ready == 2)
    assert [result(await stand.run(scraper)) for _ in range(2)] == [True, True]


async def test_children_that_make_way_for_warmer_ones_are_no_fault_of_the_script() -> None:
    async with bench(CONFIGURATIONS[0], slots=16, ahead=8) as made:
        scraper = made.scraper(IMPORTS)
        await made.sandbox.check(scraper)
        parent = made.sandbox._parents[scraper.ref.digest]
        await eventually(lambda: parent._spares.ready == 8)
        assert result(await made.run(scraper)) is False
        await eventually(lambda: parent._spares.ready == len(parent._children) == 8)
        assert parent.usable
        assert [result(await made.run(scraper)) for _ in range(8)] == [True] * 8


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
from tests.contract.unhurried import unhurried

SPIN = "x = 0\\nwhile True: x += 1"
SLEEP = "import time\\ndef run(ctx):\\n    ctx.log('up')\\n    time.sleep(600)"

async def main():
    walls = next(walls for walls in CONFIGURATIONS if walls.name == sys.argv[1])
    async with bench(walls) as made:
        served = Served()
        runs = [asyncio.create_task(made.run(SLEEP, served)) for _ in range(2)]
        await served.seen.wait()
        loading = asyncio.create_task(made.run(SPIN))
        while len([p for p in made.sandbox._by_number.values() if p.pid]) < 2:
            await asyncio.sleep(0.01)
        print("up", made.folder, made.sandbox._folder, flush=True)
        await asyncio.gather(*runs, loading)

with unhurried("scrapeyard.sandbox."):
    asyncio.run(main())
"""


async def test_a_killed_worker_takes_everything_along(stand: Bench) -> None:
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, stand.walls.name, stdout=subprocess.PIPE, cwd=HERE.parents[3]
    )
    told: list[str] = []
    try:
        assert worker.stdout is not None
        told = (await worker.stdout.readuntil(b"up ") + await worker.stdout.readline()).decode().split()
        await eventually(lambda: len(set(descendants(worker.pid))) >= 5, lambda: "it has too few processes")
        family = set(descendants(worker.pid))
    finally:
        worker.kill()
        await worker.wait()
        worker._transport.close()  # type: ignore[attr-defined]
        for folder in told[-2:-1]:
            shutil.rmtree(folder)  # of the scripts, which were the test's own
    await eventually(lambda: not any(_lives(pid) for pid in family), lambda: f"of {family}")
    async with bench(stand.walls):
        assert not Path(told[-1]).exists()


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
async def test_it_holds_for_a_worker_without_privileges() -> None:
    project = HERE.parents[3]
    with tempfile.TemporaryDirectory(prefix="unprivileged-") as folder:
        shutil.chown(folder, 65534, 65534)
        tests = [str(HERE), "-k", "all or namespaces", "-p", "no:cacheprovider", f"--basetemp={folder}/base"]
        uncover = _uncover([Path(sys.base_prefix), Path(sys.prefix), project], Path(folder))
        process = await asyncio.create_subprocess_exec(
            "unshare", "--mount", "--propagation=private", "sh", "-ec",
            f"{uncover} cd {shlex.quote(str(project))}; exec setpriv --reuid=65534 --regid=65534 --clear-groups"
            ' --inh-caps=-all --bounding-set=-all "$@"',
            "sh", sys.executable, "-B", "-m", "pytest", *tests,
            env={"PATH": os.environ["PATH"], "TMPDIR": folder, "HOME": folder},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 0, output.decode()[-6000:]
    assert b"passed" in output


def _uncover(places: list[Path], folder: Path) -> str:
    """Shell commands that, in a mount namespace, let everybody read these places though they lie in private folders.

    Each private folder is covered by an empty one, in which the places alone appear again, entry by entry: a place may
    be private itself. `folder` is the other user's, and may lie in one, too.
    """
    hidden = [place for place in places if _private(place) is not None]
    hidden = [place for place in hidden if not any(other in place.parents for other in hidden)]
    commands = ["mount -t tmpfs none /mnt"]
    for number, place in enumerate(hidden):
        commands.append(f"mkdir /mnt/{number}; mount --rbind {_quoted(place)} /mnt/{number}")
    for private in sorted({str(_private(place)) for place in hidden}):
        commands.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(private)}")
    for number, place in enumerate(hidden):
        commands.append(f"mkdir -p {_quoted(place)}")
        for entry in sorted(place.iterdir()):
            kept = Path(f"/mnt/{number}", entry.name)
            if entry.is_symlink():
                commands.append(f"cp -P {_quoted(kept)} {_quoted(entry)}")
            else:
                commands.append(f"{'mkdir' if entry.is_dir() else 'touch'} {_quoted(entry)}")
                commands.append(f"mount --rbind {_quoted(kept)} {_quoted(entry)}")
    commands.append(f"mkdir -p {_quoted(folder)}; chown 65534:65534 {_quoted(folder)}")
    return "".join(f"{command}; " for command in commands)


def _private(place: Path) -> Path | None:
    """The uppermost folder on the way to a place that not everybody may read; None: everybody may read it."""
    way = [*reversed(place.parents), place]
    return next((each for each in way if each.stat().st_mode & 0o005 != 0o005), None)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


async def test_scrapers_that_are_still_loading_do_not_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.sandbox.handles.sandbox._TIDY_SECONDS", 0.01)
    async with bench(CONFIGURATIONS[0], ahead=0, max_scrapers=1) as made:
        scripts = [f"import time\ntime.sleep(0.5)\ndef run(ctx): return {number}" for number in range(2)]
        verdicts = await asyncio.gather(*(made.run(script) for script in scripts))
    assert [verdict.exit_reason for verdict in verdicts] == [ExitReason.SUCCEEDED] * 2, verdicts
