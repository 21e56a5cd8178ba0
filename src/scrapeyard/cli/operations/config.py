"""`config`: the settings in force and where each came from."""

import os
from collections.abc import Iterator, Mapping
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
    from scrapeyard.settings import load, redacted

    if describe:
        _describe(as_json)
        return
    tree = redacted(load())
    if as_json:
        show_json(tree)
        return
    sources = _Sources(os.environ, Path.cwd())
    rows = [row for key, env, _, _ in _keys() for row in _rows(key, _at(tree, key), sources.of(key, env))]
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


class _Sources:
    """Which source a value came from, strongest first."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        from scrapeyard.settings import CONFIG_FILE, read_dotenv

        self._file = Path(environ.get("SCRAPEYARD_CONFIG") or folder / CONFIG_FILE)
        import tomllib

        self._tree = tomllib.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        dotenv = read_dotenv(folder)
        self._named = [("environment", environ), (".env", dotenv)]
        self._everywhere = {**dotenv, **environ}

    def of(self, key: str, env: str) -> str:
        """`environment NAME`, `.env NAME`, the file's name, or `default`."""
        from scrapeyard.settings import names_of

        names = [env, *names_of(key, self._everywhere)]
        for source, values in self._named:
            for name in names:
                if values.get(name) or (name == env and values.get(name) is not None):
                    return f"{source} {name}"
        if _at(self._tree, key) is not None:
            return self._file.name
        return _locale(self._everywhere) if key == "log.lang" else "default"


def _other_names(key: str) -> list[str]:
    from scrapeyard.settings import names_of

    return names_of(key, {"S3_BUCKET": "any"})


def _locale(environ: Mapping[str, str]) -> str:
    from scrapeyard.settings.aliases import LOCALE, language

    chosen = next((name for name in LOCALE if environ.get(name)), "")
    return f"environment {chosen}" if language(environ) else "default"


def _keys() -> list[tuple[str, str, Any, str]]:
    from scrapeyard.settings import describe

    return list(describe())


def _at(tree: Any, key: str) -> Any:
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


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
