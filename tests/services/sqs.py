"""A private server that speaks as Amazon SQS, on a free port: ministack, from its wheel."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from aiobotocore.session import get_session

from tests.leaks import PATIENCE
from tests.services.ports import free_port

REGION = "us-east-1"


def sqs_program() -> Path | None:
    """From the wheel `ministack`."""
    beside = Path(sys.executable).parent / "ministack"
    return beside if beside.exists() else None


class SqsServer:
    """One server process. `stop` and `start` keep the port; what it held is gone when it comes back."""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """As `queue.url` names it."""
        return f"sqs+http://test:testtest@127.0.0.1:{self.port}/{REGION}"

    @property
    def pid(self) -> int:
        """Of the running server."""
        assert self._process is not None
        return self._process.pid

    def client(self) -> Any:
        """A client of one's own, for tests that must not lean on the one they test."""
        return get_session().create_client(
            "sqs",
            region_name=REGION,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id="test",
            aws_secret_access_key="testtest",
        )

    def __enter__(self) -> "SqsServer":
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
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="sqs-"))
        given = {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "PATH": "/usr/bin:/bin",
            "HOME": str(self._folder),
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(sqs_program())], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=given, cwd=self._folder
            )
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
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=PATIENCE):
                    return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"ministack did not start on port {self.port}")


def _need_program() -> None:
    if sqs_program() is None:
        pytest.skip("no server that speaks SQS: install the wheel ministack (make test does)")


@pytest.fixture(scope="session")
def sqs_server(real_servers: None) -> Iterator[SqsServer]:
    """One for the whole session; leave it running."""
    _need_program()
    with SqsServer() as server:
        yield server


@pytest.fixture
def own_sqs(real_servers: None) -> Iterator[SqsServer]:
    """A server of the test's own, which it may stop."""
    _need_program()
    with SqsServer() as server:
        yield server
