"""Programs that we start: no lock of another thread can hang them, and they always end."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from scrapeyard.child_process import PIPE, start_child
from tests.leaks import until

UPPER = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('done'); sys.exit(3)"
WAITS = "import sys; print('here', flush=True); sys.stdin.read()"

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param  # type: ignore[no-any-return]


def test_no_python_runs_between_fork_and_exec(run: Run) -> None:
    """A fork of a process with threads may copy a lock that is held, and nobody in the child will ever let go of it."""
    forks: list[str] = []
    os.register_at_fork(before=lambda: forks.append("fork"))
    assert run(_upper(b"abc")) == (b"ABC", b"done", 3)
    assert forks == []


def test_it_takes_and_gives_more_than_a_pipe_holds(run: Run) -> None:
    text = b"a" * (1 << 21)
    assert run(_upper(text)) == (text.upper(), b"done", 3)


def test_it_is_gone_when_it_was_ended(run: Run) -> None:
    async def main() -> int:
        child = await start_child((sys.executable, "-c", WAITS), stdin=PIPE)
        assert child.stdout is not None
        assert await child.stdout.readline() == b"here\n"
        await child.end()
        await child.end()
        return child.pid

    with pytest.raises(ProcessLookupError):
        os.kill(run(main()), 0)


def test_what_it_started_ends_with_it(run: Run) -> None:
    async def main() -> int:
        child = await start_child(("sh", "-c", "sleep 600 & echo $!; wait"), start_new_session=True)
        assert child.stdout is not None
        grandchild = int(await child.stdout.readline())
        await child.end()
        return grandchild

    pid = run(main())
    until(lambda: _has_ended(pid), "it ended")


def test_a_start_that_is_cancelled_leaves_nothing(run: Run) -> None:
    """A pipe that is left open is reported when it is collected, and fails this test."""

    async def main() -> None:
        for turns in range(6):
            starting = asyncio.ensure_future(start_child(("sleep", "600"), stdin=PIPE, stderr=PIPE))
            for _ in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await starting).end()
        gc.collect()

    run(main())
    gc.collect()


def test_a_program_that_is_not_there_is_told(run: Run) -> None:
    with pytest.raises(FileNotFoundError):
        run(start_child(("/no/such/program",)))


async def _upper(text: bytes) -> tuple[bytes, bytes, int]:
    child = await start_child((sys.executable, "-c", UPPER), stdin=PIPE, stderr=PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(text)
    child.stdin.close()
    output, errors = await asyncio.gather(child.stdout.read(), child.stderr.read())
    status = await child.wait()
    await child.end()
    return output, errors, status


def _has_ended(pid: int) -> bool:
    """It may be a zombie: nobody but init reaps it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
