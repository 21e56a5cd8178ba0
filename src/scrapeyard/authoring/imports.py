"""Which packages a scraper imports, read from its files without running them, and which it does not declare."""

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from scrapeyard.authoring.cases import FOLDER as CASES
from scrapeyard.authoring.findings import Finding, fail, ok
from scrapeyard.repository.archive.files import SourceFile
from scrapeyard.repository.environments.spec import NEEDED
from scrapeyard.repository.manifest.manifest import Manifest
from scrapeyard.repository.manifest.signature import MAX_BYTES

PLATFORM = "scrapeyard"
BASE = frozenset({*sys.stdlib_module_names, *NEEDED, "scrapeyard_sdk"})
"""What every script may import."""
MAX_TOLD = 20


def check_imports(manifest: Manifest, files: tuple[SourceFile, ...], packages: Path | None = None) -> list[Finding]:
    """A finding for each package that is imported but not declared; one for all if there is none. Blocking.

    `packages` is the folder of the installed requirements; None if the scraper has none, or they are not installed yet.
    Then nothing is said of a scraper with requirements: what they bring is not known.
    """
    if manifest.requirements and packages is None:
        return []
    found = [
        _finding(module, where, manifest)
        for module, where in _imported(files).items()
        if not _has(packages, module) and module not in _own(files)
    ]
    return found[:MAX_TOLD] or [ok("imports", "only what is declared")]


def _finding(module: str, where: str, manifest: Manifest) -> Finding:
    if module == PLATFORM:
        return fail("imports", f"{where}: {module} is the platform itself", "import scrapeyard_sdk instead")
    wanted = ", ".join(f'"{each}"' for each in (*manifest.requirements, _distribution(module)))
    return fail(
        "imports",
        f"{where}: {module} is not declared; it may be missing on a worker",
        f"write in the manifest: requirements = [{wanted}]",
    )


def _imported(files: tuple[SourceFile, ...]) -> dict[str, str]:
    """Top-level module → the first place that needs it, without what every script has."""
    found: dict[str, str] = {}
    for file in files:
        path = PurePosixPath(file.name)
        if path.suffix != ".py" or path.parts[0] == CASES or file.size > MAX_BYTES:
            continue
        try:
            tree = ast.parse(file.path.read_bytes())
        except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
            continue  # another finding tells of it
        for module, line in _needed(tree):
            if module not in BASE:
                found.setdefault(module, f"{file.name}:{line}")
    return found


def _needed(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Imports at any depth. Not those for type hints only, nor those whose absence the script handles."""
    if isinstance(node, ast.Import):
        yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level == 0 and node.module:
            yield node.module.partition(".")[0], node.lineno
    else:
        for child in _needed_parts(node):
            yield from _needed(child)


def _needed_parts(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, ast.If) and _is_typing(node.test):
        return node.orelse
    if isinstance(node, ast.Try) and any(_catches_absence(handler) for handler in node.handlers):
        return [*node.orelse, *node.finalbody]
    return ast.iter_child_nodes(node)


def _is_typing(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {getattr(kind, "id", "") for kind in kinds}
    return handler.type is None or bool(names & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _own(files: tuple[SourceFile, ...]) -> frozenset[str]:
    """Modules and packages of the scraper's own folder."""
    return frozenset(PurePosixPath(file.name).parts[0].removesuffix(".py") for file in files)


def _has(packages: Path | None, module: str) -> bool:
    """Whether the installed requirements bring this module."""
    if packages is None:
        return False
    return (packages / module).is_dir() or any(packages.glob(f"{module}.*"))


def _distribution(module: str) -> str:
    """The package to require for a module: as installed here, or its own name."""
    return next(iter(_distributions().get(module, [])), module)


@cache
def _distributions() -> dict[str, list[str]]:
    return {module: list(names) for module, names in metadata.packages_distributions().items()}
