"""`login` and `logout`: the server that commands call when nothing else names one."""

from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import AsJson

_PATIENCE_SECONDS = 10.0
_MAX_KEY = 16_384


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(login)
    app.command()(logout)


def login(
    server: Annotated[str | None, typer.Argument(metavar="URL", help="URL of the server.")] = None,
    *,
    key: Annotated[
        str | None,
        typer.Option("--key", help="API key; - prompts for it, or reads it from stdin."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show which server commands call, and which setting says so.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Keep the address of a server and a key, so that later commands call it. The server must answer."""
    from scrapeyard.cli.common.server_address import config_file, named_server
    from scrapeyard.errors import BadRequest

    if show == (server is not None):
        raise BadRequest("give the server's URL, or --show")
    if server is not None:
        _keep(server, _read_key(key))
    address, source = named_server()
    _tell({"server": address, "source": source or "default", "file": str(config_file())}, as_json, server)


def logout() -> None:
    """Forget the server that `scrapeyard login` keeps."""
    from scrapeyard.cli.common.server_address import config_file, server_in_force
    from scrapeyard.errors import BadRequest

    try:
        config_file().unlink(missing_ok=True)
    except OSError as error:
        raise BadRequest(f"{config_file()}: cannot be removed: {error.strerror}") from None
    typer.echo(f"commands now call {server_in_force()}", err=True)


def _read_key(given: str | None) -> str:
    import getpass
    import os
    import sys

    from scrapeyard.cli.common.server_address import KEY
    from scrapeyard.errors import BadRequest

    if given is None:
        return os.environ.get(KEY, "")
    if given == "-":
        given = getpass.getpass("Key: ") if sys.stdin.isatty() else sys.stdin.readline(_MAX_KEY)
    if not given.strip():
        raise BadRequest("--key: the key is empty")
    return given.strip()


def _keep(url: str, key: str) -> None:
    import json

    from scrapeyard.cli.common.client import Server, ServerUnreachable
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.server_address import config_file
    from scrapeyard.errors import BadRequest

    server = Server(url, key)
    identity = server.get("/api/identity", patience=_PATIENCE_SECONDS)
    if not isinstance(identity, dict) or "role" not in identity:
        raise ServerUnreachable(f"{server.url} answers, but not as Scrapeyard does; check host and port")
    file = config_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadRequest(f"{file.parent}: cannot be made: {error.strerror}") from None
    with whole_file(file, mode=0o600) as stream:
        stream.write(f"server = {json.dumps(server.url)}\n".encode())
        if key:
            stream.write(f"key = {json.dumps(key)}\n".encode())


def _tell(found: dict[str, Any], as_json: bool, kept: str | None) -> None:
    from scrapeyard.cli.common.output import plain, show_json

    if as_json:
        show_json(found)
        return
    typer.echo(plain(found["server"]))
    if kept is not None and found["source"] != found["file"]:
        typer.echo(f"scrapeyard: {kept} is kept, but {found['source']} is set and goes first", err=True)
    else:
        typer.echo(f"named by {found['source']}" if kept is None else f"kept in {found['file']}", err=True)
