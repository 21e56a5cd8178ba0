"""Fixtures: the practice shop, a server to kill, and one that all tests share."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from examples.tests.server import Server


@pytest.fixture(scope="session")
def shop() -> Iterator[str]:
    """The address of the practice shop."""
    script = "from scrapeyard.demo import serve; serve('127.0.0.1', 0, lambda url: print(url, flush=True))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """Not started yet."""
    return Server(tmp_path)


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Calls a server that all tests share."""
    server = Server(tmp_path_factory.mktemp("server"))
    with server.start() as client:
        yield client
    server.stop()
