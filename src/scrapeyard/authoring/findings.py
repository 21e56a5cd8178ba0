"""Which scrapers a command means, and what a check of them found: a line for each point, with what to do."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from scrapeyard.errors import BadRequest
from scrapeyard.repository.archive.files import find_scrapers
from scrapeyard.repository.manifest.manifest import FILE_NAME
from scrapeyard.settings import Settings
from scrapeyard.settings.repository import USUAL_SCRAPERS

State = Literal["ok", "warn", "fail"]
_DATA: Path = Settings.model_fields["data_dir"].default
"""Where a server that was started here keeps copies of scrapers, which are not the author's."""


class Finding(Struct, frozen=True, kw_only=True):
    """One point. `remedy` is empty when there is nothing to do."""

    point: str
    state: State
    detail: str
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return asdict(self)


def ok(point: str, detail: str) -> Finding:
    """As it should be."""
    return Finding(point=point, state="ok", detail=detail)


def warn(point: str, detail: str, remedy: str) -> Finding:
    """It works, but should be better for its users."""
    return Finding(point=point, state="warn", detail=detail, remedy=remedy)


def fail(point: str, detail: str, remedy: str = "") -> Finding:
    """It must be fixed."""
    return Finding(point=point, state="fail", detail=detail, remedy=remedy)


def is_good(findings: Iterable[Finding]) -> bool:
    """Whether nothing must be fixed."""
    return all(finding.state != "fail" for finding in findings)


def scraper_folders(paths: list[Path]) -> list[Path]:
    """The folders of all scrapers at these paths, each once. Raises BadRequest for a path without any. Blocking."""
    return list(dict.fromkeys(folder for path in paths for folder in _at(path)))


def scraper_folder(path: Path) -> Path:
    """The folder of the single scraper at `path`. Raises BadRequest if there is none, or more than one."""
    found = scraper_folders([path])
    if len(found) > 1:
        raise BadRequest(f"{path}: {len(found)} scrapers are here; name the folder of one")
    return found[0]


def _at(path: Path) -> list[Path]:
    folder = path.parent if path.name == FILE_NAME and path.is_file() else path
    folder = folder if folder.exists() or not (USUAL_SCRAPERS / path).is_dir() else USUAL_SCRAPERS / path
    if (folder / FILE_NAME).is_file():
        return [folder]
    if not folder.is_dir():
        raise BadRequest(f"{path}: no such folder")
    try:
        found = find_scrapers(folder, _DATA.resolve())
    except OSError as error:
        raise BadRequest(f"{path}: cannot be read: {error.strerror}") from None
    if not found.folders:
        raise BadRequest(f"{path}: no {FILE_NAME} here or up to four levels below; `scrapeyard new` makes one")
    return list(found.folders)
