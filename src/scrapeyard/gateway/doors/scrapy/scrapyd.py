"""The scrapyd door: `/schedule.json` and the rest of scrapyd's JSON API. A job there is a run here."""

import socket
from collections.abc import Awaitable, Callable
from email.message import Message
from email.parser import BytesParser
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from starlette.responses import Response

from scrapeyard.errors import BadRequest, NotFound
from scrapeyard.gateway.doors.door import ApiRefused, DoorCall
from scrapeyard.gateway.doors.scrapy.spiders import Spider, find, names_of, respond, spiders, start
from scrapeyard.repository.scrapy.scrapers import slug
from scrapeyard.settings import Settings

Handler = Callable[[DoorCall, "FormFields"], Awaitable[dict[str, Any]]]
_STATES: Final = {"queued": "pending", "running": "running"}
_ENDED: Final = ("succeeded", "failed", "cancelled")
_LISTED: Final = 200
"""Runs of each state that are listed, the newest."""
_SPIDERS: Final = 50
"""Spiders of a project whose runs are listed."""
_OF_A_CALL: Final = ("project", "spider", "setting", "jobid", "priority", "_version")


class FormFields:
    """The fields of a call, from its query or its form."""

    def __init__(self, pairs: list[tuple[str, str]], files: dict[str, bytes] | None = None) -> None:
        self.pairs = pairs
        self.files = files or {}

    def get(self, name: str, default: str = "") -> str:
        """The first value of a name."""
        return next((value for key, value in self.pairs if key == name), default)

    def __getitem__(self, name: str) -> str:
        """The same. Raises BadRequest if there is none."""
        if not (value := self.get(name)):
            raise BadRequest(f"'{name}' parameter is required")
        return value

    def all(self, name: str) -> list[str]:
        """Every value of a name."""
        return [value for key, value in self.pairs if key == name]


class ScrapydDoor:
    """Answers the twelve paths of scrapyd."""

    def __init__(self, settings: Settings) -> None:
        del settings
        self._node = socket.gethostname()
        self._routes: dict[str, tuple[str, Handler]] = {
            "/daemonstatus.json": ("GET", _daemon_status),
            "/addversion.json": ("POST", _add_version),
            "/schedule.json": ("POST", _schedule),
            "/cancel.json": ("POST", _cancel),
            "/status.json": ("GET", _status),
            "/listprojects.json": ("GET", _list_projects),
            "/listversions.json": ("GET", _list_versions),
            "/listspiders.json": ("GET", _list_spiders),
            "/listjobs.json": ("GET", _list_jobs),
            "/delversion.json": ("POST", _delete_version),
            "/delproject.json": ("POST", _delete_project),
        }

    def takes(self, method: str, path: str) -> bool:
        """Those paths, whatever the method."""
        del method
        return path in self._routes

    async def answer(self, call: DoorCall) -> Response:
        """Call the handler. Raises ApiRefused, NotFound or BadRequest."""
        method, handler = self._routes[call.path]
        if call.method != method:
            raise ApiRefused(405, {"code": "method_not_allowed", "detail": f"use {method}"})
        fields = FormFields(call.request.query_params.multi_items()) if method == "GET" else await _read_form(call)
        told = await handler(call, fields)
        return respond({**told, "status": "ok", "node_name": self._node})

    def refuse(self, refused: ApiRefused) -> Response:
        """In scrapyd's shape, with the status of the API."""
        told = {"status": "error", "message": refused.words, "node_name": self._node}
        return respond(told, refused.status, refused.headers)


async def _read_form(call: DoorCall) -> FormFields:
    """A form, with files or without, or the same as a JSON object. Raises BadRequest."""
    kind = call.request.headers.get("content-type", "")
    raw = await call.body()
    if kind.startswith("multipart/form-data"):
        return _read_parts(kind, raw)
    if kind.startswith("application/json"):
        return _of_object(await call.json())
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {error}") from None
    return FormFields([*call.request.query_params.multi_items(), *pairs])


def _of_object(given: Any) -> FormFields:
    if not isinstance(given, dict):
        raise BadRequest("the body must be a form or a JSON object")
    lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    return FormFields([(name, str(value)) for name, values in lists.items() for value in values])


def _read_parts(kind: str, raw: bytes) -> FormFields:
    whole = BytesParser().parsebytes(b"Content-Type: " + kind.encode("latin-1") + b"\r\n\r\n" + raw)
    parts = [part for part in whole.get_payload() if isinstance(part, Message)] if whole.is_multipart() else []
    pairs, files = [], {}
    for part in parts[:1000]:
        name = str(part.get_param("name", "", "content-disposition"))
        content = part.get_payload(decode=True)
        data = content if isinstance(content, bytes) else b""
        if part.get_filename() is None:
            pairs.append((name, data.decode("utf-8", "replace")))
        else:
            files[name] = data
    if not parts:
        raise BadRequest("the form cannot be read")
    return FormFields(pairs, files)


async def _list_projects(call: DoorCall, _fields: FormFields) -> dict[str, Any]:
    return {"projects": sorted({each.project for each in await spiders(call)})}


async def _list_versions(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    known = await spiders(call, fields["project"])
    return {"versions": list(dict.fromkeys(each.label for each in known))}


async def _list_spiders(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    known = await _of_project(call, fields["project"])
    version = fields.get("_version")
    found = [each for each in known if not version or version in (each.version, each.label)]
    if not found:
        raise NotFound(f"version '{version}' not found")
    return {"spiders": sorted(names_of(found).values())}


async def _of_project(call: DoorCall, project: str) -> list[Spider]:
    if known := await spiders(call, project):
        return known
    raise NotFound(f"project '{project[:100]}' not found")


async def _schedule(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    if fields.get("jobid"):
        raise BadRequest("jobid cannot be chosen here; leave it out, and the answer has one")
    known = await _of_project(call, fields["project"])
    spider = find(known, fields["spider"], fields.get("_version"))
    given: dict[str, Any] = {name: value for name, value in fields.pairs if name not in _OF_A_CALL}
    if settings := dict(_setting(each) for each in fields.all("setting")):
        given["scrapy"] = {"settings": settings}
    run = await start(call, spider, given, wait=0, priority=_priority(fields))
    return {"jobid": run["id"]}


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadRequest("setting must be NAME=VALUE")
    return name, value


def _priority(fields: FormFields) -> str:
    try:
        number = float(fields.get("priority") or 0)
    except ValueError:
        raise BadRequest("priority must be a number") from None
    return "normal" if number == 0 else "high" if number > 0 else "low"


async def _cancel(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    run = await _run(call, fields["job"], fields["project"])
    state = _STATES.get(run["status"]) if run else None
    if state:
        await call.api("DELETE", f"/api/scrape/{quote(fields['job'], safe='')}")
    return {"prevstate": state}


async def _status(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    run = await _run(call, fields["job"], fields.get("project"))
    return {"currstate": _STATES.get(run["status"], "finished") if run else None}


async def _run(call: DoorCall, job: str, project: str) -> dict[str, Any] | None:
    """The run of this id and project; None if there is none."""
    try:
        run: dict[str, Any] = (await call.api("GET", f"/api/scrape/{quote(job, safe='')}")).json()
    except ApiRefused as refused:
        if refused.status not in (404, 410, 422):
            raise
        return None
    return run if not project or run["scraper"].startswith(f"{slug(project)}/") else None


async def _list_jobs(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    project = fields.get("project")
    known = await _of_project(call, project) if project else await spiders(call)
    names = names_of(known)
    wanted = list(names)[:_SPIDERS] if project else [""]
    told: dict[str, list[dict[str, Any]]] = {"pending": [], "running": [], "finished": []}
    for scraper in wanted:
        for state, statuses in (("pending", ("queued",)), ("running", ("running",)), ("finished", _ENDED)):
            told[state] += [_job(run, names) for run in await _runs(call, statuses, scraper) if run["scraper"] in names]
    return told


async def _runs(call: DoorCall, statuses: tuple[str, ...], scraper: str = "") -> list[dict[str, Any]]:
    query = [
        ("limit", _LISTED),
        *(("status", status) for status in statuses),
        *([("scraper", scraper)] * bool(scraper)),
    ]
    found: list[dict[str, Any]] = (await call.api("GET", "/api/scrape", query=query)).json()["runs"]
    return found


def _job(run: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    job = {"id": run["id"], "project": run["scraper"].partition("/")[0], "spider": names[run["scraper"]]}
    if run["status"] == "queued":
        steering = run["input"].pop("scrapy", {}) if isinstance(run["input"], dict) else {}
        return {**job, "version": run["version"], "settings": steering.get("settings", {}), "args": run["input"]}
    urls = {"log_url": f"/api/scrape/{run['id']}/logs", "items_url": f"/api/scrape/{run['id']}"}
    times = {"start_time": _time(run["started_at"] or run["created_at"])}
    if run["finished_at"]:
        times["end_time"] = _time(run["finished_at"])
    return {**job, **({"pid": None} if run["status"] == "running" else {}), **times, **urls}


def _time(instant: str | None) -> str:
    """As `str(datetime)` writes it."""
    return (instant or "").replace("T", " ").removesuffix("Z")


async def _daemon_status(call: DoorCall, _fields: FormFields) -> dict[str, Any]:
    return {
        "pending": len(await _runs(call, ("queued",))),
        "running": len(await _runs(call, ("running",))),
        "finished": len(await _runs(call, _ENDED)),
    }


async def _add_version(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    project, version, egg = fields["project"], fields["version"], fields.files.get("egg")
    if not egg:
        raise BadRequest("egg is not a file; with curl, use egg=@path, not egg=path")
    path = f"/api/projects/{slug(project)}/versions/{quote(version, safe='')}"
    answer = await call.api("PUT", path, egg)
    return {"project": project, "version": version, "spiders": len(answer.json()["scrapers"])}


async def _delete_version(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    path = f"/api/projects/{slug(fields['project'])}/versions/{quote(fields['version'], safe='')}"
    await call.api("DELETE", path)
    return {}


async def _delete_project(call: DoorCall, fields: FormFields) -> dict[str, Any]:
    await call.api("DELETE", f"/api/projects/{slug(fields['project'])}")
    return {}
