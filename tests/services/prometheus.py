"""A real Prometheus that scrapes what a test gives it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.leaks import killed_after, until
from tests.services.ports import free_port


def program(name: str) -> str | None:
    """`promtool` or `prometheus`; None if it is not installed."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


needs_prometheus = pytest.mark.skipif(
    program("promtool") is None or program("prometheus") is None,
    reason="Prometheus is not installed: apt-get install prometheus",
)


class Prometheus:
    """Answers queries."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query."""
        answer = self._client.get("/api/v1/query", params={"query": expression}).json()
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The alerting rules, with their state."""
        groups = self._client.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def prometheus(folder: Path, targets: Sequence[str], rules: Path) -> Iterator[Prometheus]:
    """Scrapes `targets` (host:port) five times a second under the job `scrapeyard`."""
    folder.mkdir()
    config = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "scrapeyard", "static_configs": [{"targets": list(targets)}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        program("prometheus") or "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with killed_after(process):
        server = Prometheus(f"http://127.0.0.1:{port}")
        until(server.is_ready, "Prometheus is ready")
        try:
            yield server
        finally:
            server.close()
