"""What a worker makes of the process that loads a script, told in an awkward order."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from scrapeyard.model import ExitReason, Scraper, ScraperRef
from scrapeyard.sandbox.handles.child import Child, Exit
from scrapeyard.sandbox.handles.parent import LoadFailed, ParentGone, ParentHandle

REFUSED = {"refused": {"message": "at import", "type": "ValueError", "traceback": "…"}}


def parent_of(tmp_path: Path) -> ParentHandle:
    scraper = Scraper(ref=ScraperRef(id="test/case", version="1.0.0", digest="d"), folder=tmp_path)
    return ParentHandle(1, "d", scraper, ahead=0, max_children=1, work_folder=str(tmp_path), base_bytes=0)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([REFUSED], "at import"),
        ([{"exited": 7, "status": 0}, REFUSED], "at import"),
        ([], "status 0"),
        (["nonsense"], "status 0"),
        ([{"loaded": "def"}], "status 0"),
    ],
)
async def test_the_last_words_of_a_parent_are_heard_though_its_end_was_told_first(
    tmp_path: Path, said: list[object], told: str
) -> None:
    parent = parent_of(tmp_path)
    for words in said:
        parent.theirs.send(json.dumps(words).encode())
    parent.theirs.close()
    parent.mark_gone("status 0")
    with pytest.raises(LoadFailed) as caught:
        parent.loaded.result()
    assert caught.value.reason is ExitReason.SCRAPER_INVALID
    assert told in caught.value.error.message
    parent.mark_gone("again")


async def test_who_hears_of_a_parent_only_after_its_end_does_not_wait_for_a_child(tmp_path: Path) -> None:
    parent = parent_of(tmp_path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        parent.made(process.pid)
        parent.theirs.send(json.dumps({"loaded": "def"}).encode())
        assert await parent.loaded == "def"
    parent.mark_gone("status 256")
    with pytest.raises(ParentGone, match="it ended"):
        await parent.child()


async def test_a_script_that_is_loaded_before_its_process_is_told_may_not_have_started_others(tmp_path: Path) -> None:
    parent = parent_of(tmp_path)
    parent.theirs.send(json.dumps({"loaded": "def"}).encode())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not parent.loaded.done(), "nobody could look for its processes"
    starts = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        parent.made(process.pid)
        process.communicate(b"\n")
    with pytest.raises(LoadFailed) as caught:
        parent.loaded.result()
    assert "starts processes while it is loaded" in caught.value.error.message
    parent.mark_gone("killed")


async def test_words_of_a_child_that_was_reaped_open_no_handle_on_its_process() -> None:
    child = Child(1, lambda _: None)
    child.theirs.sendall(b"words")
    child.theirs.shutdown(socket.SHUT_RDWR)
    before = len(os.listdir("/proc/self/fd"))
    child.reap(Exit())
    child.finish()
    child.theirs.close()
    assert len(os.listdir("/proc/self/fd")) == before - 2, "both ends are closed, and nothing was opened"
