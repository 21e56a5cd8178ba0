"""A Scrapy project: its settings module, its spiders and their arguments, read without running anything."""

import ast
import configparser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from scrapeyard.errors import BadRequest
from scrapeyard.repository.scrapy.reading import UNKNOWN, SourceClass, SourceTree, is_known, last_name, project_files

CONFIG = "scrapy.cfg"
_MAX_CONFIG = 64 * 1024
_MAX_BASES = 16
_HINTS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
_STARTERS = ("AsyncCrawlerProcess", "AsyncCrawlerRunner", "CrawlerProcess", "CrawlerRunner")
_NO_CONSTANT = "the setting {key} of the file is no constant; set it in [config.settings]"
_UNREAD = "some settings of the file cannot be read without running it; set them in [config.settings]"
_STARTS = frozenset({"start", "start_requests"})
_NOT_ARGUMENTS = frozenset({"self", "cls", "name", "args", "kwargs"})


class SpiderArgument(Struct, frozen=True, kw_only=True):
    """An argument that a spider takes with `-a`."""

    name: str
    type: str = ""
    """Its JSON type, if a type hint says it."""
    required: bool = False


class ProjectSpider(Struct, frozen=True, kw_only=True):
    """A spider that the project's settings lead to."""

    name: str
    module: str
    class_name: str
    description: str
    arguments: tuple[SpiderArgument, ...]
    settings: dict[str, Any]
    """Its `custom_settings`, as far as they are constants."""


class SpiderProject(Struct, frozen=True, kw_only=True):
    """A whole project."""

    root: Path
    tree: SourceTree
    name: str
    settings_module: str
    """Empty for a file or folder with spiders and no settings."""
    modules: tuple[str, ...]
    settings: dict[str, Any]
    spiders: tuple[ProjectSpider, ...]
    notes: tuple[str, ...]
    """What could not be read, for people."""


def read_project(path: Path, settings_module: str = "") -> SpiderProject:
    """The project in a folder with `scrapy.cfg`, or one that holds it, or lies in it; a file with spiders is one too.

    `settings_module` is for a folder without `scrapy.cfg`, as an egg is. Raises BadRequest if there is no spider.
    """
    if path.is_file():
        return _read(SourceTree(path.resolve().parent, path.resolve()), "", (path.stem,), path.stem)
    if not path.is_dir():
        raise BadRequest(f"{path} is no folder and no file")
    root = path if settings_module else _root(path)
    module = settings_module or _settings_module(root)
    return _read(SourceTree(root), module, (), root.resolve().name)


def _root(path: Path) -> Path:
    """The folder with `scrapy.cfg`: this one, the only one below it, the nearest above it, or this one without."""
    if (path / CONFIG).is_file():
        return path
    found = [each.parent for each in project_files(path) if each.name == CONFIG]
    if len(found) > 1:
        names = ", ".join(str(each) for each in found[:5])
        raise BadRequest(f"{path} has several projects; name one: {names}")
    return found[0] if found else _above(path) or path


def _above(path: Path) -> Path | None:
    """The nearest folder above with `scrapy.cfg`, where Scrapy looks for it too."""
    return next((folder for folder in path.resolve().parents if (folder / CONFIG).is_file()), None)


def _settings_module(root: Path) -> str:
    """Of `scrapy.cfg`; empty if there is none. Raises BadRequest for a file that names no settings."""
    place = root / CONFIG
    if not place.is_file():
        return ""
    config = configparser.ConfigParser(interpolation=None)
    try:
        with place.open(encoding="utf-8-sig") as stream:
            config.read_string(stream.read(_MAX_CONFIG))
        section = dict(config["settings"])
    except (OSError, UnicodeDecodeError, configparser.Error, KeyError) as error:
        raise BadRequest(f"{place}: cannot be read, or has no [settings]: {error}") from None
    module = section.get("default") or next(iter(section.values()), "")
    if not module:
        raise BadRequest(f"{place}: [settings] names no module; write default = PACKAGE.settings")
    return module.strip()


def _read(tree: SourceTree, module: str, modules: tuple[str, ...], name: str) -> SpiderProject:
    root = tree.root
    if module and tree.place(module) is None:
        raise BadRequest(f"{root}: the settings module {module} of {CONFIG} is not there")
    settings, unknown = _settings(tree, module)
    found = modules or _spider_modules(tree, module, settings)
    reader = _Spiders(tree, found, named=bool(module))
    spiders = tuple(reader.read())
    if not spiders:
        raise BadRequest(
            f"{root}: no spider found in {', '.join(found) or 'its files'}: a class with a constant `name`"
        )
    if not module:
        found = tuple(dict.fromkeys(spider.module for spider in spiders))
    bot = settings.get("BOT_NAME")
    return SpiderProject(
        root=root,
        tree=tree,
        name=bot if isinstance(bot, str) else module.partition(".")[0] or name,
        settings_module=module,
        modules=found,
        settings=settings,
        spiders=spiders,
        notes=(*unknown, *_unused(tree, module), *reader.notes),
    )


def _unused(tree: SourceTree, module: str) -> list[str]:
    """Notes of settings that are there and not taken, for want of a `scrapy.cfg` that names them."""
    if tree.only is not None:
        above = _above(tree.only)
        return [f"the settings of the project {above} are not used: import that folder to have them"] if above else []
    names = [path.relative_to(tree.root).as_posix() for path in tree.files() if path.name == "settings.py"]
    return [f"there is no {CONFIG}, so {name} is not used" for name in names if not module]


def _settings(tree: SourceTree, module: str) -> tuple[dict[str, Any], list[str]]:
    """Of the settings module; of one file, what it gives to CrawlerProcess, with notes of what is no constant."""
    if module:
        return {key: value for key, value in tree.constants(module).items() if key.isupper()}, []
    if tree.only is None:
        return {}, []
    own = tree.module_of(tree.only)
    given = tree.given_to(_STARTERS, own)
    known = {key: _renamed(value, own) for key, value in given.items() if isinstance(key, str) and is_known(value)}
    left = [key for key in given if key not in known]
    notes = [_UNREAD if key is UNKNOWN else _NO_CONSTANT.format(key=key) for key in left]
    if arguments := tree.crawled_with(own):
        notes.append(f"the file gives arguments to crawl(): {', '.join(arguments)}; give them to the run as its input")
    return known, notes


def _renamed(value: Any, module: str) -> Any:
    """A value in which `__main__.Pipeline` says where the class is when the file is imported."""
    if isinstance(value, str):
        return f"{module}.{value.removeprefix('__main__.')}" if value.startswith("__main__.") else value
    if isinstance(value, dict):
        return {_renamed(key, module): _renamed(each, module) for key, each in value.items()}
    return [_renamed(each, module) for each in value] if isinstance(value, list) else value


def _spider_modules(tree: SourceTree, module: str, settings: dict[str, Any]) -> tuple[str, ...]:
    """As SPIDER_MODULES says; without settings, every module at the top."""
    named = settings.get("SPIDER_MODULES")
    if isinstance(named, list) and UNKNOWN not in named:
        return tuple(map(str, named))
    if isinstance(named, str):
        return tuple(named.split(","))
    if module:
        return (f"{module.rpartition('.')[0]}.spiders",)
    tops = {path.relative_to(tree.root).parts[0].removesuffix(".py") for path in tree.files()}
    return tuple(sorted(top for top in tops if top not in ("setup", "conftest", "__init__")))


class _Spiders:
    """Finds the spiders among the classes of a project."""

    def __init__(self, tree: SourceTree, modules: tuple[str, ...], *, named: bool) -> None:
        """`named` says that settings name these modules, below which Scrapy looks into packages alone."""
        self._classes = tree.classes()
        self._by_name = {found.node.name: found for found in self._classes}
        below = [path for module in modules for path in tree.below(module)]
        closed = {path: tree.no_packages(path, modules) if named else [] for path in below}
        files = [path for path in below if not closed[path]]
        self._places = {tree.module_of(path) for path in files}
        unread = [path.relative_to(tree.root).as_posix() for path in files if tree.tree(path) is None]
        self.notes = [f"{name} is no Python 3 that can be read: its spiders are left out" for name in unread]
        folders = sorted({folder.relative_to(tree.root).as_posix() for found in closed.values() for folder in found})
        self.notes += [f"{name} has no __init__.py, so Scrapy does not look into it" for name in folders]

    def read(self) -> Iterator[ProjectSpider]:
        """Each name once, as Scrapy does: the last class of a name is taken."""
        found: dict[str, SourceClass] = {}
        for each in self._classes:
            if each.module in self._places and self._is_spider(each) and (name := self._name(each)):
                if name in found:
                    other = found[name]
                    self.notes.append(f"two spiders are called {name}: {each.file} is taken, {other.file} is not")
                found[name] = each
        yield from (self._spider(name, each) for name, each in found.items())

    def _name(self, found: SourceClass) -> str:
        for each in self._chain(found):
            name = each.values.get("name")
            if isinstance(name, str):
                return name
            if name is UNKNOWN:
                self.notes.append(f"{found.file}: the name of {found.node.name} is no constant; it is left out")
                return ""
        return ""

    def _is_spider(self, found: SourceClass) -> bool:
        """Whether a base has a name that ends in Spider, or is a class elsewhere, and the class says how to start."""
        chain = self._chain(found)
        bases = {base for each in chain for base in each.bases}
        starts = any("start_urls" in each.values or _STARTS & {own.name for own in each.functions()} for each in chain)
        return any(base.endswith("Spider") for base in bases) or (
            starts and bool(bases - self._by_name.keys() - {"object"})
        )

    def _chain(self, found: SourceClass) -> list[SourceClass]:
        """The class and its bases in the project, nearest first."""
        chain = [found]
        for each in chain:
            if len(chain) > _MAX_BASES:
                break
            bases = (self._by_name.get(base) for base in each.bases)
            chain.extend(base for base in bases if base is not None and base not in chain)
        return chain

    def _spider(self, name: str, found: SourceClass) -> ProjectSpider:
        chain = self._chain(found)
        settings: Any = next((each.values["custom_settings"] for each in chain if "custom_settings" in each.values), {})
        return ProjectSpider(
            name=name,
            module=found.module,
            class_name=found.node.name,
            description=(ast.get_docstring(found.node) or "").partition("\n\n")[0].replace("\n", " ")[:500],
            arguments=tuple(_arguments(chain)),
            settings=settings if isinstance(settings, dict) else {},
        )


def _arguments(chain: list[SourceClass]) -> Iterator[SpiderArgument]:
    """Parameters of `__init__`, and what the spider asks itself for: `getattr(self, "tag", None)`.

    Those of a base are not required if a class before it has an `__init__` of its own, which may fill them in.
    """
    seen = set(_NOT_ARGUMENTS) | {name for each in chain for name in each.values}
    seen |= {function.name for each in chain for function in each.functions()}
    made = False
    for each in chain:
        own = [function for function in each.functions() if function.name == "__init__"]
        asked = (argument for function in each.functions() for argument in _asked(function))
        for argument in (*(found for function in own for found in _parameters(function)), *asked):
            if argument.name not in seen:
                seen.add(argument.name)
                yield structs.replace(argument, required=argument.required and not made)
        made = made or bool(own)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[SpiderArgument]:
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    bare = len(plain) - len(given.defaults)
    for number, each in enumerate(plain):
        yield SpiderArgument(name=each.arg, type=_type(each.annotation), required=number < bare)
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield SpiderArgument(name=each.arg, type=_type(each.annotation), required=default is None)


def _type(hint: ast.expr | None) -> str:
    """The JSON type of a hint; empty for one that is not plain."""
    if isinstance(hint, ast.BinOp):  # int | None
        return _type(hint.left) or _type(hint.right)
    if isinstance(hint, ast.Subscript):
        inner = hint.slice if last_name(hint.value) == "Optional" else hint.value
        return _type(inner)
    return _HINTS.get(last_name(hint).lower(), "") if hint is not None else ""


def _asked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[SpiderArgument]:
    """`getattr(self, "tag", …)`, and `kwargs.get("tag")` or `kwargs.pop("tag")`."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        owner = node.func.value if isinstance(node.func, ast.Attribute) else next(iter(node.args), None)
        of_self = last_name(node.func) == "getattr" and last_name(owner or node) == "self"
        of_kwargs = last_name(node.func) in ("get", "pop") and last_name(owner or node) == "kwargs"
        if texts and texts[0].isidentifier() and (of_self or of_kwargs):
            yield SpiderArgument(name=texts[0])
