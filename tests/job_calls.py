"""Jobs over HTTP as a client of the running platform sees them, and a watcher that looks whether counts add up."""

import csv
import io
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openpyxl
import pyarrow.parquet

from tests.leaks import PATIENCE, until

STATES = ("pending", "queued", "in_progress", "success", "error", "cancelled")
FINAL = frozenset({"completed", "cancelled", "failed"})
FORMATS = ("csv", "xlsx", "json", "jsonl", "parquet")
_LOOK_SECONDS = 0.1


class Jobs:
    """Calls of one gateway. Every job that is looked at must add up."""

    def __init__(self, api: httpx.Client) -> None:
        self.api = api

    def upload(self, rows: Iterable[dict[str, Any]], scraper: str, **options: Any) -> str:
        """Make a job of rows as CSV. Its id."""
        query = {
            name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in options.items()
        }
        answer = self.api.post(
            "/api/jobs",
            params={"scraper": scraper, **query},
            content=as_csv(rows),
            headers={"Content-Type": "text/csv"},
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def create(self, items: Iterable[dict[str, Any]], scraper: str, **options: Any) -> str:
        """Make a job of inline items. Its id."""
        answer = self.api.post("/api/jobs", json={"scraper": scraper, "items": list(items), **options})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def get(self, job_id: str) -> dict[str, Any]:
        """As it stands."""
        answer = self.api.get(f"/api/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        job: dict[str, Any] = answer.json()
        assert adds_up(job["counts"]), job["counts"]
        return job

    def ask(self, job_id: str, verb: str, **query: Any) -> dict[str, Any]:
        """Pause, resume or cancel it."""
        answer = self.api.post(f"/api/jobs/{job_id}/{verb}", params=query)
        assert answer.status_code == 200, answer.text
        job: dict[str, Any] = answer.json()
        return job

    def until(self, job_id: str, good: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The job, once it is as wanted."""

        def look() -> dict[str, Any] | None:
            job = self.get(job_id)
            return job if good(job) else None

        return until(look, f"{what}: {self.get(job_id)['counts']}")

    def ended(self, job_id: str) -> dict[str, Any]:
        """The job, once nothing changes any more."""
        return self.until(job_id, lambda job: job["status"] in FINAL, "the job ends")

    def items(self, job_id: str, **query: Any) -> list[dict[str, Any]]:
        """All of them, page by page."""
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = self.api.get(
                f"/api/jobs/{job_id}/items", params={"limit": 200, **query, **({"cursor": cursor} if cursor else {})}
            )
            assert page.status_code == 200, page.text
            found += page.json()["items"]
            cursor = page.json()["next_cursor"]
        return found

    def manifested(self, job_id: str) -> Iterator[dict[str, Any]]:
        """Every entry of the full manifest."""
        summary = self.api.get(f"/api/jobs/{job_id}/results").json()
        for part in summary["manifests"]["full"]["parts"]:
            yield from self.api.get(part["href"]).json()["entries"]

    def exported(self, job_id: str) -> dict[str, list[dict[str, Any]]]:
        """The rows of every export of a job, by format, once all are made."""

        def made() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = self.api.get(f"/api/jobs/{job_id}/exports").json()["exports"]
            assert "failed" not in {export["state"] for export in found}, found
            return found if {export["state"] for export in found} == {"done"} else None

        files = {}
        for export in until(made, "the exports are made"):
            data = self.api.get(export["links"]["download"])
            assert data.status_code == 200, data.text
            files[export["format"]] = rows_of(export["format"], data.content)
        return files


class Watcher:
    """Looks at jobs again and again from a thread of its own, at every gateway, and keeps what is wrong."""

    def __init__(self, urls: Callable[[], list[str]], job_ids: Iterable[str]) -> None:
        self._urls = urls
        self._job_ids = list(job_ids)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher")
        self._done: Counter[str] = Counter()
        self.samples = 0
        self.faults: list[str] = []

    @contextmanager
    def watching(self) -> Iterator["Watcher"]:
        """While the block runs."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def _watch(self) -> None:
        with httpx.Client(timeout=PATIENCE, trust_env=False, verify=False) as client:
            while not self._over.wait(_LOOK_SECONDS):
                for url in self._urls():
                    for job_id in self._job_ids:
                        self._look(client, f"{url}/api/jobs/{job_id}", job_id)

    def _look(self, client: httpx.Client, url: str, job_id: str) -> None:
        """A gateway or a store that is away is no fault."""
        try:
            answer = client.get(url)
        except httpx.TransportError:
            return
        if answer.status_code == 503:
            return
        if answer.status_code != 200:
            self.faults.append(f"{answer.status_code}: {answer.text}")
            return
        self.samples += 1
        counts = answer.json()["counts"]
        done = counts["success"] + counts["error"]
        if not adds_up(counts):
            self.faults.append(f"{job_id} does not add up: {counts}")
        if done < self._done[job_id]:
            self.faults.append(f"{job_id} went back from {self._done[job_id]} to {done}")
        self._done[job_id] = done


def adds_up(counts: dict[str, int]) -> bool:
    """Whether the states make up the total, none of them below zero."""
    return counts["total"] == sum(counts[state] for state in STATES) and min(counts.values()) >= 0


def as_csv(rows: Iterable[dict[str, Any]]) -> bytes:
    """With a header; all rows have the fields of the first."""
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(text, list(row))
            writer.writeheader()
        writer.writerow(row)
    return text.getvalue().encode()


def rows_of(kind: str, data: bytes) -> list[dict[str, Any]]:
    """An export as the programs read it that people use."""
    if kind == "csv":
        return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    if kind == "xlsx":
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        head, *rows = (row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True))
        return [dict(zip(map(str, head), row, strict=True)) for row in rows]
    if kind == "parquet":
        return list(pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist())
    return [json.loads(line) for line in data.splitlines()] if kind == "jsonl" else list(json.loads(data))


def numbers(rows: Iterable[dict[str, Any]], field: str = "n") -> list[int]:
    """One field of every row, sorted."""
    return sorted(int(row[field]) for row in rows)
