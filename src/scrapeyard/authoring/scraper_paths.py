"""Which scrapers a command means: a scraper's folder, its manifest, or a folder with many."""

from pathlib import Path

from scrapeyard.errors import BadRequest
from scrapeyard.repository.archive.files import find_scrapers
from scrapeyard.repository.manifest.manifest import FILE_NAME


def scraper_folders(paths: list[Path]) -> list[Path]:
    """The folders of all scrapers at these paths, each once. Raises BadRequest for a path without any. Blocking."""
    return list(dict.fromkeys(folder for path in paths for folder in _at(path)))


def scraper_folder(path: Path) -> Path:
    """The folder of the one scraper that is meant. Raises BadRequest when that is none, or more than one."""
    found = scraper_folders([path])
    if len(found) > 1:
        raise BadRequest(f"{path}: {len(found)} scrapers are here; name the folder of one")
    return found[0]


def _at(path: Path) -> list[Path]:
    folder = path.parent if path.name == FILE_NAME and path.is_file() else path
    if (folder / FILE_NAME).is_file():
        return [folder]
    if not folder.is_dir():
        raise BadRequest(f"{path}: no such folder")
    try:
        found = find_scrapers(folder)
    except OSError as error:
        raise BadRequest(f"{path}: cannot be read: {error.strerror}") from None
    if not found.folders:
        raise BadRequest(f"{path}: no {FILE_NAME} here or up to four levels below; `scrapeyard new` makes one")
    return list(found.folders)
