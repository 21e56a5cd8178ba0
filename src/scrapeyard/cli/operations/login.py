"""`login` and `logout`: the server that commands call when nothing else names one."""

from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import AsJson

_PATIENCE_SECONDS = 10.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(login)
    app.command()(logout)


def login(
    server: Annotated[str | None, typer.Argument(metavar="URL", help="The server's address.")] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show the server that commands call, and what names it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Keep the address of a server, so that later commands call it. The server must answer."""
    from scrapeyard.cli.common.server_address import config_file, named_server
    from scrapeyard.errors import BadRequest

    if show == (server is not None):
        raise BadRequest("give the server's URL, or --show")
    if server is not None:
        _keep(server)
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


def _keep(url: str) -> None:
    import json

    from scrapeyard.cli.common.client import Refused, Server, ServerUnreachable
    from scrapeyard.cli.common.inputs import whole_file
    from scrapeyard.cli.common.server_address import config_file
    from scrapeyard.errors import BadRequest

    server = Server(url)
    try:
        health = server.get("/api/health", patience=_PATIENCE_SECONDS)
    except Refused as refusal:
        health = refusal.document
    if not isinstance(health, dict) or "dependencies" not in health:
        raise ServerUnreachable(f"{server.url} answers, but not as Scrapeyard does; check host and port")
    file = config_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadRequest(f"{file.parent}: cannot be made: {error.strerror}") from None
    with whole_file(file) as stream:
        stream.write(f"server = {json.dumps(server.url)}\n".encode())


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
