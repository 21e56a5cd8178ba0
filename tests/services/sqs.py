"""A private server that speaks as Amazon SQS, on a free port: ministack, from its wheel."""

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiobotocore.session import get_session

from tests.leaks import PATIENCE
from tests.services.server_process import ServerProcess

REGION = "us-east-1"


def sqs_program() -> Path | None:
    """From the wheel `ministack`."""
    beside = Path(sys.executable).parent / "ministack"
    return beside if beside.exists() else None


class SqsServer(ServerProcess):
    """What it held is gone when it comes back."""

    name = "ministack"

    @property
    def url(self) -> str:
        """As `queue.url` names it."""
        return f"sqs+http://test:testtest@127.0.0.1:{self.port}/{REGION}"

    def client(self) -> Any:
        """A client of one's own, for tests that must not lean on the one they test."""
        return get_session().create_client(
            "sqs",
            region_name=REGION,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id="test",
            aws_secret_access_key="testtest",
        )

    def _words(self, folder: Path) -> list[str]:
        del folder
        return [str(sqs_program())]

    def _environment(self, folder: Path) -> Mapping[str, str]:
        return {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
        }

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=PATIENCE):
                return True
        except urllib.error.HTTPError:
            return True


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
