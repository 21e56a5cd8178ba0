"""What a project says that it needs: requirements.txt, or else pyproject.toml or Pipfile, here or one folder above."""

import codecs
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

REQUIREMENTS: Final = "requirements.txt"
_MAX_LIST: Final = 256 * 1024
_MAX_DEPTH: Final = 4
_MORE: Final = re.compile(r"(?:-r|--requirement)[ =]?\s*(\S+)")
_NEAR: Final = re.compile(r"(?P<sign>[\^~])\s*(?P<version>\d+(?:\.\d+)*)")
"""A version of Poetry's own kind, `^2.11` or `~2.11`."""


def stated(root: Path) -> list[str]:
    """Its lines, unchecked; empty if the project says nothing that can be read."""
    for folder in (root, root.parent):
        if (folder / REQUIREMENTS).is_file():
            return list(_lines(folder / REQUIREMENTS, folder.resolve()))
        project = _toml(folder / "pyproject.toml")
        listed = _part(project, "project").get("dependencies")
        named = {
            **_part(project, "tool", "poetry", "dependencies"),
            **_part(_toml(folder / "Pipfile"), "packages"),
        }
        found = [str(each) for each in listed] if isinstance(listed, list) else []
        found += [_requirement(name, value) for name, value in named.items() if name != "python"]
        if found:
            return found
    return []


def _lines(place: Path, folder: Path, depth: int = 0) -> Iterator[str]:
    """Of a list and those that it takes in by `-r`, if they lie in this folder, at most four deep."""
    whole = _decoded(place.read_bytes()[:_MAX_LIST]).replace("\\\n", " ")
    for each in whole.splitlines():
        line = each.partition(" #")[0].partition(" --")[0].strip()
        more = _MORE.fullmatch(line)
        other = (place.parent / more[1]).resolve() if more else folder
        if depth < _MAX_DEPTH and folder in other.parents and other.is_file():
            yield from _lines(other, folder, depth + 1)
        else:
            yield line


def _decoded(raw: bytes) -> str:
    """UTF-8, or UTF-16 as PowerShell's `pip freeze > requirements.txt` writes it."""
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return raw.decode("utf-16" if wide else "utf-8-sig", "replace")


def _toml(place: Path) -> dict[str, Any]:
    """Empty for a file that is not there, or cannot be read."""
    try:
        return tomllib.loads(place.read_bytes()[:_MAX_LIST].decode("utf-8", "replace"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _part(table: Any, *names: str) -> dict[str, Any]:
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _requirement(name: str, value: Any) -> str:
    """A line of Poetry or Pipfile as pip writes it. One from an address keeps it, so that it is told and left out."""
    options = value if isinstance(value, dict) else {"version": value}
    if address := next((options[key] for key in ("git", "url", "path", "file") if key in options), ""):
        return f"{name} @ {address}"
    extras = options.get("extras")
    listed = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else ""
    return f"{name}{listed}{_versions(str(options.get('version', '*')))}"


def _versions(text: str) -> str:
    """`^2.11` is `>=2.11,<3`; a bare version is a pin; `*` is any."""
    return ",".join(found for each in text.split(",") if (found := _clause(each.strip())))


def _clause(text: str) -> str:
    if text in ("*", ""):
        return ""
    if found := _NEAR.fullmatch(text):
        return f">={found['version']},<{_after(found['version'], found['sign'])}"
    return f"=={text}" if text[0].isdigit() else text


def _after(version: str, sign: str) -> str:
    """The first version that is not meant: `^` keeps the first part that is not zero, `~` the first two."""
    parts = [int(part) for part in version.split(".")]
    kept = (
        min(1, len(parts) - 1) if sign == "~" else next((at for at, part in enumerate(parts) if part), len(parts) - 1)
    )
    return ".".join(map(str, [*parts[:kept], parts[kept] + 1]))
