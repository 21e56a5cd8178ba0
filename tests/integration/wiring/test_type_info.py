"""Type information of Structs is built before the first thread is started: no two threads ever build it at once."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_stand import Stand, line_with, until_gone
from tests.leaks import PATIENCE, killed_after
from tests.services.valkey import ValkeyServer

RACE = """
import sys, threading
import msgspec
from scrapeyard.wiring.starting import build_type_info

STRUCTS = []
for number in range(300):
    inner = msgspec.defstruct(f"Inner{number}", [("text", str | None, None), ("list", list[str], [])])
    middle = msgspec.defstruct(f"Middle{number}", [("one", inner | None, None), ("many", list[inner], [])])
    STRUCTS.append(msgspec.defstruct(f"Outer{number}", [("table", dict[str, middle], {}), ("last", int, 0)]))
TEXT = b'{"table": {"a": {"one": {"text": "t", "list": ["x"]}, "many": [{"text": "u"}]}}, "last": 3}'
if "build" in sys.argv:
    build_type_info()
sys.setswitchinterval(1e-6)
together = threading.Barrier(4)

def decode():
    for struct in STRUCTS:
        together.wait(60)
        assert msgspec.json.decode(TEXT, type=struct).last == 3

threads = [threading.Thread(target=decode) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
"""Without `build` it dies nearly always."""

WATCHED = """
import atexit, gc, json, sys, threading
import msgspec
from scrapeyard.cli.main import main

def loaded():
    structs = [msgspec.Struct]
    for struct in structs:
        structs += type.__subclasses__(struct)
    return structs

def is_decodable(struct):
    try:
        msgspec.json.Decoder(struct)
    except (TypeError, NameError):
        return False
    return True

def unbuilt():
    kinds = {struct: {type(each).__name__ for each in gc.get_referents(struct)} for struct in loaded()}
    without = [struct for struct in kinds if "StructInfo" not in kinds[struct]]
    return [f"{struct.__module__}.{struct.__name__}" for struct in without if is_decodable(struct)]

def start(thread):
    told.setdefault("at the first thread", unbuilt())
    real(thread)

told = {}
real, threading.Thread.start = threading.Thread.start, start
@atexit.register
def tell():
    told.setdefault("at the end", unbuilt())
    told["count"] = len(loaded())
    print(json.dumps(told))

main()
"""
"""`scrapeyard WORDS`; its last line on stdout tells which Structs could be decoded but have no type information."""


def test_threads_that_decode_a_struct_for_the_first_time_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", RACE, "build"], timeout=PATIENCE, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_server_builds_all_before_its_first_thread(tmp_path: Path) -> None:
    words = ("up", "--port", "0", "--data-dir", str(tmp_path / "data"))
    with watched(Stand(tmp_path), *words) as (process, told):
        url = line_with(process, b"listens on ").partition(b"listens on ")[2].split()[0].decode()
        call = {"scraper": "builtin/page", "input": {"url": "http://127.0.0.1:1/"}, "wait": PATIENCE}
        assert httpx.post(f"{url}/api/scrape", json=call, timeout=PATIENCE).json()["exit_reason"]
        process.send_signal(signal.SIGTERM)
    assert_built(told)


@pytest.mark.parametrize("role", ["gateway", "worker", "dispatcher"])
def test_each_role_alone_builds_all(tmp_path: Path, role: str) -> None:
    ready = {"gateway": b"gateway.listening", "worker": b"worker.started", "dispatcher": b"dispatch.leads"}[role]
    with ValkeyServer() as valkey:
        words = (role, *(["--port", "0"] if role == "gateway" else []), "--data-dir", str(tmp_path / "data"))
        given = {"REDIS_URL": valkey.url, "SCRAPEYARD_LOG__FORMAT": "json"}
        with watched(Stand(tmp_path), *words, **given) as (process, told):
            line_with(process, ready)
            process.send_signal(signal.SIGTERM)
        assert_built(told)


def test_a_run_without_a_server_builds_all(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    with watched(stand, "run", str(stand.scrapers / "lab" / "lab")) as (_, told):
        pass
    assert_built(told)


def test_a_job_without_a_server_builds_all(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    (tmp_path / "list.jsonl").write_text('{"name": "a"}\n')
    words = ("run", str(stand.scrapers / "lab" / "lab"), "--file", "list.jsonl", "-o", "out.csv")
    with watched(stand, *words) as (_, told):
        pass
    assert_built(told)


def assert_built(told: dict[str, Any]) -> None:
    assert told["count"] > 100
    assert told["at the first thread"] == []
    assert told["at the end"] == []


@contextmanager
def watched(
    stand: Stand, *words: str, **environment: str
) -> Iterator[tuple["subprocess.Popen[bytes]", dict[str, Any]]]:
    """The command, and what it told when the block is left, which waits for its end."""
    told: dict[str, Any] = {}
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=stand.folder,
        env=stand._environment(environment),
        start_new_session=True,
    )
    with killed_after(process):
        yield process, told
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        told.update(json.loads(out.splitlines()[-1]))
    until_gone(process.pid, words)
