"""New scrapers from a template. Each comes with a recorded case, so that `scrapeyard test` passes at once."""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from scrapeyard.errors import BadRequest
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.archive.files import is_skipped
from scrapeyard.repository.manifest.manifest import FILE_NAME

TEMPLATES = ("http", "generator")
_FILLED = (".py", ".toml")
"""Files in which `{{id}}` and `{{name}}` are filled in; recorded pages stay as they are."""


def create(folder: Path, scraper_id: str, template: str) -> list[Path]:
    """Write a new scraper into `folder`, which is made where it does not exist. Returns the files written.

    Raises BadRequest for a bad id, an unknown template, or when a file is already there; nothing is written then.
    """
    check_new(folder, scraper_id, ())
    if template not in TEMPLATES:
        raise BadRequest(f"no template {template[:100]!r}; there are: {', '.join(TEMPLATES)}")
    sources = {name: source.read_bytes() for name, source in _sources(template).items()}
    check_new(folder, scraper_id, sources)
    return write_new(folder, scraper_id, sources)


def check_new(folder: Path, scraper_id: str, names: Iterable[str]) -> None:
    """Raises BadRequest for a bad id, or when one of the files is already there."""
    if SCRAPER_ID.fullmatch(scraper_id) is None:
        raise BadRequest(f"{scraper_id[:100]!r} is not a scraper's id; write site/task, e.g. shop/product")
    for name in names:
        if (folder / name).exists():
            raise BadRequest(f"{folder / name} is already there; choose another folder")


def _sources(template: str) -> dict[str, Traversable]:
    """By relative path. The manifest comes last, so that a watched folder never shows a scraper without its script."""
    found = dict(_walk(files("scrapeyard.authoring").joinpath("templates", template), ""))
    return dict(sorted(found.items(), key=lambda item: (item[0] == FILE_NAME, item[0])))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if is_skipped(each.name):
            continue
        if each.is_dir():
            yield from _walk(each, f"{prefix}{each.name}/")
        else:
            yield prefix + each.name, each


def write_new(folder: Path, scraper_id: str, sources: Mapping[str, bytes]) -> list[Path]:
    """Write files by relative path, with id and name filled in. Raises OSError."""
    words = {"{{id}}": scraper_id, "{{name}}": scraper_id.partition("/")[2].replace("-", " ").capitalize()}
    written = []
    for name, source in sources.items():
        data = source
        for placeholder, word in words.items() if name.endswith(_FILLED) else ():
            data = data.replace(placeholder.encode(), word.encode())
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.write(data)
        written.append(path)
    return written
