"""Options that say what is wanted of a page and how it is asked for. They become fields of the input."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import PAGE_FILES

_FORMATS = "Forms of the page, separated by commas: markdown, html, raw_html, text, links, article, metadata, tables, …"
Formats = Annotated[str | None, typer.Option("--formats", help=_FORMATS)]
FormatsOrFormat = Annotated[str | None, typer.Option("--formats", "--format", help=_FORMATS)]
FieldPairs = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME=SELECTOR",
        help="Extract a field by CSS selector or XPath, e.g. title=h1; may be repeated.",
    ),
]
Fields = Annotated[
    str | None, typer.Option(help='Fields as a JSON object or @file: {"price": {"css": ".price", "as": "price"}}.')
]
RequestHeaders = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="NAME: VALUE", help="Request header; may be repeated.")
]
Cookies = Annotated[
    list[str] | None, typer.Option("--cookie", metavar="NAME=VALUE", help="Request cookie; may be repeated.")
]
Method = Annotated[str | None, typer.Option(help="Request method. Default: GET, or POST with --body.")]
Body = Annotated[str | None, typer.Option(help='Request body: text, {"json": …}, {"form": {…}}, or @file.')]
EngineName = Annotated[
    str | None, typer.Option("--engine", help="Engine that gets the page: auto, http, browser, light or solver.")
]
WaitFor = Annotated[
    str | None,
    typer.Option("--wait-for", metavar="SELECTOR", help="Open the page in a browser and wait for this element."),
]
Screenshot = Annotated[
    bool, typer.Option("--screenshot", help="Open the page in a browser and keep a screenshot as an artifact.")
]
OnlyMain = Annotated[
    bool | None, typer.Option("--only-main/--whole-page", help="Read the main part of the page, or all of it.")
]
IncludeTags = Annotated[
    list[str] | None, typer.Option("--include-tag", metavar="CSS", help="Read only matching elements; may be repeated.")
]
ExcludeTags = Annotated[
    list[str] | None, typer.Option("--exclude-tag", metavar="CSS", help="Leave out matching elements; may be repeated.")
]


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What was given; None or empty if an option was not."""

    formats: str | None = None
    field: Sequence[str] | None = None
    fields: str | None = None
    header: Sequence[str] | None = None
    cookie: Sequence[str] | None = None
    method: str | None = None
    body: str | None = None
    only_main: bool | None = None
    include_tag: Sequence[str] | None = None
    exclude_tag: Sequence[str] | None = None
    engine: str | None = None
    wait_for: str | None = None
    screenshot: bool = False

    @classmethod
    def among(cls, options: Mapping[str, Any]) -> "PageOptions":
        """Those among all options of a command, which has a parameter of the same name for each."""
        return cls(**{each.name: options[each.name] for each in dataclasses.fields(cls)})

    def table(self, output: Path | None = None) -> dict[str, Any]:
        """Fields of the input. A file that holds one part of a page asks for that part. Raises BadRequest."""
        table = {
            "formats": _listed(self.formats, output, is_page=not (self.field or self.fields)),
            "fields": self._fields() or None,
            "headers": dict(_split(each, ":", "--header") for each in self.header or ()) or None,
            "cookies": dict(_split(each, "=", "--cookie") for each in self.cookie or ()) or None,
            "method": self.method.upper() if self.method else None,
            "body": _body(self.body) if self.body is not None else None,
            "only_main": self.only_main,
            "include_tags": list(self.include_tag or ()) or None,
            "exclude_tags": list(self.exclude_tag or ()) or None,
            "engine": self.engine,
            "browser": {
                **({"wait_for": self.wait_for} if self.wait_for else {}),
                **({"screenshot": True} if self.screenshot else {}),
            }
            or None,
        }
        return {name: value for name, value in table.items() if value is not None}

    def _fields(self) -> dict[str, Any]:
        from scrapeyard.cli.common.inputs import read_object

        fields = read_object(self.fields, "--fields") if self.fields is not None else {}
        return fields | dict(_split(each, "=", "--field") for each in self.field or ())


def _listed(formats: str | None, output: Path | None, *, is_page: bool) -> list[str] | None:
    wanted = [name.strip() for name in (formats or "").split(",") if name.strip()]
    part = PAGE_FILES.get(output.suffix.lower()) if output is not None else None
    if part is not None and is_page and part not in wanted:
        wanted.append(part)
    return list(dict.fromkeys(wanted)) or None


def _split(pair: str, sign: str, option: str) -> tuple[str, str]:
    from scrapeyard.errors import BadRequest

    name, found, value = pair.partition(sign)
    if not found or not name.strip():
        raise BadRequest(f"{option}: {pair[:100]!r}: write NAME{sign}VALUE")
    return name.strip(), value.strip()


def _body(given: str) -> Any:
    """An object of `json` or `form` is one; everything else is text."""
    import json

    from scrapeyard.cli.common.inputs import read_text

    text = read_text(given, "--body")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) and value.keys() <= {"json", "form"} and value else text
