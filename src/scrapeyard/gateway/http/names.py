"""Other names of the fields of requests. A body that uses one is read as if it had used ours."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from scrapeyard.builtin.scrapers import PAGE_INPUT
from scrapeyard.builtin.selecting import SELECT_INPUT


class OtherName(NamedTuple):
    """What another name stands for."""

    ours: tuple[str, ...]
    """The field, after those that it is in."""
    read: Callable[[Any], Any] = lambda given: given
    """From the value under the other name to ours."""
    schema: dict[str, Any] | None = None
    """Of the value, for the API document. None if it is no property of its own there."""


def _negated(given: Any) -> Any:
    return not given if isinstance(given, bool) else given


SCRAPERS = {"example-mock": "builtin/echo"}
"""Other ids of scrapers. A further id without a slash has one instead of its first dash: `example-http` is read as
`example/http`."""


def _scraper(given: Any) -> Any:
    if not isinstance(given, str) or "/" in given:
        return given
    name, at, version = given.partition("@")
    return SCRAPERS.get(name, name.replace("-", "/", 1)) + at + version


def _shown(schema: Any) -> Any:
    """A schema as the API's document shows it: alternatives instead of conditions, which few readers of it understand.
    The input's own schema decides."""
    if isinstance(schema, list):
        return [_shown(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _shown(value) for key, value in schema.items() if key not in _CONDITIONS}
    if "if" in schema:
        plain["anyOf"] = [_shown({**schema["if"], **schema["then"]}), _shown(schema["else"])]
    return plain


_CONDITIONS = frozenset({"if", "then", "else", "not", "dependentSchemas"})
_PAGE_OPTIONS = {
    name: OtherName(
        ("input", name), schema={**_shown(schema), "description": f"{schema['description']} As `input.{name}`."}
    )
    for name, schema in (PAGE_INPUT["properties"] | SELECT_INPUT["properties"]).items()
    if name not in ("url", "include", "main_only")
}
"""What a call may say of its page beside `url`: parts of the input of `builtin/page` and `builtin/select`."""
_SCRAPER_AND_INPUT = {
    **_PAGE_OPTIONS,
    "scraper_id": OtherName(("scraper",), _scraper),
    "parameters": OtherName(("input",)),
    "params": OtherName(("input",)),
}
NAMES: Mapping[str, Mapping[str, OtherName]] = {
    "ScrapeCall": _SCRAPER_AND_INPUT,
    "ScheduledScrape": _SCRAPER_AND_INPUT,
    "JobCall": {**_SCRAPER_AND_INPUT, "sitemap_urls": OtherName(("items",))},
    "ScheduleCall": {
        "interval": OtherName(("every_seconds",)),
        "interval_seconds": OtherName(("every_seconds",)),
        "enabled": OtherName(("paused",), _negated),
        "url": OtherName(("scrape", "url")),
    },
    "ScheduleChange": {
        "interval": OtherName(("every_seconds",)),
        "interval_seconds": OtherName(("every_seconds",)),
        "enabled": OtherName(("paused",), _negated),
    },
}
"""By the schema of the body: each other name, and what it stands for."""


class NamesShown(BaseModel):
    """A body whose fields have other names; whoever reads it calls `in_our_names` first."""

    OTHER_NAMES: ClassVar[Mapping[str, OtherName]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Take the names of this schema from the table; a subclass without its own has those of its base."""
        cls.OTHER_NAMES = NAMES.get(cls.__name__, cls.OTHER_NAMES)

    @classmethod
    def in_our_names(cls, given: Any) -> Any:
        """The body with our names. Raises ValueError if a field is given under two names."""
        names = cls.OTHER_NAMES
        if not isinstance(given, dict) or given.keys().isdisjoint(names):
            return given
        ours = {name: value for name, value in given.items() if name not in names}
        for name, value in given.items():
            if name in names:
                _put(ours, names[name].ours, names[name].read(value), name)
        return ours

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """List the other names as alternatives of ours."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, other in cls.OTHER_NAMES.items():
            field = properties.get(other.ours[0])
            if other.schema is not None:
                properties[name] = other.schema
            elif field is not None:
                field.setdefault("x-alternatives", []).append(name)
        return schema


class Named(NamesShown):
    """The same, read by itself."""

    @model_validator(mode="before")
    @classmethod
    def _read_names(cls, given: Any) -> Any:
        return cls.in_our_names(given)


def _put(fields: dict[str, Any], place: tuple[str, ...], value: Any, name: str) -> None:
    *branches, last = place
    for branch in branches:
        inner = fields.get(branch, {})
        if not isinstance(inner, dict):
            return  # the schema tells what is wrong with it
        fields[branch] = fields = {**inner}
    if last in fields:
        raise ValueError(f"`{name}` is another name of `{'.'.join(place)}`; give one of them")
    fields[last] = value
