"""Results reach a table and Parquet files through a whole server that is killed in the middle."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from tests.integration.roads.test_jobs_road import PATIENT
from tests.job_calls import Jobs
from tests.leaks import until
from tests.programs import Embedded

SETTINGS = """
[sinks]
default = ["warehouse"]

[[sinks.targets]]
name = "warehouse"
url = "sqlite:///{folder}/warehouse.db"
batch_records = 50
batch_seconds = 0.2

[[sinks.targets]]
name = "lake"
url = "file://{folder}/lake"
batch_seconds = 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sinks")


@pytest.fixture(scope="module")
def yard(folder: Path, nothing_left: None) -> Iterator[Embedded]:
    config = folder / "scrapeyard.toml"
    config.write_text(SETTINGS.format(folder=folder))
    with Embedded({"SCRAPEYARD_CONFIG": str(config)}) as yard:
        yield yard


def rows(folder: Path, job_id: str) -> list[dict[str, Any]]:
    """Of the table; none before it is made."""
    with sqlite3.connect(folder / "warehouse.db") as connection:
        connection.row_factory = sqlite3.Row
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'scrapeyard_results'").fetchall():
            return []
        found = connection.execute("SELECT * FROM scrapeyard_results WHERE job_id = ?", [job_id]).fetchall()
        return [dict(row) for row in found]


def delivered(jobs: Jobs, job_id: str, *sinks: str) -> dict[str, dict[str, Any]]:
    """How the sinks stand, once each of these has all."""

    def all_done() -> dict[str, dict[str, Any]] | None:
        found = {each["sink"]: each for each in jobs.get(job_id)["sink_deliveries"]}
        return found if all(found[sink]["state"] == "done" for sink in sinks) else None

    return until(all_done, f"{sinks} have all of {job_id}")


def test_a_killed_server_delivers_each_item_once(yard: Embedded, folder: Path) -> None:
    inputs = [{"n": n, "seconds": 0.01} for n in range(150)]
    with yard.client() as api:
        jobs = Jobs(api)
        policy = {"isolation": "job", "rate": 30, **PATIENT}
        job_id = jobs.create(inputs, "lab/count", policy=policy, sinks=["warehouse", "lake"])
        until(lambda: len(rows(folder, job_id)) > 20, "rows while the job runs")
        assert jobs.get(job_id)["status"] == "running"
    for program in yard.programs:
        program.kill()
    yard.ready(yard.add())
    with yard.client() as api:
        jobs = Jobs(api)
        jobs.ended(job_id)
        stand = delivered(jobs, job_id, "warehouse", "lake")
    assert all(each["behind"] == each["failed"] == 0 for each in stand.values())
    found = rows(folder, job_id)
    assert sorted(json.loads(row["data"])["square"] for row in found) == [n * n for n in range(150)]
    assert {(row["scraper"], row["version"], row["status"]) for row in found} == {("lab/count", "1.0.0", "success")}
    lake = ds.dataset(folder / "lake", format="parquet", partitioning="hive").to_table().to_pylist()
    assert sorted(json.loads(row["data"])["n"] for row in lake) == list(range(150)), "a repeated file is the same file"
    assert all(f"{row['finished_at']:%Y-%m-%d}" == row["day"] for row in lake)


def test_a_sink_is_chosen_by_name_and_added_later(yard: Embedded, folder: Path) -> None:
    with yard.client() as api:
        jobs = Jobs(api)
        refused = api.post("/api/jobs", json={"scraper": "lab/count", "items": [{"n": 1}], "sinks": ["moon"]})
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
        assert "GET /api/sinks" in refused.json()["detail"]
        by_default = jobs.create([{"n": 1}], "lab/count")
        nowhere = jobs.create([{"n": 2}], "lab/count", sinks=[])
        jobs.ended(by_default)
        jobs.ended(nowhere)
        assert set(delivered(jobs, by_default, "warehouse")) == {"warehouse"}
        assert jobs.get(nowhere)["sinks"] == []
        assert not rows(folder, nowhere)
        added = api.post(f"/api/jobs/{nowhere}/sinks/warehouse")
        assert (added.status_code, added.json()["state"]) == (200, "active")
        delivered(jobs, nowhere, "warehouse")
        assert len(rows(folder, nowhere)) == 1
        assert api.post(f"/api/jobs/{nowhere}/sinks/moon").status_code == 404
        again = api.post(f"/api/jobs/{nowhere}/sinks/warehouse", params={"from_start": "true"}).json()
        assert (again["state"], again["behind"]) == ("active", 1)
        assert delivered(jobs, nowhere, "warehouse")["warehouse"]["delivered"] == 2
        assert len(rows(folder, nowhere)) == 1
        listed = api.get("/api/sinks").json()["sinks"]
        assert [(each["name"], each["kind"], each["default"]) for each in listed] == [
            ("warehouse", "sql", True),
            ("lake", "parquet", False),
        ]


def test_a_redriven_item_replaces_its_row(yard: Embedded, folder: Path) -> None:
    with yard.client() as api:
        jobs = Jobs(api)
        job_id = jobs.create([{"n": n} for n in range(5)], "lab/count", sinks=["warehouse"])
        jobs.ended(job_id)
        delivered(jobs, job_id, "warehouse")
        before = {row["item_key"]: row["finished_at"] for row in rows(folder, job_id)}
        assert api.post(f"/api/jobs/{job_id}/redrive", json={"statuses": ["success"]}).json()["items"] == 5
        jobs.ended(job_id)
        until(lambda: all(row["finished_at"] > before[row["item_key"]] for row in rows(folder, job_id)), "newer rows")
        assert len(rows(folder, job_id)) == 5
