"""`Client`. Made of `aio.py` by `make clients`: change that file."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from scrapeyard_client import calls
from scrapeyard_client.calls import Upload
from scrapeyard_client.documents import Event, Export, Item, Run, is_over, made
from scrapeyard_client.steps import Heard, HttpAnswer, Pause, Request, Retries, Steps, TimeLimit
from scrapeyard_client.streams import Download, EventFollower
from scrapeyard_client.transport import broken_by, plain_pieces, server_address, transport_options, url_of

Result = TypeVar("Result")


class Client:
    """A server. `url` is its address; default: the variable SCRAPEYARD_SERVER, else http://127.0.0.1:8000.

    `key` is what the server knows the caller by; default: the variable SCRAPEYARD_KEY, else none. `timeout` is how long
    an answer may take to begin. May be shared. Close it, or use it in a `with` block.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        timeout: float = 60.0,
        retries: Retries | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url = server_address(url)
        self.retries = retries or Retries()
        self.runs = Runs(self)
        self.jobs = Jobs(self)
        self._timeout = timeout
        self._http = httpx.Client(**transport_options(self.url, timeout, headers, key))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections. May be called twice."""
        self._http.close()

    def scrape(
        self,
        url: str,
        *,
        formats: Sequence[str] | None = None,
        wait: bool = True,
        timeout: float | None = 300.0,
        check: bool = True,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Run:
        """Read one page, by `builtin/page` unless `scraper` is given. `options` are further fields of the call, such as
        `policy`. Waits for the end. Raises RunFailed unless `check` is false, and WaitTimeout. With `wait=False`
        returns at once: see `client.runs.wait`."""
        body = calls.scrape_body(url, formats, options)
        steps = calls.start_run(self.retries, body, wait=wait, timeout=timeout, check=check, key=idempotency_key)
        return self.perform(steps)

    def run(
        self,
        scraper: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002  the API's word
        *,
        wait: bool = True,
        timeout: float | None = 300.0,
        check: bool = True,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Run:
        """Run a scraper on an input; otherwise as `scrape`."""
        body = {"scraper": scraper, "input": dict(input or {}), **options}
        steps = calls.start_run(self.retries, body, wait=wait, timeout=timeout, check=check, key=idempotency_key)
        return self.perform(steps)

    def crawl(self, url: str, *, idempotency_key: str | None = None, **options: Any) -> "Job":
        """Crawl a site: `limit`, `depth`, `scope`, `include`, `exclude`, `formats` and more. Returns at once with the
        job."""
        steps = calls.create_job(self.retries, {"url": url, **options}, path="/api/crawl", key=idempotency_key)
        return Job(self, self.perform(steps))

    def map(self, url: str, *, timeout: float | None = 300.0, **options: Any) -> list[str]:
        """The URLs of a site, of its robots.txt, sitemaps and links: `limit`, `search`, `scope` and more."""
        steps = calls.start_run(self.retries, {"url": url, **options}, path="/api/map", timeout=timeout)
        return calls.urls_of(self.perform(steps))

    def call(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Any other operation of the API: its document, or None if it answers with none."""
        return self.perform(calls.call(self.retries, method, path, query=query, body=body))

    def download(self, export: Export, path: str | Path) -> Path:
        """Download an export that is done. Goes on after a break, and checks the content."""
        place = Path(path)
        download = Download(export, place, self.retries)
        try:
            while not download.is_whole:
                self._fetch(download)
        finally:
            download.close()
        return place

    def perform(self, steps: Steps[Result]) -> Result:
        """Carry out the steps of a call."""
        heard: Heard | None = None
        while True:
            try:
                step = steps.send(heard)
            except StopIteration as end:
                result: Result = end.value
                return result
            heard = None
            if isinstance(step, Pause):
                time.sleep(step.seconds)
            else:
                heard = self._send(step)

    def pages(self, path: str, name: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Everything that a listing has, page by page."""
        cursor = None
        while True:
            found, cursor = self.perform(calls.page(self.retries, path, name, calls.given(query), cursor))
            yield from found
            if cursor is None:
                return

    def events(self, path: str, **query: str) -> Iterator[Event]:
        """Live events at a path until the `end`. Connects again where the stream broke off."""
        following = EventFollower(path, self.retries, query)
        while not following.ended:
            try:
                with self._open(following.request()) as answer:
                    if answer.is_success:
                        for piece in answer.iter_bytes():
                            yield from following.take(piece)
                    heard: Heard = _whole(answer)
            except httpx.TransportError as error:
                heard = broken_by(error, self.url)
            if not following.ended:
                time.sleep(following.broken(heard))

    def _fetch(self, download: Download) -> None:
        try:
            with self._open(download.request()) as answer:
                if answer.is_success:
                    download.begin(answer.status_code)
                    for piece in answer.iter_bytes():
                        download.take(piece)
                    download.end()
                    return
                heard: Heard = _whole(answer)
        except httpx.TransportError as error:
            heard = broken_by(error, self.url)
        time.sleep(download.broken(heard))

    def _send(self, request: Request) -> Heard:
        try:
            with self._open(request) as answer:
                return _whole(answer)
        except httpx.TransportError as error:
            return broken_by(error, self.url)

    @contextmanager
    def _open(self, request: Request) -> Iterator[httpx.Response]:
        with self._http.stream(
            request.method,
            url_of(request),
            json=request.body,
            content=None if request.content is None else plain_pieces(request.content()),
            headers=dict(request.headers),
            timeout=max(self._timeout, request.seconds or 0),
        ) as answer:
            yield answer


def _whole(answer: httpx.Response) -> HttpAnswer:
    """An answer with its content; that of a stream which was read is gone."""
    content = b"" if answer.is_stream_consumed else answer.read()
    return HttpAnswer(status=answer.status_code, headers=answer.headers, content=content)


class Runs:
    """The runs of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, run_id: str) -> Run:
        """A run as it is now."""
        return self._client.perform(calls.get_run(self._client.retries, run_id))

    def wait(self, run_id: str, timeout: float | None = None, *, check: bool = True) -> Run:
        """A run when it has ended. Raises RunFailed unless `check` is false, and WaitTimeout."""
        steps = calls.wait_for_run(self._client.retries, run_id, TimeLimit(timeout), check=check)
        return self._client.perform(steps)

    def cancel(self, run_id: str) -> Run:
        """Cancel a run. One that has ended stays as it is."""
        return made(Run, self._client.call("DELETE", calls.run_path(run_id)))

    def logs(self, run_id: str) -> list[dict[str, Any]]:
        """The lines that the script wrote."""
        answer = self._client.call("GET", calls.run_path(run_id, "logs"))
        return list(answer["lines"])

    def events(self, run_id: str) -> Iterator[Event]:
        """Live events of a run until its `end`. They have no ids: after a broken connection its log may come again."""
        return self._client.events(calls.run_path(run_id, "events"))

    def list(self, **filters: Any) -> Iterator[Run]:
        """Every run, newest first, without results: `status`, `scraper`, `exit_reason`, `created_after`, …"""
        for found in self._client.pages("/api/scrape", "runs", filters):
            yield made(Run, found)


class Jobs:
    """The jobs of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(self, *, file: Upload | None = None, idempotency_key: str | None = None, **options: Any) -> "Job":
        """Make a job: of `items`, `items_url`, `sitemap_url`, `start_url`, or a `file` (CSV, JSONL or plain addresses)
        that is streamed. `options` are the other fields of `POST /api/jobs`."""
        retries = self._client.retries
        if file is None:
            steps = calls.create_job(retries, options, key=idempotency_key)
        else:
            steps = calls.upload(retries, "/api/jobs", file, options, key=idempotency_key)
        return Job(self._client, self._client.perform(steps))

    def get(self, job_id: str) -> "Job":
        """A job as it is now."""
        return Job(self._client, self._client.call("GET", calls.job_path(job_id)))

    def list(self, **filters: Any) -> Iterator["Job"]:
        """Every job, newest first: `status`, `scraper`, `schedule_id`, `domain`."""
        for found in self._client.pages("/api/jobs", "jobs", filters):
            yield Job(self._client, found)


class Job:
    """A job, as of the last call about it. `document` has every property."""

    def __init__(self, client: Client, document: Mapping[str, Any]) -> None:
        self._client = client
        self.document = document

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, status={self.status!r})"

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.document["id"])

    @property
    def status(self) -> str:
        """Where it stands."""
        return str(self.document["status"])

    @property
    def has_ended(self) -> bool:
        """Whether it has ended and its files are written."""
        return is_over(self.document)

    @property
    def counts(self) -> dict[str, int]:
        """Items by status."""
        return dict(self.document["counts"])

    def refresh(self) -> Self:
        """Look it up again."""
        return self._became(self._client.call("GET", calls.job_path(self.id)))

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until it has ended and its files are written. Raises WaitTimeout."""
        return self._became(self._client.perform(calls.wait_for_job(self._client.retries, self.id, timeout)))

    def items(self, **filters: Any) -> Iterator[Item]:
        """Its items in the order of the list: `status`, `exit_reason`, `site`, `key`."""
        for found in self._client.pages(calls.job_path(self.id, "items"), "items", filters):
            yield made(Item, found)

    def records(self) -> Iterator[Any]:
        """What the scraper returned for each item that succeeded: every record of a list, or the one result."""
        for item in self.items(status="success"):
            yield from self._client.perform(calls.records_of(self._client.retries, self.id, item))

    def to_frame(self) -> Any:
        """The records as a pandas DataFrame. Raises PandasMissing."""
        make_frame = calls.frame_maker()
        return make_frame(list(self.records()))

    def events(self, *, lines: bool = False, results: bool = False) -> Iterator[Event]:
        """Live events until the `end`; with `lines` also one for each item, with `results` its result, too."""
        query = {"lines": str(lines).lower(), "results": str(results).lower()}
        return self._client.events(calls.job_path(self.id, "stream"), **query)

    def append(self, items: Sequence[Any] | None = None, *, file: Upload | None = None, **options: Any) -> Any:
        """Add items to a job that has not ended. Answers how many were added."""
        path, retries = calls.job_path(self.id, "items"), self._client.retries
        if file is not None:
            return self._client.perform(calls.upload(retries, path, file, options))
        body = {"items": list(items or ()), **options}
        return self._client.perform(calls.create_job(retries, body, path=path))

    def export(
        self,
        path: str | Path,
        type: str = "records",  # noqa: A002  the API's word
        format: str | None = None,  # noqa: A002  the API's word
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> Path:
        """Make a file of the job and download it. The name tells the format, unless it is given."""
        place = Path(path)
        wish = {"type": type, "format": calls.format_of(place, format), **options}
        steps = calls.make_export(self._client.retries, self.id, wish, timeout)
        return self._client.download(self._client.perform(steps), place)

    def exports(self) -> list[Export]:
        """The files that were made of it."""
        answer = self._steer("GET", "exports")
        return [made(Export, each) for each in answer["exports"]]

    def pause(self) -> Self:
        """Hand out no more items."""
        return self._became(self._steer("POST", "pause"))

    def resume(self) -> Self:
        """Go on."""
        return self._became(self._steer("POST", "resume"))

    def cancel(self, *, kill: bool = False) -> Self:
        """Cancel what was not handed out; with `kill` also end the items that run."""
        return self._became(self._steer("POST", "cancel", query={"mode": "kill" if kill else "drain"}))

    def redrive(self, **filters: Any) -> Self:
        """Run items again, those that failed unless told otherwise: `statuses`, `exit_reasons`, `policy`, …"""
        answer = self._steer("POST", "redrive", body=filters)
        return self._became(answer["job"])

    def delete(self) -> None:
        """Remove the job, which must have ended, with all that it left."""
        self._client.call("DELETE", calls.job_path(self.id))

    def _steer(self, method: str, part: str, *, query: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        return self._client.call(method, calls.job_path(self.id, part), query=query, body=body)

    def _became(self, document: Mapping[str, Any]) -> Self:
        self.document = document
        return self
