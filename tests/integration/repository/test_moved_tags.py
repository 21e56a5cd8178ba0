"""A tag moves while a cluster runs: a version has one content, on old machines and on new ones."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.leaks import PATIENCE, until
from tests.programs import Cluster
from tests.services.git_repository import GitRepository

NAME = "shop/a@1.0.0"
SCRIPT = "def run(ctx, n: int = 0):\n    return '{}'\n"


@pytest.fixture
def team(tmp_path: Path) -> GitRepository:
    repository = GitRepository(tmp_path)
    repository.scraper("shop/a", "1.0.0", SCRIPT.format("first"))
    repository.commit(NAME)
    return repository


@pytest.fixture
def cluster(team: GitRepository, nothing_left: None) -> Iterator[Cluster]:
    where = {"SCRIPT_REPOSITORY_TYPE": "git", "SCRIPT_REPOSITORY_URL": team.url}
    rare = {"SCRAPEYARD_REPOSITORY__POLL_SECONDS": "600", "SCRAPEYARD_REPOSITORY__TIMEOUT_SECONDS": "120"}
    slow = {"SCRAPEYARD_WORKER__LEASE_SECONDS": "120"}  # no worker is lost here, however busy the machine is
    with Cluster(gateways=1, workers=1, environment={**where, **rare, **slow}) as cluster:
        yield cluster


def move_tag(team: GitRepository) -> None:
    team.scraper("shop/a", "1.0.0", SCRIPT.format("second"))
    team.commit()
    team.git("tag", "--force", NAME)
    team.git("push", "--quiet", "--force", str(team.bare), "--tags")


def call(client: httpx.Client, **more: object) -> httpx.Response:
    return client.post("/api/scrape", json={"scraper": NAME, "wait": PATIENCE, "policy": {"retries": 1}, **more})


def replace_worker(cluster: Cluster, data: Path) -> None:
    """Another machine with an empty disk instead of the worker so far."""
    cluster.workers[0].stop()
    worker = cluster.launch("worker", "--data-dir", str(data), "--scrapers", str(cluster.scrapers))
    cluster.workers.append(worker)
    worker.wait_for("worker.started")


def test_a_new_worker_runs_no_other_content_under_the_same_version(
    cluster: Cluster, team: GitRepository, tmp_path: Path
) -> None:
    with cluster.client() as client:
        before = call(client).json()
        assert before["result"] == "first"
        move_tag(team)
        replace_worker(cluster, tmp_path / "other-data")
        answer = call(client)
        assert (answer.status_code, answer.json()["code"]) == (502, "source_unavailable"), answer.text
        assert answer.json()["retryable"] is True
        assert before["digest"][:12] in answer.json()["detail"]

        job = client.post("/api/jobs", json={"scraper": NAME, "items": [{"n": 1}], "policy": {"retries": 0}}).json()
        ended = until(lambda: _ended(client, job["id"]), "the job ends")
        assert ended["counts"]["error"] == 1
        (item,) = client.get(f"/api/jobs/{job['id']}/items").json()["items"]
        assert item["exit_reason"] == "source_unavailable"


def _ended(client: httpx.Client, job_id: str) -> dict[str, dict[str, int]] | None:
    job: dict[str, dict[str, int]] = client.get(f"/api/jobs/{job_id}").json()
    return job if str(job["status"]) == "completed" else None
