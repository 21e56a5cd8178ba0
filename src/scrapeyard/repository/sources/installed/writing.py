"""A scraper of a package as a folder like any other: a manifest, a script that imports the function, its schemas."""

import json
from pathlib import Path
from typing import Any

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.signature import read_signature
from scrapeyard.repository.sources.installed.discovery import Announced

_MANIFEST_KEYS = (
    "id",
    "version",
    "name",
    "description",
    "capabilities",
    "allowed_hosts",
    "network",
    "lane",
    "config",
    "policy",
    "limits",
)


def write_scraper(announced: Announced, source: bytes, mark: str, folder: Path) -> None:
    """Write the folder. `source` is the module's; `mark` makes the content, and so the digest, change with the package.

    Raises ScraperInvalid when the function cannot be called by an input, or was told what a manifest cannot hold.
    """
    told, where = announced.told, f"{announced.module}:{announced.function}"
    schema = told.get("input")
    if schema is None:
        schema = read_signature(source, announced.function, announced.module)
    manifest = [f"{key} = {_toml(told[key], where)}" for key in _MANIFEST_KEYS if key in told]
    manifest.append('input = { schema = "input.json" }')
    (folder / "input.json").write_text(json.dumps(schema), "utf-8")
    if "output" in told:
        manifest.append('output = { schema = "output.json" }')
        (folder / "output.json").write_text(json.dumps(told["output"]), "utf-8")
    (folder / "scraper.toml").write_text("\n".join(manifest) + "\n", "utf-8", "replace")
    (folder / "scraper.py").write_text(_script(announced, mark), "utf-8")


def _script(announced: Announced, mark: str) -> str:
    """Only names that were checked to be names get into it."""
    lines = [
        f'"""{announced.function} of the installed package\'s module {announced.module}."""',
        f"# The package's content: {mark}",
        f"from {announced.module} import {announced.function} as run",
    ]
    if announced.validates:
        lines.append(f"from {announced.module} import validate_result")
    return "\n".join(lines) + "\n"


def _toml(value: Any, where: str) -> str:
    """A value of JSON on one line of TOML. Its text is JSON's, which TOML reads, but for DEL and lone surrogates."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_text(key)} = {_toml(child, where)}" for key, child in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(child, where) for child in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None:
        raise ScraperInvalid(f"{where}: @scraper was told None inside a table; leave the key out")
    return json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
