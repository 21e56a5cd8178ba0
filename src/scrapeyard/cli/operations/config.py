"""`config`: the settings in force and where each came from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from scrapeyard.cli.common.options import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(config)


def config(
    as_json: AsJson = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="List every key with its environment name, default and meaning.")
    ] = False,
) -> None:
    """The settings in force, with passwords hidden, and where each value came from."""
    from scrapeyard.cli.common.output import show_json, show_table
    from scrapeyard.settings import effective, load, redacted

    if describe:
        _describe(as_json)
        return
    settings = load()
    if as_json:
        show_json(redacted(settings))
        return
    rows = [row for each in effective(settings) for row in _rows(each.key, each.value, each.source)]
    show_table(("KEY", "VALUE", "FROM"), rows, empty="no settings")


def _describe(as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json, show_table

    described = [
        {"key": key, "env": env, "other": _other_names(key), "default": _json_value(default), "meaning": meaning}
        for key, env, default, meaning in _keys()
    ]
    if as_json:
        show_json(described)
        return
    rows = [
        (each["key"], ", ".join((each["env"], *each["other"])), _shown(each["default"]), each["meaning"])
        for each in described
    ]
    show_table(("KEY", "ENVIRONMENT", "DEFAULT", "MEANING"), rows, empty="no settings")


def _other_names(key: str) -> list[str]:
    from scrapeyard.settings import names_of

    return names_of(key, {"S3_BUCKET": "any"})


def _keys() -> list[tuple[str, str, Any, str]]:
    from scrapeyard.settings import describe

    return list(describe())


def _rows(key: str, value: Any, source: str) -> Iterator[tuple[str, str, str]]:
    """One row; for a list of tables, one row for each key set in each table."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value) or not value:
        yield key, _shown(value), source
        return
    for number, table in enumerate(value):
        for name, inner in table.items():
            if inner not in (None, ""):
                yield f"{key}.{number}.{name}", _shown(inner), source


def _json_value(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
