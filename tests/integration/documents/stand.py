"""A running server and the practice shop, for a person who holds one of the documents."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.integration.cli_stand import Stand
from tests.leaks import PATIENCE, until

UP = ("up", "--port", "0", "--data-dir", "data", "--scrapers", "scrapers", "--allow-private")


@dataclass(frozen=True, kw_only=True)
class Yard:
    """The server's door, the shop's address and the command line."""

    stand: Stand
    client: httpx.Client
    url: str
    shop: str

    def json(self, method: str, path: str, status: int = 200, **call: Any) -> Any:
        """What a call answers; its status must be this."""
        answer = self.client.request(method, path, **call)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def until(self, path: str, *statuses: str) -> dict[str, Any]:
        """The document at a path, once its status is one of these."""

        def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = self.json("GET", path)
            return found if found["status"] in statuses else None

        return until(ended, f"{path} is not {' or '.join(statuses)}")

    def curl(self, *words: str) -> Any:
        """What the real curl, or a program that does the same, prints for these words."""
        done = subprocess.run(["curl", "-s", *words], capture_output=True, timeout=PATIENCE, check=True)
        return json.loads(done.stdout)


@contextmanager
def served(folder: Path, scrapers: dict[str, str] | None = None, **environment: str) -> Iterator[Yard]:
    """A server with these scrapers, under these variables of the environment."""
    stand = Stand(folder)
    says = b"Scrapeyard\xea\xb0\x80 " if environment.get("LANG", "").startswith("ko") else b"listens on "
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as shop:
        for name, script in (scrapers or {}).items():
            stand.write(name, script.replace("SHOP", shop.rstrip("/")))
        with (
            stand.serving(*UP, says=says, **environment) as said,
            httpx.Client(base_url=(url := said.removesuffix("에서")), timeout=PATIENCE) as client,
        ):
            yield Yard(stand=stand, client=client, url=url, shop=shop.rstrip("/"))
