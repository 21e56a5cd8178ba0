"""`keys`: who may call a server, and what they may do. On a server, or in the database of this machine."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from scrapeyard.cli.common.options import AsJson, Commands
from scrapeyard.cli.operations.schedule import seconds

if TYPE_CHECKING:
    from scrapeyard.wiring.local_commands import LocalKeys

Done = TypeVar("Done")
group = Commands(help="API keys: create, list, show, rotate, revoke.")
_HEADERS = ("ID", "NAME", "CLIENT", "ROLE", "SCRAPERS", "EXPIRES", "LAST USED", "STATE")
_Key = Annotated[str, typer.Argument(metavar="KEY", help="Key id, or the name if only one active key has it.")]
_Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        help="URL of the server. Default: SCRAPEYARD_SERVER, then the one saved by `scrapeyard login`, then the "
        "database of this machine.",
    ),
]
_DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Use the local database in this data folder.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="keys")


@group.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the key, and of its client unless --client is given.")
    ],
    *,
    role: Annotated[str, typer.Option(help="Role: client, viewer, operator or admin.")],
    client: Annotated[str | None, typer.Option(help="Client that owns what the key creates. Default: NAME.")] = None,
    scrapers: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Scrapers it may call, e.g. shop/*; may be repeated. Default: all."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time until it expires: 90d, 12h. Default: never.")
    ] = None,
    rate: Annotated[str | None, typer.Option(metavar="RATE", help="Maximum rate of calls: 20/s, 100/m.")] = None,
    concurrency: Annotated[int, typer.Option(min=0, help="Maximum runs at once; 0 for no limit.")] = 0,
    body_mb: Annotated[
        float, typer.Option(min=0, help="Maximum request body in megabytes; 0 for the gateway's limit.")
    ] = 0,
    daily_runs: Annotated[int, typer.Option(min=0, help="Maximum runs per day; 0 for no limit.")] = 0,
    daily_fetches: Annotated[int, typer.Option(min=0, help="Maximum requests to the web per day; 0 for no limit.")] = 0,
    daily_mb: Annotated[float, typer.Option(min=0, help="Maximum megabytes per day; 0 for no limit.")] = 0,
    daily_direct_mb: Annotated[
        float, typer.Option(min=0, help="Maximum megabytes without a proxy per day; 0 for no limit.")
    ] = 0,
    daily_datacenter_mb: Annotated[
        float, typer.Option(min=0, help="Maximum datacenter megabytes per day; 0 for no limit.")
    ] = 0,
    daily_residential_mb: Annotated[
        float, typer.Option(min=0, help="Maximum residential megabytes per day; 0 for no limit.")
    ] = 0,
    daily_browser_seconds: Annotated[
        float, typer.Option(min=0, help="Maximum browser seconds per day; 0 for no limit.")
    ] = 0,
    monthly_runs: Annotated[int, typer.Option(min=0, help="Maximum runs per month; 0 for no limit.")] = 0,
    monthly_fetches: Annotated[
        int, typer.Option(min=0, help="Maximum requests to the web per month; 0 for no limit.")
    ] = 0,
    monthly_mb: Annotated[float, typer.Option(min=0, help="Maximum megabytes per month; 0 for no limit.")] = 0,
    monthly_direct_mb: Annotated[
        float, typer.Option(min=0, help="Maximum megabytes without a proxy per month; 0 for no limit.")
    ] = 0,
    monthly_datacenter_mb: Annotated[
        float, typer.Option(min=0, help="Maximum datacenter megabytes per month; 0 for no limit.")
    ] = 0,
    monthly_residential_mb: Annotated[
        float, typer.Option(min=0, help="Maximum residential megabytes per month; 0 for no limit.")
    ] = 0,
    monthly_browser_seconds: Annotated[
        float, typer.Option(min=0, help="Maximum browser seconds per month; 0 for no limit.")
    ] = 0,
    server: _Server = None,
    data_dir: _DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print its secret. It is shown only once: the server stores a keyed hash."""
    given = dict(locals())
    budgets = {
        span: {name.removeprefix(f"{span}_"): value for name, value in given.items() if name.startswith(f"{span}_")}
        for span in ("daily", "monthly")
    }
    calls = {"rate": 0 if rate is None else _rate(rate), "concurrency": concurrency, "body_mb": body_mb}
    body = {
        "name": name,
        "client": client,
        "role": role,
        "scrapers": scrapers or [],
        "expires_days": None if expires is None else seconds(expires, "--expires") / 86_400,
        "limits": {
            "rate": 0 if rate is None else _rate(rate),
            "concurrency": concurrency,
            "body_mb": body_mb,
            **budgets,
        },
    }
    _show_secret(_desk(server, data_dir).create(body), as_json)


@group.command("list")
def list_keys(server: _Server = None, data_dir: _DataDir = None, as_json: AsJson = False) -> None:
    """Every key, the newest first, those that ended included."""
    from scrapeyard.cli.common.output import show_list

    show_list(_desk(server, data_dir).all(), as_json, _HEADERS, _row, empty="no keys")


@group.command()
def show(
    key: _Key,
    server: _Server = None,
    data_dir: _DataDir = None,
    as_json: AsJson = False,  # noqa: ARG001  there is no other form, but every command takes it
) -> None:
    """A key as JSON, without its secret."""
    from scrapeyard.cli.common.output import show_json

    show_json(_named(_desk(server, data_dir), key))


@group.command()
def rotate(
    key: _Key,
    overlap: Annotated[
        str, typer.Option(metavar="TIME", help="How long the old key keeps working: 1d, 10m, 0s.")
    ] = "1d",
    server: _Server = None,
    data_dir: _DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a key that may do the same, and print its secret. The old one ends after the overlap."""
    desk = _desk(server, data_dir)
    _show_secret(desk.rotate(_named(desk, key)["id"], seconds(overlap, "--overlap")), as_json)


@group.command()
def revoke(key: _Key, server: _Server = None, data_dir: _DataDir = None, as_json: AsJson = False) -> None:
    """End a key. No gateway takes it any more a second later."""
    from scrapeyard.cli.common.output import show_json

    desk = _desk(server, data_dir)
    document = desk.revoke(_named(desk, key)["id"])
    if as_json:
        show_json(document)
    else:
        typer.echo(f"{document['name']} ({document['id']}) is revoked")


class _Desk(Protocol):
    """Where keys are kept."""

    def create(self, body: dict[str, Any]) -> dict[str, Any]: ...
    def all(self) -> list[dict[str, Any]]: ...
    def rotate(self, key_id: str, overlap_seconds: float) -> dict[str, Any]: ...
    def revoke(self, key_id: str) -> dict[str, Any]: ...


def _desk(server: str | None, data_dir: Path | None) -> _Desk:
    from scrapeyard.cli.common.server_address import named_server

    address, source = named_server()
    if data_dir is None and (server or source):
        return _Remote(server or address)
    return _Local(data_dir)


class _Remote:
    """Keys of a server."""

    def __init__(self, url: str) -> None:
        from scrapeyard.cli.common.client import Server

        self._server = Server(url)

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._document("POST", "/api/keys", body)

    def all(self) -> list[dict[str, Any]]:
        return list(self._server.get("/api/keys")["keys"])

    def rotate(self, key_id: str, overlap_seconds: float) -> dict[str, Any]:
        return self._document("POST", f"/api/keys/{key_id}/rotate", {"overlap_seconds": overlap_seconds})

    def revoke(self, key_id: str) -> dict[str, Any]:
        return self._document("DELETE", f"/api/keys/{key_id}")

    def _document(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return dict(self._server.call(method, path, body=body)[1])


class _Local:
    """Keys in the database of this machine's settings."""

    def __init__(self, data_dir: Path | None) -> None:
        from scrapeyard.settings import load
        from scrapeyard.telemetry.events import configure

        self._settings = load({"data_dir": data_dir})
        configure(self._settings.log.model_copy(update={"level": "warning"}))

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        import time

        from pydantic import ValidationError

        from scrapeyard.errors import BadRequest
        from scrapeyard.gateway.auth.documents import KeyCall

        try:
            draft = KeyCall.model_validate(body).draft(time.time())
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
            raise BadRequest("\n".join(faults)) from None

        async def work(keys: "LocalKeys") -> dict[str, Any]:
            key, secret = await keys.ring.create(draft)
            await keys.note("create_key", key.id, _shown(key))
            return {**_shown(key), "secret": secret}

        return self._run(work)

    def all(self) -> list[dict[str, Any]]:
        async def work(keys: "LocalKeys") -> list[dict[str, Any]]:
            return [_shown(key) for key in await keys.ring.all()]

        return self._run(work)

    def rotate(self, key_id: str, overlap_seconds: float) -> dict[str, Any]:
        async def work(keys: "LocalKeys") -> dict[str, Any]:
            key, secret, _ = await keys.ring.rotate(key_id, overlap_seconds)
            await keys.note("rotate_key", key_id, _shown(key))
            return {**_shown(key), "secret": secret}

        return self._run(work)

    def revoke(self, key_id: str) -> dict[str, Any]:
        async def work(keys: "LocalKeys") -> dict[str, Any]:
            shown = _shown(await keys.ring.revoke(key_id))
            await keys.note("revoke_key", key_id, shown)
            return shown

        return self._run(work)

    def _run(self, work: "Callable[[LocalKeys], Awaitable[Done]]") -> Done:
        import asyncio

        from scrapeyard.wiring.local_commands import local_keys

        async def opened() -> Done:
            async with local_keys(self._settings) as keys:
                return await work(keys)

        return asyncio.run(opened())


def _shown(key: Any) -> dict[str, Any]:
    import time

    from msgspec import to_builtins

    from scrapeyard.gateway.auth.documents import key_fields

    return dict(to_builtins(key_fields(key, time.time())))


def _named(desk: _Desk, given: str) -> dict[str, Any]:
    """The key that an id or a name means. Raises BadRequest."""
    from scrapeyard.errors import BadRequest

    keys = desk.all()
    found = [key for key in keys if key["id"] == given] or [
        key for key in keys if key["name"] == given and key["usable"] and not key["replaced_by"]
    ]
    if len(found) == 1:
        return found[0]
    why = "several usable keys have this name; give the id" if found else "no usable key has this name or id"
    raise BadRequest(f"{given[:100]}: {why}; `scrapeyard keys list` shows them")


def _row(key: dict[str, Any]) -> tuple[str, ...]:
    state = "usable" if key["usable"] else "revoked" if key["revoked_at"] else "expired"
    times = (key["expires_at"] or "never", key["last_used_at"] or "never")
    scrapers = ", ".join(key["scrapers"]) or "all"
    return key["id"], key["name"], key["client"], key["role"], scrapers, *times, state


def _show_secret(document: dict[str, Any], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json

    if as_json:
        show_json(document)
        return
    typer.echo(document["secret"])
    owner = f"of the client {document['client']}, role {document['role']}"
    typer.echo(f"{document['name']} ({document['id']}) {owner}; the secret is shown this once", err=True)


def _rate(text: str) -> float:
    from scrapeyard.errors import BadRequest

    found = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)(?:/([smh]))?", text)
    if found is None:
        raise BadRequest(f"--rate: {text[:40]!r} is no rate; write 20/s or 100/m")
    return float(found[1]) / {"s": 1, "m": 60, "h": 3600}[found[2] or "s"]
