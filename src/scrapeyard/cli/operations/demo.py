"""`demo-site`: a shop to practise on."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo-site")(demo_site)


def demo_site(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8800,
) -> None:
    """Serve a small shop to scrape, so that a first try needs no network."""
    from scrapeyard.demo import serve
    from scrapeyard.errors import BadRequest

    try:
        serve(host, port, _ready)
    except OSError as error:
        raise BadRequest(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None


def _ready(url: str) -> None:
    typer.echo(f"The shop is open at {url}/ (a product: {url}/product/1). Ctrl-C closes it.", err=True)
