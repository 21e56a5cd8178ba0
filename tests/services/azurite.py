"""Azurite, Microsoft's own stand-in for Azure's blobs, where it is installed (`npm install -g azurite`)."""

import base64
import hashlib
import hmac
import shutil
import subprocess
from collections.abc import Iterator
from email.utils import formatdate
from itertools import count
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from scrapeyard.settings import BlobSettings, SourceSettings
from tests.leaks import killed_after, until
from tests.services.ports import free_port

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Known to everybody: each Azurite has it."""
_KEYS: Any = {"access_key": SecretStr(ACCOUNT), "secret_key": SecretStr(KEY)}
_VERSION = "2023-11-03"


class Azurite:
    """A running one."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        self._names = (f"yard{number}" for number in count(1))

    def make_container(self) -> str:
        """A new one; its name."""
        name = next(self._names)
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        canonical = "".join(f"{key}:{value}\n" for key, value in headers.items())
        text = f"PUT{chr(10) * 12}{canonical}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        signature = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
        answer = httpx.put(f"{self.endpoint}/{name}?restype=container", headers=headers, trust_env=False)
        assert answer.status_code == 201, answer.text
        return name

    def blobs(self) -> BlobSettings:
        """For blobs in a new container, as an operator would write them."""
        return BlobSettings(url=f"az://{self.make_container()}/all/of.it", endpoint=self.endpoint, **_KEYS)

    def source(self, prefix: str) -> SourceSettings:
        """For scrapers in a new container."""
        return SourceSettings(type="az", bucket=self.make_container(), prefix=prefix, endpoint=self.endpoint, **_KEYS)


@pytest.fixture(scope="session")
def azurite(real_servers: None) -> Iterator[Azurite]:
    """One for the whole session."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("Azurite is not installed: npm install -g azurite")
    port = free_port()
    command = [
        program,
        "--inMemoryPersistence",
        "--silent",
        "--blobPort",
        str(port),
        "--skipApiVersionCheck",
        "--disableTelemetry",
    ]
    with killed_after(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)):
        server = Azurite(port)
        until(lambda: _answers(server.endpoint), "Azurite listens")
        yield server


def _answers(url: str) -> bool:
    try:
        httpx.get(url, trust_env=False)
    except httpx.TransportError:
        return False
    return True
