"""The program ends like any Python program, with its output and exit functions, but without an end of its objects."""

import socket
import subprocess
import sys

import pytest

from tests.leaks import PATIENCE, killed_after
from tests.services.raw_answers import answer

LEAVES_A_REQUEST = """
import asyncio, atexit, os, sys, time
import obstore, typer
from obstore.store import HTTPStore
from scrapeyard.cli.main import app, main

class Kept:
    def __del__(self, write=os.write, sleep=time.sleep):
        write(1, b"the objects are going\\n")
        sleep(1)

async def ask(url):
    sys.asked = obstore.get_async(HTTPStore(url, client_options={"allow_http": True}), "a")
    await asyncio.to_thread(sys.stdin.readline)

@app.command()
def leave(url: str):
    asyncio.run(ask(url))
    print("done")
    raise typer.Exit(7)

sys.kept = Kept()
atexit.register(print, "exit function")
main()
"""


def test_an_answer_that_comes_at_the_very_end_does_not_abort_a_command() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-c", LEAVES_A_REQUEST, "leave", url]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        with killed_after(process):
            assert process.stdin
            assert process.stdout
            assert process.stderr
            plug, _ = listener.accept()
            with plug:
                plug.recv(1 << 16)
                process.stdin.write(b"asked\n")
                process.stdin.flush()
                said = [process.stdout.readline() for _ in range(3)]
                plug.sendall(answer("200 OK", b"a", 'ETag: "1"', "Last-Modified: Wed, 18 Nov 2026 10:00:00 GMT"))
                assert process.stderr.read() == b""
            assert process.wait(PATIENCE) == 7
    assert said == [b"done\n", b"exit function\n", b""]


FAILS = """
import threading
from scrapeyard.cli.main import app, main

@app.command()
def fail():
    wait = threading.Event()
    threading.Thread(target=lambda: (wait.wait(), print("the thread ended"))).start()
    threading.Thread(target=wait.set).start()
    HOW

main()
"""


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ("raise RuntimeError('ours to mend')", 1, "RuntimeError: ours to mend"),
        ("raise SystemExit('a last word')", 1, "a last word"),
    ],
)
def test_a_command_that_fails_waits_for_its_threads_and_tells_why(how: str, status: int, told: str) -> None:
    command = [sys.executable, "-c", FAILS.replace("HOW", how), "fail"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (status, "the thread ended\n"), done.stderr
    assert done.stderr.strip().rpartition("\n")[2] == told
