"""New scrapers from a template."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from scrapeyard.errors import BadRequest
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.files import is_skipped

TEMPLATES = ("http", "generator")


def create(folder: Path, scraper_id: str, template: str) -> list[Path]:
    """Write a new scraper into `folder`, which is made where it does not exist. Returns the files written.

    Raises BadRequest for a bad id, an unknown template, or when a file is already there; nothing is written then.
    """
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's id; write site/task, e.g. shop/product")
    if template not in TEMPLATES:
        raise BadRequest(f"no template {template[:100]!r}; there are: {', '.join(TEMPLATES)}")
    sources = _sources(template)
    for source in sources:
        if (folder / source.name).exists():
            raise BadRequest(f"{folder / source.name} is already there; choose another folder")
    return _write(folder, scraper_id, sources)


def _sources(template: str) -> list[Traversable]:
    """The manifest comes last, so that a watched folder never shows a scraper without its script."""
    found = files("scrapeyard.repository").joinpath("templates", template).iterdir()
    return sorted((each for each in found if not is_skipped(each.name)), key=lambda each: each.name)


def _write(folder: Path, scraper_id: str, sources: list[Traversable]) -> list[Path]:
    words = {"{{id}}": scraper_id, "{{name}}": scraper_id.partition("/")[2].replace("-", " ").capitalize()}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for source in sources:
        text = source.read_text("utf-8")
        for placeholder, word in words.items():
            text = text.replace(placeholder, word)
        with (folder / source.name).open("x", encoding="utf-8") as stream:
            stream.write(text)
        written.append(folder / source.name)
    return written
