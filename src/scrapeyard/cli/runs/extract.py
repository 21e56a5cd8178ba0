"""`extract`: fields of a page by name and type, without selectors."""

from pathlib import Path
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, Output, ServerUrl
from scrapeyard.cli.common.page_options import EngineName


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(extract)


def extract(
    page: Annotated[str, typer.Argument(metavar="PAGE", help="URL, or path of an HTML file.")],
    *,
    fields: Annotated[
        str | None, typer.Option(help="Fields to extract: 'title, price: number, in_stock: bool, subtitle?'.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="JSON schema of the data instead of --fields, as JSON or @file.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="Describe the data in a sentence instead of --fields.")] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(
            help="FIELD=SELECTOR: CSS selector or XPath to use if nothing else finds the field; may be repeated."
        ),
    ] = None,
    correct: Annotated[
        list[str] | None,
        typer.Option(help="FIELD=VALUE: the correct value; the site's pattern learns from it; may be repeated."),
    ] = None,
    provider: Annotated[str, typer.Option(help="Model provider; `none` for no model.")] = "",
    samples: Annotated[int, typer.Option(help="How many answers to ask of the model.", min=1, max=5)] = 1,
    sure: Annotated[
        float | None, typer.Option(help="Confidence at which a field counts as found, 0 to 1.", min=0, max=1)
    ] = None,
    engine: EngineName = None,
    page_url: Annotated[str, typer.Option("--page-url", help="URL of the page, if PAGE is a file.")] = "",
    wait: Annotated[float, typer.Option(help="Maximum seconds to wait.", min=0.001, max=3600)] = 120.0,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Extract fields of a page on a server. --json adds the confidence and the evidence for each field."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.inputs import check_output, read_object, write_result
    from scrapeyard.cli.common.output import show_json

    check_output(output)
    wanted = {"fields": fields, "prompt": prompt, "schema": read_object(schema, "--schema") if schema else None}
    call = _page(page, page_url) | {name: each for name, each in wanted.items() if each is not None}
    call |= {"fallback": _pairs(fallback, "--fallback", "SELECTOR")} if fallback else {}
    if correct:
        values = {name: _value(text) for name, text in _pairs(correct, "--correct", "VALUE").items()}
        call["examples"] = [{name: call[name] for name in ("url", "html") if name in call} | {"values": values}]
    ai: dict[str, Any] = {"provider": provider} if provider else {}
    ai |= {"samples": samples} if samples > 1 else {}
    more = {"ai": ai or None, "sure": sure, "engine": engine}
    call |= {name: each for name, each in more.items() if each is not None}
    _, run = Server(url).call("POST", "/api/extract", body={**call, "wait": wait}, patience=wait + 30)
    if run.get("status") != "succeeded":
        typer.echo(f"scrapeyard: not finished in time; it goes on: scrapeyard runs show {run['id']}", err=True)
        raise typer.Exit(1)
    result = run["result"]
    shown = result if as_json else result["data"]
    if output is not None:
        write_result(output, shown)
    else:
        show_json(shown)
    for warning in result["warnings"]:
        typer.echo(f"scrapeyard: {warning}", err=True)


def _page(page: str, page_url: str) -> dict[str, Any]:
    from scrapeyard.cli.common.inputs import complete, is_address
    from scrapeyard.errors import BadRequest

    path = Path(page)
    if not path.is_file():
        if not is_address(page):
            raise BadRequest(f"{page}: give a URL with http:// or https://, or a file of HTML")
        return {"url": complete(page)}
    try:
        html = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise BadRequest(f"{page}: cannot be read: {error.strerror}") from None
    return {"html": html} | ({"url": page_url} if page_url else {})


def _pairs(pairs: list[str], option: str, what: str) -> dict[str, str]:
    from scrapeyard.errors import BadRequest

    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise BadRequest(f"{option} {pair}: write FIELD={what}")
        found[name.strip()] = value.strip()
    return found


def _value(text: str) -> Any:
    """`null`: the page is without the field."""
    return None if text == "null" else text
