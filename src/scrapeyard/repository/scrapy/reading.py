"""What Python source says without being run: constants, and the classes of a project with their bases."""

import ast
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import Struct

from scrapeyard.errors import BadRequest
from scrapeyard.repository.archive.files import is_skipped

MAX_SOURCE = 1024 * 1024
MAX_MODULES = 2000
MAX_SOURCES = 6 * MAX_SOURCE
"""Of all files together: parsed, a megabyte may take 200."""
_MAX_DEPTH = 16
_MAX_NESTED = 200
"""Expressions and blocks within each other: what is deeper is not read."""
_MAX_PARTS = 5000
"""Values in a constant, with those that names stand for. A thousand characters count as one."""
_PART = 1000
_MAX_NUMBER = 2**64
_MAX_NAME = 200
UNKNOWN: Final = object()
"""A value that only running the code would tell."""
_SKIPPED: Final = frozenset({"build", "dist", "env", "httpcache", "node_modules", "site-packages", "venv"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class SourceClass(Struct, frozen=True, kw_only=True):
    """A class of the project."""

    module: str
    file: str
    node: ast.ClassDef
    values: dict[str, Any]
    """Its constants by name."""

    @property
    def bases(self) -> list[str]:
        """Last names of what it derives from."""
        return [name for base in self.node.bases if (name := last_name(base))]

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Its methods."""
        yield from (each for each in self.node.body if isinstance(each, _FUNCTIONS))


class SourceTree:
    """The modules below a folder, each parsed once, when it is asked for; or one file with the modules it imports."""

    def __init__(self, root: Path, only: Path | None = None) -> None:
        """Raises BadRequest for more source than is read."""
        self.root = root
        self.only = only
        self._trees: dict[Path, ast.Module | None] = {}
        self._constants: dict[str, dict[str, Any]] = {}
        found = self._imported_by(only) if only else (path for path in project_files(root) if path.suffix == ".py")
        self._files = list(itertools.islice(found, MAX_MODULES))
        sizes = (path.stat().st_size for path in self._files)
        if sum(size for size in sizes if size <= MAX_SOURCE) > MAX_SOURCES:
            raise BadRequest(f"{root}: more than {MAX_SOURCES >> 20} MB of Python; move away what it does not need")

    def _imported_by(self, file: Path) -> Iterator[Path]:
        """The file, and the modules beside it that it and they import."""
        found = [file]
        for path in found:
            yield path
            nodes: Iterable[ast.AST] = ast.walk(self.tree(path) or ast.Module([], []))
            modules = (module for node in nodes for module in modules_of(node, self.module_of(path)))
            places = (self.place(module) for module in modules if module)
            found.extend(place for place in dict.fromkeys(places) if place and place not in found)

    def named_files(self) -> list[Path]:
        """Files beside the one file that its code names, such as `urls.txt`."""
        trees = (tree for path in self._files if (tree := self.tree(path)))
        nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
        texts = {node.value for node in nodes if isinstance(node.value, str) and 0 < len(node.value) < _MAX_NAME}
        found = (self.root / text for text in sorted(texts) if _is_plain(text))
        return [path for path in found if path.is_file() and not path.is_symlink() and path not in self._files]

    def files(self) -> list[Path]:
        """Every Python file of the project."""
        return self._files

    def tree(self, path: Path) -> ast.Module | None:
        """The parsed file; None if it is no Python that is read here."""
        if path not in self._trees:
            self._trees[path] = _parse(path)
        return self._trees[path]

    def place(self, module: str) -> Path | None:
        """The file of a module of the project; None for one that is not the project's."""
        if not _is_module(module):
            return None
        stem = self.root.joinpath(*module.split("."))
        return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)

    def below(self, module: str) -> list[Path]:
        """The files of a module and, if it is a package, of all modules in it."""
        if not _is_module(module):
            return []
        folder = self.root.joinpath(*module.split("."))
        place = self.place(module)
        return [path for path in self.files() if path == place or folder in path.parents]

    def no_packages(self, path: Path, modules: tuple[str, ...]) -> list[Path]:
        """The folders between one of these modules and the file that are no packages."""
        tops = {self.root.joinpath(*module.split(".")) for module in modules if _is_module(module)}
        folders = [folder for folder in path.parents if any(top in folder.parents for top in tops)]
        return [folder for folder in folders if not (folder / "__init__.py").is_file()]

    def module_of(self, path: Path) -> str:
        """The name that imports this file."""
        parts = list(path.relative_to(self.root).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def constants(self, module: str, depth: int = 0) -> dict[str, Any]:
        """What a module assigns at its top level, with what it takes over by `from … import *`."""
        if module in self._constants or depth > _MAX_DEPTH:
            return self._constants.get(module, {})
        place = self.place(module)
        tree = self.tree(place) if place else None
        known: dict[str, Any] = {}
        self._constants[module] = known
        package = module if place and place.name == "__init__.py" else module.rpartition(".")[0]
        for node in tree.body if tree else ():
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                known.update(self.constants(_absolute(node, package), depth + 1))
            else:
                assign(node, known)
        return known

    def given_to(self, names: tuple[str, ...], module: str) -> dict[Any, Any]:
        """The table that a module gives to one of these calls: its first argument, or `settings=`.

        With what is set on the name that is given, in the same function: `settings.set("X", 1)`, `settings["X"] = 1`.
        The table holds UNKNOWN under the key UNKNOWN if it, or a part of it, cannot be read.
        """
        place = self.place(module)
        tree = self.tree(place) if place else None
        for scope in _scopes(tree) if tree else ():
            for node in own_nodes(scope):
                if isinstance(node, ast.Call) and last_name(node.func) in names:
                    named = [each.value for each in node.keywords if each.arg == "settings"]
                    known = {**_named_in(tree), **self.constants(module)} if tree else {}
                    for each in own_nodes(scope):
                        assign(each, known)
                    return _given(next(iter([*node.args, *named]), None), scope, known)
        return {}

    def crawled_with(self, module: str) -> list[str]:
        """The names of the arguments that a module gives to `crawl(Spider, …)`, sorted; `*` for one without a name."""
        place = self.place(module)
        tree = self.tree(place) if place else None
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []
        crawls = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "crawl"]
        names = {each.arg or "*" for node in crawls for each in node.keywords}
        return sorted(names | {"*" for node in crawls if len(node.args) > 1})

    def classes(self) -> list[SourceClass]:
        """Every class at the top level of a module."""
        return [found for path in self.files() for found in self._classes(path)]

    def _classes(self, path: Path) -> Iterator[SourceClass]:
        tree, module = self.tree(path), self.module_of(path)
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef):
                values = dict(self.constants(module))
                before = set(values)
                for each in node.body:
                    assign(each, values)
                own = {name: value for name, value in values.items() if name not in before or _assigns(node, name)}
                file = path.relative_to(self.root).as_posix()
                yield SourceClass(module=module, file=file, node=node, values=own)


def project_files(folder: Path) -> Iterator[Path]:
    """Regular files in order, without hidden ones, links, environments and builds."""
    for path in sorted(folder.iterdir()):
        if is_skipped(path.name) or path.is_symlink():
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and path.name not in _SKIPPED and not (path / "pyvenv.cfg").exists():
            yield from project_files(path)


def _is_module(name: str) -> bool:
    """Whether it is a name that can be imported, and so lies in the project's folder."""
    return all(part.isidentifier() for part in name.split("."))


def _is_plain(name: str) -> bool:
    """Whether it is the path of a file in this folder or below, and not a hidden one."""
    parts = PurePosixPath(name).parts
    return "\0" not in name and not name.startswith("/") and not any(is_skipped(part) for part in parts)


def modules_of(node: ast.AST, module: str = "") -> list[str]:
    """The modules that an import in this module names, whole; with each name of a `from`, which may be one too."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = _absolute(node, module.rpartition(".")[0])
        return [base, *(f"{base}.{alias.name}" if base else alias.name for alias in node.names)]
    return []


def _parse(path: Path) -> ast.Module | None:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_SOURCE + 1)
        tree = ast.parse(raw) if len(raw) <= MAX_SOURCE else None
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
        return None
    return tree if tree is not None and _is_shallow(tree) else None


def _is_shallow(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_NESTED):
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that a `from` names; relative ones count from `package`."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = [part for part in parts[: len(parts) - node.level + 1] if part]
    return ".".join([*base, *([node.module] if node.module else [])])


def _assigns(node: ast.ClassDef, name: str) -> bool:
    return any(name in _targets(each) for each in node.body)


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def assign(node: ast.AST, known: dict[str, Any]) -> None:
    """Add what a statement assigns to names."""
    for name in _targets(node):
        known[name] = value_of(getattr(node, "value", None), known)


def _bounded(value: Any) -> Any:
    """The value; UNKNOWN if it is too large: a few lines may name a list of billions."""
    left, parts = _MAX_PARTS, [value]
    while parts and left >= 0:
        part = parts.pop()
        left -= 1 + (len(part) // _PART if isinstance(part, str) else 0)
        if isinstance(part, dict | list) and len(part) <= left:
            parts.extend(part.values() if isinstance(part, dict) else part)
        elif isinstance(part, dict | list):
            return UNKNOWN
    return value if left >= 0 else UNKNOWN


def value_of(node: ast.AST | None, known: dict[str, Any]) -> Any:
    """The value of an expression; UNKNOWN where it is more than constants, names and their sums, or too large."""
    if isinstance(node, ast.Constant):
        is_large = isinstance(node.value, int) and abs(node.value) > _MAX_NUMBER
        return UNKNOWN if is_large else node.value
    if isinstance(node, ast.Name):
        return known.get(node.id, UNKNOWN)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return _bounded([value_of(each, known) for each in node.elts])
    if isinstance(node, ast.Dict):
        return _bounded(_table(node, known))
    if isinstance(node, ast.Call) and last_name(node.func) == "dict" and not node.args:
        return _bounded({each.arg if each.arg else UNKNOWN: value_of(each.value, known) for each in node.keywords})
    if isinstance(node, ast.JoinedStr):
        return _joined(node, known)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = value_of(node.operand, known)
        return -value if isinstance(value, int | float) else UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = value_of(node.left, known), value_of(node.right, known)
        return _bounded(left + right) if type(left) is type(right) and type(left) in (str, list) else UNKNOWN
    return UNKNOWN


def _table(node: ast.Dict, known: dict[str, Any]) -> dict[Any, Any]:
    """A dictionary, with those that it takes in by `**`. A key that cannot be read is UNKNOWN."""
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = value_of(value, known)
            found.update(inner if isinstance(inner, dict) else {UNKNOWN: UNKNOWN})
        else:
            read = value_of(key, known)
            found[read if isinstance(read, str | int | float | bool) else UNKNOWN] = value_of(value, known)
    return found


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """What a module or function holds, without the functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node
            yield from own_nodes(node)


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    """The module and all functions in it."""
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))


def _named_in(tree: ast.Module) -> dict[str, Any]:
    """Classes of a script and what it imports, as Scrapy's settings name them: `__main__.Clean`."""
    known: dict[str, Any] = {"__name__": "__main__"}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            known[node.name] = f"__main__.{node.name}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return known


def _given(node: ast.AST | None, scope: ast.AST, known: dict[str, Any]) -> dict[Any, Any]:
    """The settings that an expression stands for, with those that the scope sets on its name."""
    if node is None:
        return {}
    value = {} if _is_made_empty(node, scope) else value_of(node, known)
    found: dict[Any, Any] = dict(value) if isinstance(value, dict) else {UNKNOWN: UNKNOWN}
    if isinstance(node, ast.Name):
        for each in own_nodes(scope):
            found.update(_set_on(node.id, each, known))
    return found


def _is_made_empty(node: ast.AST, scope: ast.AST) -> bool:
    """Whether it is `Settings()` or `get_project_settings()`, or a name for that: a lone file has no project."""
    made = [
        each.value for each in own_nodes(scope) if isinstance(each, ast.Assign) and last_name(node) in _targets(each)
    ]
    calls = made if isinstance(node, ast.Name) else [node]
    names = {last_name(each.func) for each in calls if isinstance(each, ast.Call) and not each.args}
    return bool(names) and names <= {"Settings", "get_project_settings"}


def _set_on(name: str, node: ast.AST, known: dict[str, Any]) -> dict[Any, Any]:
    """What `NAME.set("X", 1)`, `NAME.update({…})`, `NAME.setdict({…})` or `NAME["X"] = 1` sets."""
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        return _pair(target.slice, node.value, known) if last_name(target.value) == name else {}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or last_name(node.func.value) != name:
        return {}
    if node.func.attr == "set" and len(node.args) > 1:
        return _pair(node.args[0], node.args[1], known)
    if node.func.attr in ("update", "setdict") and node.args:
        value = value_of(node.args[0], known)
        return value if isinstance(value, dict) else {UNKNOWN: UNKNOWN}
    return {}


def _pair(key: ast.AST, value: ast.AST, known: dict[str, Any]) -> dict[Any, Any]:
    name = value_of(key, known)
    return {name if isinstance(name, str) else UNKNOWN: value_of(value, known)}


def _joined(node: ast.JoinedStr, known: dict[str, Any]) -> Any:
    parts = [value_of(each.value if isinstance(each, ast.FormattedValue) else each, known) for each in node.values]
    return UNKNOWN if UNKNOWN in parts or _bounded(parts) is UNKNOWN else _bounded("".join(map(str, parts)))


def is_known(value: Any) -> bool:
    """Whether no part of it is UNKNOWN."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is not UNKNOWN and all(is_known(part) for part in parts)


def last_name(node: ast.AST) -> str:
    """`Spider` of `scrapy.Spider`; empty for what is no name."""
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))
