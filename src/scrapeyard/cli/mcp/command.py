"""The command."""

from typing import TYPE_CHECKING, Annotated

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, ServerUrl

if TYPE_CHECKING:
    from scrapeyard.cli.mcp.calls import Api

_PORT = 8020


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(serve)


def serve(
    *,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="With --http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --http: the port to listen on.")] = _PORT,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="With --http: allow a public address without authentication."),
    ] = False,
    server: ServerUrl = DEFAULT_URL,
) -> None:
    """Offer this server's tools to programs that speak the Model Context Protocol (MCP).

    Over stdin and stdout it calls the server with your key. With --http every caller sends a key of its own.
    """
    import asyncio

    from scrapeyard.cli.common.server_address import key_for
    from scrapeyard.errors import BadRequest
    from scrapeyard.extras import missing

    if words := missing("mcp"):
        raise BadRequest(words)
    if http:
        asyncio.run(_listen(server, host, port, insecure))
        return
    from scrapeyard.cli.mcp.server import serve_stdio

    asyncio.run(serve_stdio(server, key_for(server)))


async def _listen(server: str, host: str, port: int, insecure: bool) -> None:
    import uvicorn

    from scrapeyard.cli.mcp.calls import Api
    from scrapeyard.cli.mcp.server import PATH, http_app

    api = Api(server)
    try:
        await check_open(api, host, insecure=insecure)
        config = uvicorn.Config(http_app(api, host), host=host, port=port, log_level="warning", access_log=False)
        listening = uvicorn.Server(config)
        bound = config.bind_socket()
        shown = bound.getsockname()[1]
        typer.echo(f"MCP over HTTP: http://{host}:{shown}{PATH} for {server}. Ctrl-C stops it.", err=True)
        await listening.serve([bound])
    finally:
        await api.close()


async def check_open(api: "Api", host: str, *, insecure: bool) -> None:
    """Raise BadRequest if other machines could call a server that asks nobody for a key."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.gateway.server import is_loopback

    if insecure or is_loopback(host):
        return
    if not (await api.call({}, "GET", "/api/session"))["auth_required"]:
        raise BadRequest(
            f"other machines reach {host}, and {api.url} asks nobody for a key; make keys (scrapeyard keys create), or "
            "say --insecure behind a firewall"
        )
