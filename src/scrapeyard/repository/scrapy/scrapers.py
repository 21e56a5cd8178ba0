"""Writes a scraper for each spider of a project: the project's code as it is, a script that runs it, a manifest."""

import itertools
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from scrapeyard.errors import BadRequest
from scrapeyard.repository.archive.files import MAX_BYTES, MAX_FILES
from scrapeyard.repository.manifest.manifest import FILE_NAME
from scrapeyard.repository.scrapy.project import ProjectSpider, SpiderArgument, SpiderProject
from scrapeyard.repository.scrapy.reading import project_files
from scrapeyard.repository.scrapy.requirements import requirements_of
from scrapeyard.repository.scrapy.stores import store_pipelines
from scrapeyard.repository.scrapy.told import beside, imports_told, variables_of

PROJECT: Final = "project"
_MAX_COPIED_FILES: Final = 200_000
_MAX_COPIED_BYTES: Final = 4 * 1024**3
_STORES: Final = "{name} is left out: it only writes with {module}, and a run reaches no database; see skip_pipelines"
_MAX_LINE: Final = 2000
_SCRIPT: Final = '''"""Runs a spider of the Scrapy project in the folder `project`."""

from scrapeyard_sdk.frameworks.scrapy import ScrapyProject

project = ScrapyProject(__file__, {where})


async def run(ctx):
    async for item in project.crawl(ctx, {spider}):
        yield item
'''
_MANIFEST: Final = """schema = 1
id = {id}
version = {version}
name = {name}
description = {description}
entry = "scraper.py:run"
requirements = {requirements}
nan = "null"

[input]
schema = "input.json"

[config]
# The run fails if there are failures on more than this share of its pages, or if something failed and no item came.
max_failed_percent = 10
# Arguments that reach the spider as they are. The others reach it as text, as with `scrapy crawl -a`.
typed_arguments = {typed}
# Pipelines that are left out. The import names those that only write to a database, which a run does not reach.
skip_pipelines = {skipped}

[config.settings]
# Scrapy settings for this scraper; they win over those of the project and the spider.

[config.environment]
{environment}
# NAME = "value", or NAME = {{ secret = "name" }}

[policy]
retries = 0
profile = "none"  # the project says which headers are sent
escalate = false  # the spider sees what plain HTTP gives; true: blocks lead to other profiles, browsers and proxies

[limits]
wall_seconds = 300
cpu_seconds = 300
memory_mb = 1024
disk_mb = 256
output_mb = 100
artifact_mb = 100
log_kb = 1024
fetches = 100000
"""


class Imported(Struct, frozen=True, kw_only=True):
    """What an import wrote, and what its user should know."""

    folders: tuple[Path, ...]
    scrapers: tuple[str, ...]
    """Their ids."""
    notes: tuple[str, ...]


def write_scrapers(
    project: SpiderProject, target: Path, *, site: str = "", version: str = "1.0.0", replace: bool = False
) -> Imported:
    """Write `SITE/SPIDER` below `target` for each spider. Blocking.

    Raises BadRequest if a folder is already there, unless `replace`; nothing is written then. Raises OSError.
    """
    site = slug(site) if site else _site(project)
    names = _ids(project)
    folders = [target / site / names[spider.name] for spider in project.spiders]
    if taken := [folder for folder in folders if folder.exists() and not replace]:
        raise BadRequest(f"{taken[0]} is already there; choose another folder, or replace it with --force")
    copied = _copied(project)
    requirements, notes = requirements_of(project)
    stores, variables = store_pipelines(project), variables_of(project.tree)
    shared = {"requirements": requirements, "skipped": list(stores), "variables": variables, "version": version}
    for spider, folder in zip(project.spiders, folders, strict=True):
        files = _files(project, spider, {**shared, "id": f"{site}/{names[spider.name]}"})
        _write(copied, folder, files)
    ids = tuple(f"{site}/{names[spider.name]}" for spider in project.spiders)
    skipped = [_STORES.format(name=name, module=module) for name, module in stores.items()]
    told = (*project.notes, *notes, *skipped, *imports_told(project))
    return Imported(folders=tuple(folders), scrapers=ids, notes=told)


def _site(project: SpiderProject) -> str:
    """The project's name, or that of its package if nothing is left of the name, as of one in Chinese."""
    try:
        return slug(project.name)
    except BadRequest:
        return slug(project.settings_module.partition(".")[0] or project.name)


def _ids(project: SpiderProject) -> dict[str, str]:
    """The last part of each spider's id: its name, or its class if nothing is left of that, numbered if it is taken."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for spider in project.spiders:
        try:
            name = slug(spider.name)
        except BadRequest:
            name = slug(f"spider-{spider.class_name}")
        numbered = (f"{name[:60]}-{number}" for number in itertools.count(2))
        found[spider.name] = next(each for each in itertools.chain((name,), numbered) if each not in taken)
        taken.add(found[spider.name])
    return found


def slug(text: str) -> str:
    """A part of a scraper's id. Raises BadRequest if nothing is left."""
    found = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64]
    if not found or found == "builtin":
        raise BadRequest(f"{text[:100]!r} cannot be part of a scraper's id; give another name")
    return found


def _files(project: SpiderProject, spider: ProjectSpider, shared: dict[str, Any]) -> dict[str, str]:
    """The files of a scraper beside its project, by name. `shared` holds what is the same for all spiders."""
    where = f"settings={project.settings_module!r}" if project.settings_module else f"modules={project.modules!r}"
    if not project.settings_module and project.settings:
        where += f", given={project.settings!r}"
    manifest = {
        **shared,
        "name": spider.name[:200],
        "description": spider.description or f"The spider {spider.name} of the Scrapy project {project.name}.",
        "typed": [argument.name for argument in spider.arguments if argument.type],
    }
    variables = shared["variables"]
    environment = f"# The project reads: {', '.join(variables)}" if variables else "# Variables that the project reads."
    return {
        "scraper.py": _SCRIPT.format(spider=repr(spider.name), where=where),
        "input.json": json.dumps(input_schema(spider), indent=2) + "\n",
        FILE_NAME: _MANIFEST.format(
            **{key: _toml(value) for key, value in manifest.items()}, environment=environment[:_MAX_LINE]
        ),
    }


def _toml(value: Any) -> str:
    """Text and lists of texts; JSON writes them as TOML does, but for characters beyond 16 bits and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def input_schema(spider: ProjectSpider) -> dict[str, Any]:
    """The spider's arguments. Others are allowed, because Scrapy takes any."""
    properties = {argument.name: _property(argument) for argument in spider.arguments}
    return {
        "type": "object",
        "required": [argument.name for argument in spider.arguments if argument.required],
        "properties": {**properties, "scrapy": _STEERING},
    }


def _property(argument: SpiderArgument) -> dict[str, Any]:
    kinds = [argument.type, "null"] if argument.type else ["string", "number", "boolean", "array", "object", "null"]
    if "string" not in kinds:
        kinds.append("string")  # as `-a` gives it, and scrapyd: a hint says list, and the spider splits a text
    return {"type": kinds, "description": f"The argument {argument.name} of the spider."}


_STEERING: Final = {
    "type": "object",
    "description": "For Scrapy itself, not for the spider.",
    "additionalProperties": False,
    "properties": {
        "settings": {"type": "object", "maxProperties": 200, "description": "Settings for this crawl."},
        "request": {
            "type": "object",
            "required": ["url"],
            "properties": {"url": {"type": "string"}},
            "description": "A request to crawl instead of the start requests: url, callback, errback, meta and more.",
        },
        "start_requests": {"type": "boolean", "description": "Crawl the start requests too."},
        "max_requests": {"type": "integer", "minimum": 0, "description": "Requests to make at most; 0: all."},
    },
}


def _write(copied: dict[Path, Path], folder: Path, files: dict[str, str]) -> None:
    """Write beside the folder, then move it there, so that nobody sees half a scraper."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=folder.parent) as made:
        new = Path(made) / "new"
        for inner, path in copied.items():
            place = new / PROJECT / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        for name, text in files.items():
            (new / name).write_text(text, "utf-8", "replace")  # a name may hold what UTF-8 cannot write
        if folder.exists():
            folder.rename(Path(made) / "old")
        new.rename(folder)


def _copied(project: SpiderProject) -> dict[Path, Path]:
    """Name in the copy → file: all of the project, and the modules beside it that it imports.

    Of a project that is one file: that file, the modules that it imports and the files that it names. Raises BadRequest
    for more than a scraper may have, and for more than is copied in all, because each spider has a copy.
    """
    tree = project.tree
    own = project_files(project.root) if tree.only is None else [*tree.files(), *tree.named_files()]
    found = {path.relative_to(project.root): path for path in itertools.islice(own, MAX_FILES)}
    for place in beside(project).values():
        more = project_files(place) if place.is_dir() else [place]
        found.update({path.relative_to(place.parent): path for path in itertools.islice(more, MAX_FILES)})
    total, spiders = sum(path.stat().st_size for path in found.values()), len(project.spiders)
    if len(found) > MAX_FILES - 10 or total > MAX_BYTES:
        most = f"{MAX_FILES - 10} files and {MAX_BYTES >> 20} MB"
        raise BadRequest(f"{project.root}: a project has at most {most}; move away what it does not need")
    if len(found) * spiders > _MAX_COPIED_FILES or total * spiders > _MAX_COPIED_BYTES:
        most = f"{_MAX_COPIED_FILES} files and {_MAX_COPIED_BYTES >> 30} GB"
        raise BadRequest(f"{project.root}: {spiders} spiders with a copy each are more than {most}; split the project")
    return found
