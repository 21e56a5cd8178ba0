"""A private SeaweedFS, as S3, on free ports; it checks signatures and knows conditional reads and writes."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import httpx
import pytest
from obstore.store import S3Store
from pydantic import SecretStr

from scrapeyard.settings import SourceSettings
from tests.leaks import PATIENCE
from tests.services.ports import free_port

ACCESS_KEY, SECRET_KEY = "test", "testtest"
_PROGRAM = Path(sys.executable).parent / "weed"
_SHARED = "TESTS_SEAWEED_PORTS"
_PORTS = ("s3.port", "master.port", "volume.port", "filer.port", "admin.port")


class SeaweedServer:
    """One server process. `stop` and `start` keep its port and what it holds."""

    def __init__(self, ports: dict[str, int] | None = None) -> None:
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ports = ports or {name: free_port() for name in _PORTS}

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    def __enter__(self) -> "SeaweedServer":
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
        """Returns when an object can be written and read."""
        if self._process is None:
            self.launch()
            self.wait()

    def launch(self) -> dict[str, int]:
        """Start and return at once; its ports."""
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="seaweed-"))
        where = [f"-dir={self._folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        volumes = ["-master.volumeSizeLimitMB=64", "-volume.max=1000"]
        ports = [f"-{name}={port}" for name, port in self._ports.items()]
        less = ["-s3.port.iceberg=0", "-s3.port.lance=0", "-webdav=false", "-admin.ui=false"]
        log_place = [f"-logdir={self._folder}"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(_PROGRAM), *log_place, "mini", *where, *volumes, *ports, *less],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=os.environ | {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
            )
        return self._ports

    def stop(self) -> None:
        """Ends at once, as after a crash. May be called twice."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(PATIENCE)
            self._process = None

    def store(self, bucket: str, prefix: str = "") -> S3Store:
        """A client of its own for tests, with patience."""
        return S3Store(
            bucket,
            prefix=prefix or None,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True, "timeout": f"{PATIENCE}s"},
        )

    def make_bucket(self) -> str:
        """A new, empty one."""
        bucket = f"bucket-{secrets.token_hex(8)}"
        store = self.store(bucket)
        store.put("first", b"")
        store.delete("first")
        return bucket

    def settings(self, bucket: str, prefix: str = "") -> SourceSettings:
        """As an operator would write them."""
        return SourceSettings(
            type="s3",
            bucket=bucket,
            region="us-east-1",
            prefix=prefix,
            endpoint=self.endpoint,
            access_key=SecretStr(ACCESS_KEY),
            secret_key=SecretStr(SECRET_KEY),
        )

    def wait(self) -> None:
        """Until an object can be written and read."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and (self._process is None or self._process.poll() is None):
            if self._answers():
                return
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"seaweedfs did not start: {self._folder and (self._folder / 'log').read_text()[-2000:]}")

    def _answers(self) -> bool:
        try:
            if (
                httpx.get(f"{self.endpoint}/healthz", timeout=PATIENCE, trust_env=False, verify=False).status_code
                != 200
            ):
                return False
            self.store("bucket-first").put("first", b"x")
        except (httpx.TransportError, Exception):  # noqa: BLE001 - whatever its client says before it is ready
            return False
        return True


_shared: list[SeaweedServer] = []


@pytest.hookimpl(trylast=True)  # the folder of the run is made before
def pytest_configure(config: pytest.Config) -> None:
    """One server for all workers of pytest-xdist, which are told its ports: each takes seconds of a core in a run."""
    is_worker = hasattr(config, "workerinput")
    is_wanted = config.getoption("numprocesses", None) and not config.getoption("--quick")
    if not is_worker and is_wanted and _PROGRAM.exists():
        _shared.append(SeaweedServer())
        os.environ[_SHARED] = json.dumps(_shared[0].launch())


@pytest.hookimpl(tryfirst=True)  # the folder of the run is removed after
def pytest_unconfigure() -> None:
    """Also where no session was begun."""
    close()


def close() -> None:
    """End the one that workers share, where there is one. May be called twice."""
    while _shared:
        _shared.pop().__exit__(None, None, None)


@pytest.fixture(scope="session")
def seaweed_server(real_servers: None) -> Iterator[SeaweedServer]:
    """One for the whole run; leave it running."""
    if given := os.environ.get(_SHARED):
        server = SeaweedServer(json.loads(given))
        server.wait()
        yield server
        return
    with SeaweedServer() as server:
        yield server


@pytest.fixture
def own_seaweed(real_servers: None) -> Iterator[SeaweedServer]:
    """A server of the test's own, which it may stop. One that has come back takes a core's fortieth until it ends."""
    with SeaweedServer() as server:
        yield server


@pytest.fixture
def bucket(seaweed_server: SeaweedServer) -> str:
    """A new, empty bucket of the session's server."""
    return seaweed_server.make_bucket()
