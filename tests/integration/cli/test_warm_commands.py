"""Commands that tests fork from a warm process answer like processes that were started."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.leaks import PATIENCE, until
from tests.programs import ROOT
from tests.services.warm import Started, warm


def test_several_threads_may_ask_and_wait_at_once(tmp_path: Path) -> None:
    def asked(command: Started) -> int:
        return until(lambda: {command.poll()} - {None}, "it ends").pop() or 0

    with Path(os.devnull).open("wb") as nothing, ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            command = warm().start(["--version"], tmp_path, dict(os.environ), nothing.fileno(), nothing.fileno())
            ends = [threads.submit(how, command) for how in (asked, Started.wait, asked, Started.wait)]
            assert [end.result(PATIENCE) for end in ends] == [0] * 4


ABANDONED = """
import os, sys
from tests.services.warm import warm
command = warm().talk(["demo-site", "--port", "0"], ".", dict(os.environ))
command.stderr.readline()
print(command.pid, flush=True)
sys.stdin.read()
"""


def test_killed_tests_leave_no_command(short_path: Path) -> None:
    words, pipe = [sys.executable, "-c", ABANDONED], subprocess.PIPE
    own = {**os.environ, "TMPDIR": str(short_path)}
    with subprocess.Popen(words, cwd=ROOT, env=own, stdin=pipe, stdout=pipe, text=True) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        tests.kill()
    until(lambda: not Path(f"/proc/{pid}").exists(), "the command has ended")
