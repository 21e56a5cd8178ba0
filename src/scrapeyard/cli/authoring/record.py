"""`new` and `record`: a scraper from a template, and one real run kept as a case that can be replayed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from scrapeyard.cli.common.options import AllowPrivate, Input, Pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapeyard.authoring.recording import RecordingEngine
    from scrapeyard.authoring.redaction import Veil
    from scrapeyard.model import Outcome, Scraper
    from scrapeyard.settings import Settings

    Prepare = Callable[[dict[str, Any]], tuple[dict[str, Any], Path]]


def register_record(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(record)


def record(
    scraper: Annotated[Path, typer.Argument(metavar="FOLDER", help="The scraper's folder.")],
    *,
    pairs: Pairs = None,
    given: Input = None,
    url: Annotated[str | None, typer.Option(help="URL of the page (`url` of the input).")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the case. Default: made from the URL.")] = None,
    ends: Annotated[
        str | None, typer.Option(help="Expected end of the run, e.g. failed or blocked. Default: success.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a case that exists.")] = False,
    allow_private: AllowPrivate = False,
) -> None:
    """Run a scraper once, with the walls and limits of a server, and keep the pages it fetched and its result."""
    import asyncio

    from scrapeyard.authoring.findings import scraper_folder
    from scrapeyard.authoring.recording import case_folder, keep_case
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.common.inputs import read_input
    from scrapeyard.cli.runs.running import until_done

    folder = scraper_folder(scraper)
    settings = author_settings(http={"allow_private": allow_private or None})

    def prepare(schema: dict[str, Any]) -> tuple[dict[str, Any], Path]:
        value = read_input(given, pairs or [], lambda: schema, url)
        return value, case_folder(folder, name, value, force=force)

    done: _Recorded = asyncio.run(until_done(_run(folder, settings, prepare)))
    _check_end(done.outcome, ends)
    keep_case(done.target, done.input, done.outcome, done.result, done.engine.pages())
    _report(done)


class _Recorded(NamedTuple):
    """A finished run, and the folder for its case."""

    target: Path
    input: dict[str, Any]
    outcome: "Outcome"
    result: bytes
    engine: "RecordingEngine"


async def _run(folder: Path, settings: "Settings", prepare: "Prepare") -> _Recorded:
    import json

    from scrapeyard.authoring.recording import RecordingEngine
    from scrapeyard.cli.runs.local import open_yard
    from scrapeyard.cli.runs.running import say

    async with open_yard(settings) as yard:
        scraper = yard.load(folder)
        value, target = prepare(scraper.input_schema)
        value = yard.check(scraper, value)
        veil = _veil(scraper, settings)
        engine = RecordingEngine(await yard.engine(), veil)
        _, outcome = await yard.run(scraper, value, hear=say, engine=engine)
        shown: dict[str, Any] = json.loads(veil.text(json.dumps(value, ensure_ascii=False)))
        return _Recorded(target, shown, outcome, veil.data(await yard.result(outcome)), engine)


def _check_end(outcome: "Outcome", ends: str | None) -> None:
    from scrapeyard.authoring.recording import check_end
    from scrapeyard.cli.runs.summary import tell_local_end
    from scrapeyard.errors import BadRequest

    try:
        check_end(outcome, ends)
    except BadRequest as error:
        tell_local_end(outcome.exit_reason, outcome.error)
        typer.echo(f"scrapeyard: {error.message}", err=True)
        raise typer.Exit(1) from None


def _report(done: _Recorded) -> None:
    for path in sorted(done.target.iterdir()):
        typer.echo(str(path))
    pages = len(done.engine.pages())
    typer.echo(f"recorded {done.target.name}: {done.outcome.exit_reason}, {pages} page{'s' * (pages != 1)}", err=True)


def _veil(scraper: "Scraper", settings: "Settings") -> "Veil":
    """Hides the values of the secrets that the scraper is granted here. Raises ScraperInvalid when one is missing."""
    from msgspec.structs import replace

    from scrapeyard.authoring.redaction import Veil
    from scrapeyard.repository.trust.secrets import Secrets, secret_names

    named = {name: {"secret": name} for name in secret_names(scraper.config)}
    return Veil(Secrets(settings.repository.secrets_file).fill(replace(scraper, config=named)))


def register_new(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(new)


def new(
    scraper_id: Annotated[str, typer.Argument(metavar="SITE/TASK", help="The scraper's id, e.g. shop/product.")],
    template: Annotated[
        str, typer.Option(help="http: one page, one record; generator: a list over several pages, many records.")
    ] = "http",
    folder: Annotated[
        Path | None,
        typer.Option("--folder", "--dir", help="Where to write it; default: scrapers/SITE/TASK.", file_okay=False),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="A page to write it for: its host, the fields found there, and a case of that page."),
    ] = None,
    allow_private: AllowPrivate = False,
) -> None:
    """Write a new scraper: a script, its manifest, and a recorded case to test it with."""
    from scrapeyard.authoring.template import create
    from scrapeyard.cli.common.inputs import complete
    from scrapeyard.errors import BadRequest
    from scrapeyard.settings.repository import USUAL_SCRAPERS

    where = folder or USUAL_SCRAPERS / scraper_id
    url = complete(url) if url else None
    if url is not None and template != "http":
        raise BadRequest("--url goes with the template http")
    try:
        written = (
            create(where, scraper_id, template) if url is None else _for_page(where, scraper_id, url, allow_private)
        )
    except OSError as error:
        raise BadRequest(f"{error.filename or where}: cannot be written: {error.strerror}") from None
    for path in written:
        typer.echo(str(path))
    if url is not None:
        _record_first(where, scraper_id, url, allow_private)
        return
    page = "product/1" if template == "http" else "category/toys"
    typer.echo(_next_steps(where, scraper_id, f"http://127.0.0.1:8800/{page}"), err=True)


def _for_page(where: Path, scraper_id: str, url: str, allow_private: bool) -> list[Path]:
    """Write a scraper with the fields that are found on a page. Raises BadRequest when the page cannot be had."""
    from scrapeyard.authoring.drafting import create_for_page
    from scrapeyard.authoring.template import check_new
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.runs.engine_context import EngineThread
    from scrapeyard.errors import BadRequest
    from scrapeyard_sdk import FetchError

    check_new(where, scraper_id, ("scraper.py", "scraper.toml"))
    with EngineThread(author_settings(http={"allow_private": allow_private or None})) as engine:
        try:
            page = engine.fetch(url)
        except FetchError as error:
            raise BadRequest(f"{url}: {error}") from None
    if not page.ok:
        raise BadRequest(f"{url} answered {page.status}; give a page that is there")
    return create_for_page(where, scraper_id, page, url)


def _record_first(where: Path, scraper_id: str, url: str, allow_private: bool) -> None:
    record(where, url=url, allow_private=allow_private)
    typer.echo(
        f"""
Next, see the recorded case pass, without a network, then edit the script and see what changes:
  scrapeyard test {where}
  scrapeyard dev {where}
Serve it, and call it from a second terminal:
  {_up(where, scraper_id)}{" --allow-private" if allow_private else ""}
  scrapeyard scrape {scraper_id} {url}""",
        err=True,
    )


def _up(where: Path, scraper_id: str) -> str:
    """The command that serves a scraper. A server that runs here already has those of the usual folder."""
    from scrapeyard.settings.repository import USUAL_SCRAPERS

    root = where.parent.parent if where.parts[-2:] == tuple(scraper_id.split("/")) else where
    return "scrapeyard up" if root == USUAL_SCRAPERS else f"scrapeyard up --scrapers {root}"


def _next_steps(where: Path, scraper_id: str, url: str) -> str:
    return f"""
Next, see its recorded case pass, without a network:
  scrapeyard test {where}
Edit {where / "scraper.py"}, and try it on the practice shop of `scrapeyard demo-site`:
  scrapeyard run {where} url={url} --allow-private
Record what it does there as a case, and serve it:
  scrapeyard record {where} url={url} --allow-private
  {_up(where, scraper_id)} --allow-private
  scrapeyard scrape {scraper_id} url={url}"""
