"""What can be asked of a server: each call once, as steps."""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from scrapeyard_client.documents import Export, Item, Run, is_over, made
from scrapeyard_client.errors import FileFailed, PandasMissing, RunFailed, WaitTimeout
from scrapeyard_client.steps import Pause, Request, Retries, Steps, TimeLimit, ask

Upload = str | Path | bytes | BinaryIO
"""A list to send: the path of a file, its content, or an open file."""
PATIENCE_SECONDS = 15.0
"""How much longer than its own wait a waiting call may take."""
LONG_POLL_SECONDS = 30.0
UPLOAD_SECONDS = 600.0
FIRST_POLL, LAST_POLL = 0.2, 2.0
PAGE = 200
_PIECE = 1024 * 1024
_MEDIA = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".txt": "text/plain",
    ".gz": "application/gzip",
}
_OBJECTS = (dict, list, tuple)
_FORMATS = {".csv": "csv", ".xlsx": "xlsx", ".json": "json", ".jsonl": "jsonl", ".parquet": "parquet"}


def call(
    retries: Retries, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None
) -> Steps[Any]:
    """Any operation of the API: its document, or None if it answers with none."""
    answer = yield from ask(Request(method=method, path=path, query=given(query or {}), body=body), retries)
    return answer.document()


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def keyed(key: str | None) -> dict[str, str]:
    """The header that makes a call safe to repeat: the caller's key, or a new one."""
    return {"Idempotency-Key": key or uuid.uuid4().hex}


def start_run(
    retries: Retries,
    body: Mapping[str, Any],
    *,
    path: str = "/api/scrape",
    wait: bool = True,
    timeout: float | None = None,
    check: bool = True,
    key: str | None = None,
) -> Steps[Run]:
    """Run a scraper and wait for its end. Raises RunFailed, unless `check` is false, and WaitTimeout."""
    deadline, asked = TimeLimit(timeout), given(body)
    if not wait:
        asked["wait"] = 0
    elif timeout is not None and timeout < LONG_POLL_SECONDS:
        asked["wait"] = timeout
    seconds = LONG_POLL_SECONDS + PATIENCE_SECONDS
    try:
        answer = yield from ask(
            Request(method="POST", path=path, body=asked, headers=keyed(key), seconds=seconds), retries
        )
    except RunFailed as failed:
        if check or not failed.run_id:
            raise
        return (yield from get_run(retries, failed.run_id))
    run = made(Run, answer.document())
    if not wait or run.has_ended:
        return run
    return (yield from wait_for_run(retries, run.id, deadline, check=check))


def get_run(retries: Retries, run_id: str, wait: float | None = None) -> Steps[Run]:
    """A run as it is now, or when it has ended."""
    query, seconds = given({"wait": wait}), (wait or 0) + PATIENCE_SECONDS
    answer = yield from ask(Request(method="GET", path=run_path(run_id), query=query, seconds=seconds), retries)
    return made(Run, answer.document())


def wait_for_run(retries: Retries, run_id: str, deadline: TimeLimit, *, check: bool) -> Steps[Run]:
    """A run when it has ended."""
    while True:
        run = yield from get_run(retries, run_id, deadline.left(LONG_POLL_SECONDS))
        if run.has_ended:
            if check and not run.has_succeeded:
                raise RunFailed(200, _problem(run))
            return run
        if deadline.is_over:
            raise WaitTimeout("run", run_id, deadline.seconds or 0)


def _problem(run: Run) -> dict[str, Any]:
    detail = str((run.error or {}).get("message", run.status))
    return {"id": run.id, "code": run.exit_reason, "exit_reason": run.exit_reason, "detail": detail}


def create_job(
    retries: Retries, options: Mapping[str, Any], *, path: str = "/api/jobs", key: str | None = None
) -> Steps[Any]:
    """Make a job of a JSON body: its document."""
    request = Request(method="POST", path=path, body=given(options), headers=keyed(key), seconds=UPLOAD_SECONDS)
    return (yield from ask(request, retries)).document()


def upload(
    retries: Retries, path: str, file: Upload, options: Mapping[str, Any], *, key: str | None = None
) -> Steps[Any]:
    """Send a list as the body itself; the options go into the query. The document of the answer."""
    query = {name: _in_query(value) for name, value in given(options).items()}
    media, content = opened(file, str(options.get("format") or ""))
    headers = {**keyed(key), "Content-Type": media}
    request = Request(method="POST", path=path, query=query, content=content, headers=headers, seconds=UPLOAD_SECONDS)
    return (yield from ask(request, retries)).document()


def _in_query(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, _OBJECTS) else value


def opened(file: Upload, form: str) -> tuple[str, Callable[[], Iterable[bytes]]]:
    """The media type of a list, and what makes its pieces."""
    if isinstance(file, bytes):
        return _MEDIA.get(f".{form}", "text/plain"), lambda: (file,)
    if isinstance(file, str | Path):
        path = Path(file)
        return _MEDIA.get(path.suffix.lower(), "text/plain"), lambda: _pieces_of(path)
    name = str(getattr(file, "name", ""))
    media = _MEDIA.get(Path(name).suffix.lower()) or _MEDIA.get(f".{form}", "text/plain")
    start, begun = file.tell() if file.seekable() else None, False

    def pieces() -> Iterator[bytes]:
        nonlocal begun
        if start is not None:
            file.seek(start)
        elif begun:
            raise FileFailed(f"{name or 'the stream'} cannot be read a second time, so the upload cannot be repeated")
        begun = True
        while piece := file.read(_PIECE):
            yield piece

    return media, pieces


def _pieces_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            yield piece


def wait_for_job(retries: Retries, job_id: str, timeout: float | None) -> Steps[Any]:
    """The document of a job that has ended and whose files are written. Raises WaitTimeout."""
    deadline, pause = TimeLimit(timeout), FIRST_POLL
    while not is_over(job := (yield from call(retries, "GET", job_path(job_id)))):
        if deadline.is_over:
            raise WaitTimeout("job", job_id, deadline.seconds or 0)
        yield Pause(deadline.left(pause))
        pause = min(LAST_POLL, pause * 1.5)
    return job


def run_path(*parts: str) -> str:
    """The path of a run, or of a part of it."""
    return "/".join(("/api/scrape", *(quote(part, safe="") for part in parts)))


def job_path(*parts: str) -> str:
    """The path of a job, or of a part of it."""
    return "/".join(("/api/jobs", *(quote(part, safe="") for part in parts)))


def page(
    retries: Retries, path: str, name: str, query: Mapping[str, Any], cursor: str | None
) -> Steps[tuple[list[dict[str, Any]], str | None]]:
    """One page of a listing, and where the next begins."""
    found = yield from call(retries, "GET", path, query={"limit": PAGE, **query, "cursor": cursor})
    return found[name], found["next_cursor"]


def records_of(retries: Retries, job_id: str, item: Item) -> Steps[list[Any]]:
    """What an item's scraper returned: its records, or its one result. A large result is downloaded."""
    result = item.result
    if result is None and item.result_bytes:
        result = yield from call(retries, "GET", job_path(job_id, "items", item.id, "download"))
    if result is None:
        return []
    return result if isinstance(result, list) else [result]


def make_export(retries: Retries, job_id: str, wish: Mapping[str, Any], timeout: float | None) -> Steps[Export]:
    """Make a file of a job, and wait until it is there. Raises FileFailed, WaitTimeout."""
    export = made(Export, (yield from call(retries, "POST", job_path(job_id, "exports"), body=given(wish))))
    deadline, pause = TimeLimit(timeout), FIRST_POLL
    while export.state not in ("done", "failed"):
        if deadline.is_over:
            raise WaitTimeout("export", export.id, deadline.seconds or 0)
        yield Pause(deadline.left(pause))
        pause = min(LAST_POLL, pause * 1.5)
        export = made(Export, (yield from call(retries, "GET", f"/api/exports/{export.id}")))
    if export.state == "failed":
        raise FileFailed(f"export {export.id}: {export.error}")
    return export


def format_of(path: Path, form: str | None) -> str:
    """The format of a file: as asked, else by its name. Raises ValueError."""
    found = form or _FORMATS.get(path.suffix.lower())
    if found is None:
        raise ValueError(f"{path.name} does not tell its format; end it in {', '.join(_FORMATS)}, or give format=")
    return found


def scrape_body(url: str, formats: Sequence[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a call for one page."""
    return {"url": url, "formats": None if formats is None else list(formats), **options}


def urls_of(run: Run) -> list[str]:
    """The URLs that a map found."""
    return [each if isinstance(each, str) else str(each["url"]) for each in run.result["urls"]]


def frame_maker() -> Callable[[Sequence[Any]], Any]:
    """Makes a pandas DataFrame with one row for each record. Raises PandasMissing, before anything is fetched."""
    try:
        import pandas  # noqa: ICN001, PLC0415  loaded only where a frame is asked for
    except ImportError:
        raise PandasMissing("to_frame() needs pandas, which is not installed: pip install pandas") from None

    def frame(records: Sequence[Any]) -> Any:
        return pandas.DataFrame([record if isinstance(record, dict) else {"value": record} for record in records])

    return frame
