"""The programs of examples/ that their READMEs do not run: a server, a worker on Redis, a test suite."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.leaks import PATIENCE, until
from tests.programs import ROOT, Cluster, Program, Shop
from tests.services.ports import free_port

EXAMPLES = ROOT / "examples"
FOLDERS = ("gateway", "models", "queue", "script_manager", "scrapers", "tests", "worker")
LONGEST = 150
LANES = {"SCRAPEYARD_LANES__PATTERNS": '["shop/*"]'}


@contextmanager
def running(words: list[str], home: Path, environment: dict[str, str]) -> Iterator[Program]:
    program = Program([sys.executable, *words], home, environment)
    try:
        yield program
        assert program.stop() in (0, -signal.SIGTERM), program.tail()  # uvicorn ends itself by the signal it was sent
    finally:
        program.kill()


@pytest.fixture
def shop(tmp_path: Path, real_servers: None) -> Iterator[str]:
    shop = Shop(tmp_path / "shop")
    yield shop.url
    shop.stop()


def test_each_folder_tells_what_its_short_programs_show() -> None:
    for name in FOLDERS:
        page = (EXAMPLES / name / "README.md").read_text("utf-8")
        for program in (EXAMPLES / name).glob("*.py"):
            assert program.name in page, f"{name}/README.md does not tell of {program.name}"
            assert len(program.read_text("utf-8").splitlines()) <= LONGEST, program


def test_own_routes_stand_beside_the_api(tmp_path: Path, shop: str) -> None:
    port, environment = free_port(), {"SCRAPEYARD_DATA_DIR": str(tmp_path / "data")}
    words = [str(EXAMPLES / "gateway" / "own_routes.py"), str(port)]
    with (
        running(words, tmp_path / "home", environment),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as client,
    ):
        until(lambda: _answers(client), "the application listens")
        assert client.post("/api/scrape", json={"url": shop}).json()["status"] == "succeeded"
        until(lambda: client.get("/busy").json() == {"queued": 0, "running": 0}, "the worker told that it is idle")
        assert client.get("/api/none").status_code == 404


def test_a_worker_of_its_own_lane_takes_the_shop_and_drains(tmp_path: Path, real_servers: None) -> None:
    with Cluster(gateways=1, workers=0, dispatchers=1, environment=LANES) as cluster, cluster.client() as client:
        words = [str(EXAMPLES / "worker" / "own_lane.py"), "shop/*", str(cluster.scrapers)]
        environment = {**cluster.environment, "SCRAPEYARD_DATA_DIR": str(tmp_path / "data")}
        with running(words, tmp_path / "home", environment) as worker:
            worker.wait_for("worker.started")
            call = {"scraper": "shop/product", "input": {"url": f"{cluster.shop.url}/product/1"}, "wait": PATIENCE}
            assert client.post("/api/scrape", json=call).json()["result"]["sku"] == "LIG-0001"
            other = client.post("/api/scrape", json={"url": cluster.shop.url, "wait": 0}).json()
            assert client.get(f"/api/scrape/{other['id']}?wait=1").json()["status"] == "queued"
        assert "worker.draining" in [event["event"] for event in worker.events()]


def test_the_example_tests_pass(tmp_path: Path, real_servers: None) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "own")]
    ended = subprocess.run(
        [*command, str(EXAMPLES / "tests")], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:]


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/ready").status_code == 200
    except httpx.TransportError:
        return False
