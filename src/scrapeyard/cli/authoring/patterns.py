"""`patterns`: learn from a few answered pages how a site's pages are read, and make a scraper of that."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AllowPrivate, AsJson, Commands, ServerUrl

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapeyard_sdk.extract.patterns import Example, Pattern

    Read = Callable[[str], tuple[str | bytes, str]]

MAX_FILE = 20 * 2**20
"""Bytes of a page or of a list of examples."""
group = Commands(
    help="Learned patterns: those of a server, and files: learn, apply, check, export.", no_args_is_help=True
)

Examples = Annotated[
    Path,
    typer.Argument(
        metavar="EXAMPLES", help="CSV, JSON or JSONL: a row for each page, with its url (or file) and its values."
    ),
]
PatternOf = Annotated[
    str, typer.Argument(metavar="PATTERN", help="A file, or the id of a server's pattern, as `patterns list` shows it.")
]
PatternFile = Annotated[Path, typer.Argument(metavar="PATTERN", help="A pattern, as `patterns learn` writes it.")]
Pages = Annotated[list[str], typer.Argument(metavar="PAGE...", help="URLs, or files of HTML.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="patterns")


@group.command("list")
def list_stored(
    site: Annotated[str | None, typer.Option(help="Only patterns of this site.")] = None,
    *,
    url: ServerUrl = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what a server has learned of sites, with how it is doing."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.listing import pages
    from scrapeyard.cli.common.output import show_json, show_table

    found = list(pages(Server(url), "/api/patterns", "patterns", 1000, **({"site": site} if site else {})))
    if as_json:
        show_json(found)
        return
    rows = [
        (
            each["id"],
            each["site"],
            each["status"],
            str(each["version"]),
            str(each["health"]["pages"]),
            str(each["health"]["asked"]),
            _rates(each["health"]["fill_rates"]),
        )
        for each in found
    ]
    show_table(("ID", "SITE", "STATUS", "VERSION", "PAGES", "ASKED", "FOUND"), rows, empty="nothing is learned yet")


def _rates(rates: dict[str, float]) -> str:
    return ", ".join(f"{name} {round(100 * share)} %" for name, share in rates.items())


@group.command()
def show(
    pattern_id: Annotated[str, typer.Argument(metavar="ID", help="Pattern id, as `patterns list` shows it.")],
    *,
    rules: Annotated[
        bool, typer.Option("--rules", help="Print only the rules, as the other commands read them.")
    ] = False,
    url: ServerUrl = DEFAULT_URL,
) -> None:
    """Show a pattern of a server: its rules, its health and its versions, as JSON."""
    from scrapeyard.cli.common.output import show_json

    found = _stored(pattern_id, url)
    show_json(found["pattern"] if rules else found)


@group.command()
def edit(
    pattern_id: Annotated[str, typer.Argument(metavar="ID", help="Pattern id, as `patterns list` shows it.")],
    pattern: PatternFile,
    *,
    url: ServerUrl = DEFAULT_URL,
) -> None:
    """Give a pattern of a server the rules of a file. They become its next version, and stay until it is stale."""
    import json

    from scrapeyard.cli.common.client import Server

    rules = json.loads(_pattern(pattern).to_json())
    _, changed = Server(url).call("PUT", f"/api/patterns/{pattern_id}", body={"pattern": rules})
    _tell(f"version {changed['version']} of {pattern_id} is in force within five seconds")


@group.command()
def learn(
    examples: Examples,
    *,
    pages: Annotated[
        list[str] | None, typer.Option("--page", help="Another page of that kind, a URL or a file. May be repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the pattern to this file instead of stdout.")
    ] = None,
    allow_private: AllowPrivate = False,
) -> None:
    """Learn from a few pages with their values how the same fields are read from all pages of that kind.

    Two pages are enough for most sites; three to five, and some pages without values (--page), are better.
    """
    from scrapeyard.errors import BadRequest
    from scrapeyard_sdk.extract.patterns import learn as learn_pattern
    from scrapeyard_sdk.extract.patterns.template import marks, templates_of
    from scrapeyard_sdk.extract.patterns.tree import PageTree

    with _reader(allow_private) as read:
        answered = _examples(examples, read)
        others = [read(page)[0] for page in pages or []]
    pattern = learn_pattern(answered, others)
    missing = sorted({name for each in answered for name in each.values} - set(pattern.fields))
    if not pattern.fields:
        raise BadRequest("no value of the examples stands on its page; compare them with the pages' HTML")
    _write(pattern.to_json(), output)
    _tell(f"learned {_names(pattern.fields)} from {len(answered)} page{'s' * (len(answered) != 1)}")
    if missing:
        _tell(f"not learned: {_names(missing)}; the values must stand on the pages as they are written")
    groups = templates_of([marks(PageTree(each.html)) for each in answered])
    if len(groups) > 1:
        few = ", ".join(answered[number].url or f"row {number + 1}" for group in groups[1:] for number in group[:3])
        _tell(f"the pages are of {len(groups)} templates: learn those of each apart; {few} differ from the others")


@group.command()
def apply(pattern: PatternFile, pages: Pages, as_json: AsJson = False, allow_private: AllowPrivate = False) -> None:
    """Read pages by a pattern: a line of JSON for each. --json adds how sure each value is, and its rule."""
    learned = _pattern(pattern)
    with _reader(allow_private) as read:
        for page in pages:
            html, url = read(page)
            typer.echo(_line(page, learned, html, url, as_json))


@group.command()
def check(
    pattern: PatternFile, examples: Examples, as_json: AsJson = False, allow_private: AllowPrivate = False
) -> None:
    """Compare what a pattern finds with known values. Ends with 1 if one is wrong or missing."""
    from scrapeyard.cli.common.output import show_json, show_table

    learned = _pattern(pattern)
    with _reader(allow_private) as read:
        results = [_compared(learned, each) for each in _examples(examples, read)]
    names = dict.fromkeys([*learned.fields, *(name for each in results for name in each)])
    counts = {
        name: {word: sum(each.get(name) == word for each in results) for word in ("right", "wrong", "missing")}
        for name in names
    }
    if as_json:
        show_json(counts)
    else:
        rows = [(name, *map(str, each.values())) for name, each in counts.items()]
        show_table(("FIELD", "RIGHT", "WRONG", "MISSING"), rows, empty="no fields")
    if any(each["wrong"] or each["missing"] for each in counts.values()):
        raise typer.Exit(1)


@group.command()
def export(
    pattern: PatternOf,
    scraper_id: Annotated[str, typer.Argument(metavar="SITE/TASK", help="The scraper's id, e.g. shop/product.")],
    *,
    folder: Annotated[
        Path | None, typer.Option(help="Where to write it; default: a folder named after the id.", file_okay=False)
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="A host that the scraper may reach; default: any. May be repeated.")
    ] = None,
    url: ServerUrl = DEFAULT_URL,
) -> None:
    """Write an ordinary scraper that reads pages by this pattern."""
    from scrapeyard.authoring.learned_script import write_scraper
    from scrapeyard.errors import BadRequest

    where = folder or Path(scraper_id)
    try:
        written = write_scraper(where, scraper_id, _pattern_of(pattern, url), host or [])
    except OSError as error:
        raise BadRequest(f"{where}: cannot be written: {error.strerror}") from None
    for path in written:
        typer.echo(str(path))
    _tell(f"Next: scrapeyard run {where} url=…")


@contextmanager
def _reader(allow_private: bool) -> Iterator["Read"]:
    """Reads pages: files at once, URLs by the worker's engine, which starts with the first one."""
    from contextlib import ExitStack

    from scrapeyard.cli.common.inputs import is_address

    with ExitStack() as stack:
        engines: list[Any] = []

        def read(page: str) -> tuple[str | bytes, str]:
            if Path(page).is_file() or not is_address(page):
                return _bytes(Path(page)), ""
            if not engines:
                engines.append(stack.enter_context(_engine(allow_private)))
            return _fetched(engines[0], page)

        yield read


def _engine(allow_private: bool) -> Any:
    from scrapeyard.cli.authoring.common import author_settings
    from scrapeyard.cli.runs.engine_context import EngineThread

    return EngineThread(author_settings(http={"allow_private": allow_private or None}))


def _fetched(engine: Any, page: str) -> tuple[str, str]:
    from scrapeyard.cli.common.inputs import complete
    from scrapeyard.errors import BadRequest
    from scrapeyard_sdk import FetchError

    try:
        got = engine.fetch(complete(page))
    except FetchError as error:
        raise BadRequest(f"{page}: {error}") from None
    if not got.ok:
        raise BadRequest(f"{page} answered {got.status}; give a page that is there")
    return got.html, got.url


def _bytes(path: Path) -> bytes:
    from scrapeyard.errors import BadRequest

    try:
        if path.stat().st_size > MAX_FILE:
            raise BadRequest(f"{path} has more than {MAX_FILE // 2**20} MB")
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path}: cannot be read: {error.strerror}") from None


def _examples(path: Path, read: "Read") -> list["Example"]:
    from scrapeyard.errors import BadRequest
    from scrapeyard_sdk.extract.patterns import Example
    from scrapeyard_sdk.extract.patterns.learning import MAX_EXAMPLES

    rows = list(_rows(path))
    if not 0 < len(rows) <= MAX_EXAMPLES:
        raise BadRequest(f"{path}: {len(rows)} examples; give 1 to {MAX_EXAMPLES}")
    found = []
    for number, row in enumerate(rows, 1):
        page = row.get("url") or row.get("file")
        values = {name: value for name, value in row.items() if name not in ("url", "file")}
        if not isinstance(page, str) or not values:
            raise BadRequest(f"{path}: row {number} needs a url or a file, and values")
        beside = path.parent / page if "url" not in row else None
        html, url = read(str(beside) if beside is not None else page)
        found.append(Example(html=html, values=values, url=url))
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    import csv
    import io
    import json

    from scrapeyard.errors import BadRequest

    try:
        text = _bytes(path).decode("utf-8-sig")
        if path.suffix.lower() == ".csv":
            yield from (
                {str(name): value or None for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))
            )
            return
        given = (
            json.loads(text)
            if path.suffix.lower() == ".json"
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (ValueError, RecursionError, csv.Error) as error:
        raise BadRequest(f"{path}: cannot be read: {error}") from None
    if not isinstance(given, list) or not all(isinstance(row, dict) for row in given):
        raise BadRequest(f"{path}: give a list of objects")
    yield from given


def _stored(pattern_id: str, url: str) -> dict[str, Any]:
    from scrapeyard.cli.common.client import Server

    return dict(Server(url).get(f"/api/patterns/{pattern_id}"))


def _pattern_of(given: str, url: str) -> "Pattern":
    """Of a file, or of a server."""
    import json

    from scrapeyard.errors import BadRequest
    from scrapeyard_sdk.extract.patterns import Pattern

    if Path(given).is_file() or not given.startswith("pattern_"):
        return _pattern(Path(given))
    rules = _stored(given, url)["pattern"]
    if rules is None:
        raise BadRequest(f"{given}: nothing is learned yet; it needs two answered pages")
    return Pattern.from_json(json.dumps(rules))


def _pattern(path: Path) -> "Pattern":
    from scrapeyard.errors import BadRequest
    from scrapeyard_sdk.extract.patterns import Pattern, PatternInvalid

    try:
        return Pattern.from_json(_bytes(path))
    except PatternInvalid as error:
        raise BadRequest(f"{path}: {error}") from None


def _line(page: str, pattern: "Pattern", html: str | bytes, url: str, whole: bool) -> str:
    import json
    from dataclasses import asdict

    found = pattern.find(html, url)
    shown = {name: asdict(each) if whole else each.value for name, each in found.items()}
    return json.dumps({"page": url or page, **({"fields": shown} if whole else shown)}, ensure_ascii=False)


def _compared(pattern: "Pattern", example: "Example") -> dict[str, str]:
    """Field to `right`, `wrong` or `missing`; fields that the page does not have are right if nothing is found."""
    from scrapeyard_sdk.extract.patterns.learning import agrees

    found = pattern.find(example.html, example.url)
    return {
        name: agrees(pattern.fields.get(name), found.get(name), value, example.url)
        for name, value in example.values.items()
    }


def _write(text: str, output: Path | None) -> None:
    from scrapeyard.errors import BadRequest

    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise BadRequest(f"{output}: cannot be written: {error.strerror}") from None


def _names(names: Any) -> str:
    return ", ".join(names)


def _tell(words: str) -> None:
    typer.echo(f"scrapeyard: {words}", err=True)
