"""Commands that tests fork from a warm process answer like processes that were started."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.leaks import PATIENCE, until
from tests.services.warm import Started, warm


def test_several_threads_may_ask_and_wait_at_once(tmp_path: Path) -> None:
    def asked(command: Started) -> int:
        return until(lambda: {command.poll()} - {None}, "it ends").pop() or 0

    with Path(os.devnull).open("wb") as nothing, ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            command = warm().start(["--version"], tmp_path, dict(os.environ), nothing.fileno(), nothing.fileno())
            ends = [threads.submit(how, command) for how in (asked, Started.wait, asked, Started.wait)]
            assert [end.result(PATIENCE) for end in ends] == [0] * 4
