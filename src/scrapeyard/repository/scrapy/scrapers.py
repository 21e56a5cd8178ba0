"""Writes a scraper for each spider of a project: the project's code as it is, a script that runs it, a manifest."""

import itertools
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from scrapeyard.errors import BadRequest, ScraperInvalid
from scrapeyard.repository.archive.files import MAX_BYTES, MAX_FILES
from scrapeyard.repository.manifest.manifest import FILE_NAME
from scrapeyard.repository.manifest.requirements import check_requirement
from scrapeyard.repository.manifest.values import Place
from scrapeyard.repository.scrapy.project import ProjectSpider, SpiderArgument, SpiderProject
from scrapeyard.repository.scrapy.reading import project_files
from scrapeyard.repository.scrapy.stated import REQUIREMENTS, stated
from scrapeyard.repository.scrapy.stores import store_pipelines
from scrapeyard.repository.scrapy.told import (
    GONE,
    NETWORK,
    PACKAGES,
    beside,
    imports_of,
    imports_told,
    settings_modules,
    variables_of,
)
from scrapeyard.repository.scrapy.versions import needs_before

SCRAPY: Final = "scrapy==2.19.*"
"""For a project that does not say which Scrapy it wants."""
_BEFORE: Final = "scrapy==2.11.*"
"""For a project that does not say so either, and imports what the newest no longer has."""
_OLD: Final = (2, 14)
_OLDEST: Final = (2, 8)
"""Scrapy before needs packages that this Python no longer has."""
_STACK: Final = frozenset(
    {
        *("attrs", "automat", "cffi", "constantly", "cryptography", "cssselect", "hyperlink", "incremental"),
        *("itemadapter", "itemloaders", "lxml", "parsel", "protego", "pyasn1", "pyasn1-modules", "pydispatcher"),
        *("pyopenssl", "queuelib", "service-identity", "twisted", "w3lib", "zope-interface"),
    }
)
"""Packages that Scrapy brings, whose versions fit its own."""
_COMPANIONS: Final = ("twisted<25.5", "w3lib<2.4")
"""With later versions of these, Scrapy before 2.15 cannot even be imported."""
PROJECT: Final = "project"
_MAX_COPIED_FILES: Final = 200_000
_MAX_COPIED_BYTES: Final = 4 * 1024**3
_BOUND: Final = re.compile(r"(===|==|~=|<=|>=|!=|<|>)\s*([0-9][^\s,;)]*)")
"""An operator of a requirement and its version."""
_PIN: Final = re.compile(r"===?\s*([0-9]+(?:\.[0-9]+)*)(?=\s*(?:;|$))")
"""A pin on one whole version."""
_WINDOWS: Final = frozenset({"pypiwin32", "pywin32", "pywin32-ctypes", "pywinpty", "twisted-iocpsupport", "wmi"})
_UNBUILT: Final = {
    **dict.fromkeys(sorted(_WINDOWS), "is for Windows"),
    **dict.fromkeys(("appnope", "pyobjc", "pyobjc-core"), "is for macOS"),
    **dict.fromkeys(("mysqlclient", "mysql-python"), "has to be compiled, which is not done here"),
    **dict.fromkeys(("pkg-resources", "python"), "is no package that can be installed"),
}
"""Packages that no environment can have, which a list written by `pip freeze` names nevertheless."""
_OTHER: Final = {"mysql-connector-python": "mysql-connector"}
"""Packages → others with the same modules."""
_BINARY: Final = {"psycopg2": "psycopg2-binary"}
"""Packages that have to be compiled → the same, compiled."""
_FIRST: Final = {
    "cffi": (1, 15, 1),
    "lxml": (4, 9, 1),
    "numpy": (1, 23, 2),
    "pandas": (1, 5),
    "pillow": (9, 2),
    "protego": (0, 2),
    "pydispatcher": (2, 0, 7),
    "zope-interface": (6,),
}
"""The first versions that this Python can install without compiling; a pin on an earlier one is a lower bound."""
_STORES: Final = "{name} is left out: it only writes with {module}, and a run reaches no database; see skip_pipelines"
_MAX_LINE: Final = 2000
_BROUGHT: Final = frozenset(
    {
        *("OpenSSL", "attr", "automat", "cryptography", "cssselect", "defusedxml", "hyperlink", "itemadapter"),
        *("itemloaders", "lxml", "packaging", "parsel", "protego", "pydispatch", "queuelib", "scrapeyard_sdk"),
        *("scrapy", "service_identity", "tldextract", "twisted", "w3lib", "zope"),
    }
)
"""Modules that Scrapy's own requirements bring, and the SDK."""
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


def requirements_of(project: SpiderProject) -> tuple[list[str], list[str]]:
    """The packages that the project says it needs, with Scrapy; and notes about those that it does not say."""
    notes: list[str] = []
    found = [each for text in stated(project.root) if (each := _requirement(text, notes.append))]
    found = _with_scrapy(project, found, notes.append)
    found = [_installable(each, notes.append) for each in found]
    names = {_name(each) for each in found}
    if any(_name(each) == "scrapy" and _newest(each) <= _OLD for each in found):
        found += [each for each in _COMPANIONS if _name(each) not in names]
    found += _missing(project, names, notes)
    return list(dict.fromkeys(found)), notes


def _with_scrapy(project: SpiderProject, found: list[str], note: Callable[[str], None]) -> list[str]:
    """These requirements with a Scrapy that can be installed and that runs the project's code."""
    named = [each for each in found if _name(each) == "scrapy"]
    others = [each for each in found if each not in named]
    if any(_newest(each) < _OLDEST for each in named):
        oldest = f"scrapy=={_OLDEST[0]}.{_OLDEST[1]}.*"
        note(f"{named[0]} is replaced by {oldest}, the oldest that runs here, with the packages it brings")
        return [oldest, *(each for each in others if _name(each) not in _STACK)]
    if not named and (left := [each for each in others if _name(each) in _STACK]):
        note(f"{left[0]} and the like are left out: no Scrapy is named, and it brings its own")
        others = [each for each in others if each not in left]
    before = needs_before(project)
    if before and all(_allows_before(each) for each in named):
        note(f"{_BEFORE} is taken, because the newest does without {', '.join(before)}")
        return [_BEFORE, *others]
    return found if named else [SCRAPY, *others]


def _allows_before(requirement: str) -> bool:
    """Whether a requirement of Scrapy names no newest version, and allows 2.11 too."""
    bounds = _BOUND.findall(requirement.partition(";")[0])
    numbers = [tuple(map(int, re.findall(r"\d+", version)))[:2] for _, version in bounds]
    return all(operator in (">", ">=") for operator, _ in bounds) and all(each <= (2, 11) for each in numbers)


def _newest(requirement: str) -> tuple[int, int]:
    """The newest minor version that a requirement allows; a large one if it names no bound."""
    bounds = [(99, 0)]
    for operator, version in _BOUND.findall(requirement.partition(";")[0]):
        numbers = [int(part) for part in re.findall(r"\d+", version)] + [0, 0]
        count = len(version.removesuffix(".*").split("."))
        if operator in ("==", "===", "<=") and count > 1:
            bounds.append((numbers[0], numbers[1]))
        elif operator == "~=" and count > 1:
            bounds.append((numbers[0], numbers[1] if count > 2 else 99))
        elif operator == "<":
            bounds.append((numbers[0], numbers[1] - (not numbers[2])))
    return min(bounds)


def _requirement(text: str, note: Callable[[str], None]) -> str:
    if not text or text.startswith("#"):
        return ""
    name = _name(text)
    if name in _UNBUILT:
        note(f"a requirement is left out: {text[:200]}, which {_UNBUILT[name]}")
        return ""
    try:
        return check_requirement(text, Place(REQUIREMENTS, "line"))
    except ScraperInvalid as error:
        note(f"a requirement is left out: {error.message}")
        return ""


def _installable(requirement: str, note: Callable[[str], None]) -> str:
    """The requirement, or one that fits this Python without compiling."""
    fits = _compiled(_name(requirement), requirement)
    if fits != requirement:
        note(f"{requirement} has to be compiled, which is not done here: {fits} is taken")
    return fits


def _compiled(name: str, requirement: str) -> str:
    found = re.sub(r"[A-Za-z0-9._-]+", _BINARY[name], requirement, count=1) if name in _BINARY else requirement
    pin = _PIN.search(found)
    if pin is None or name not in _FIRST or tuple(map(int, pin[1].split("."))) >= _FIRST[name]:
        return found
    return found.replace(pin[0], f">={pin[1]}", 1)


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def _missing(project: SpiderProject, names: set[str], notes: list[str]) -> list[str]:
    """Packages for modules that the code imports and that are not stated. Unknown modules are only noted."""
    added: list[str] = []
    tops = {path.relative_to(project.root).parts[0].removesuffix(".py") for path in project.tree.files()}
    near = beside(project)
    for module, file in imports_of(project.tree).items():
        if module in NETWORK:
            notes.append(f"{file} imports {module}: a run has no network of its own, so connections fail there")
        if module in sys.stdlib_module_names or module in tops or module in _BROUGHT or module in GONE:
            continue
        package = PACKAGES.get(module, module.replace("_", "-"))
        if package.lower() in names or _OTHER.get(package) in names:
            continue
        if module in PACKAGES:
            added.append(package)
            notes.append(f"{file} imports {module}: {package} is added to the requirements")
        elif module in near:
            notes.append(f"{file} imports {module}, which is beside the project's folder: it is copied too")
        else:
            notes.append(f"{file} imports {module}: add its package to the requirements of the manifest")
    for module, setting in settings_modules(project).items():
        package = PACKAGES.get(module, module.replace("_", "-"))
        if module in tops or module in _BROUGHT or package.lower() in names or package in added:
            continue
        if module in PACKAGES:
            added.append(package)
            notes.append(f"{setting} needs {module}: {package} is added to the requirements")
        elif module not in sys.stdlib_module_names:
            notes.append(f"{setting} names {module}: add its package to the requirements of the manifest")
    return added
