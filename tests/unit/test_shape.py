"""The shape of the source: small folders, files and functions, and one name for one thing.

An exception stands here with its reason. `lint-imports` guards the direction of imports.
"""

import ast
import gc
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MODULES = 15
"""Most in one folder."""
LINES = 400
"""Most of one file."""
BODY = 50
"""Most lines of one function, without its docstring."""

LONG_BODIES = {
    "gateway/services.py __init__": "makes every service of a gateway once, in order",
}
SHARED_NAMES = {
    "Backoff": "the call's model and the struct it is made of; the API document shows the name",
    "Budget": "the call's model, a public name; in the SDK a bound on nodes",
    **dict.fromkeys(
        ("Change", "Download", "Upload"), "an operation in a browser; elsewhere what it is in the API or in a release"
    ),
    **dict.fromkeys(
        ("Event", "Export", "Item", "Job", "Run"), "the same noun, as a program that uses the client has it"
    ),
    "Outcome": "how a run ended; in the SDK the base of what a script raises",
    "Script": "a Lua script; in the SDK a scraper's script",
}


def _files() -> Iterator[tuple[Path, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if not {"migrations", "templates"} & set(path.parts):
            yield path, str(path.relative_to(SOURCE)).removeprefix("scrapeyard/")


@pytest.fixture(scope="module", autouse=True)
def parsed_once() -> Iterator[None]:
    """Parse each file once. Without a collector, which would look through a million nodes again and again."""
    gc.disable()
    yield
    _parsed.cache_clear()
    gc.enable()


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _trees() -> list[tuple[ast.Module, str]]:
    return [(_parsed(path), name) for path, name in _files()]


def test_folders_are_small() -> None:
    folders = Counter(path.parent for path, _ in _files() if path.name != "__init__.py")
    assert {str(folder): count for folder, count in folders.items() if count > MODULES} == {}


def test_files_are_short() -> None:
    lengths = {name: len(path.read_text("utf-8").splitlines()) for path, name in _files()}
    assert {name: lines for name, lines in lengths.items() if lines > LINES} == {}


def test_functions_are_short() -> None:
    long = {
        f"{name} {function.name}" for tree, name in _trees() for function in _functions(tree) if _body(function) > BODY
    }
    assert long == set(LONG_BODIES), "split it, or say why not; remove what is short again"


def test_a_class_name_is_used_once() -> None:
    places = defaultdict(list)
    for tree, name in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) == set(SHARED_NAMES), f"give it another name, or a reason here: {twice}"


def test_folders_import_each_other_in_one_direction() -> None:
    """Also a folder and those in it, which `lint-imports` does not look at. Raises CycleError."""
    folders = defaultdict(set)
    for path, _ in _files():
        for node in _run(_parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("scrapeyard"):
                folders[path.parent] |= {_folder(node.module, alias.name) for alias in node.names} - {path.parent}
    roots = {SOURCE / name for name in ("scrapeyard", "scrapeyard_client", "scrapeyard_sdk")}
    TopologicalSorter({folder: found - roots for folder, found in folders.items() if folder not in roots}).prepare()


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            nodes.extend(ast.iter_child_nodes(node))
        yield node


def _folder(module: str, name: str) -> Path:
    """Where that is which `from module import name` imports."""
    place = SOURCE.joinpath(*module.split("."))
    return (place / name if (place / name).is_dir() else place) if place.is_dir() else place.parent


@pytest.mark.parametrize(
    "path", [SOURCE / "scrapeyard", SOURCE / "scrapeyard_client", SOURCE / "scrapeyard_sdk"], ids=lambda path: path.name
)
def test_every_module_says_what_it_is(path: Path) -> None:
    silent = [
        str(file)
        for file in path.rglob("*.py")
        if "migrations" not in file.parts and _parsed(file).body and ast.get_docstring(_parsed(file)) is None
    ]
    assert silent == []


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = function.body[1:] if is_docstring else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
