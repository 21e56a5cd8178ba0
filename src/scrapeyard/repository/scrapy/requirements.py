"""The packages of a scraper that is made from a project: those that it says, made to fit, and those that it needs."""

import re
import sys
from collections.abc import Callable
from typing import Final

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.requirements import check_requirement
from scrapeyard.repository.manifest.values import Place
from scrapeyard.repository.scrapy.project import SpiderProject
from scrapeyard.repository.scrapy.stated import REQUIREMENTS, stated
from scrapeyard.repository.scrapy.told import GONE, NETWORK, PACKAGES, beside, imports_of, settings_modules
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
_BROUGHT: Final = frozenset(
    {
        *("OpenSSL", "attr", "automat", "cryptography", "cssselect", "defusedxml", "hyperlink", "itemadapter"),
        *("itemloaders", "lxml", "packaging", "parsel", "protego", "pydispatch", "queuelib", "scrapeyard_sdk"),
        *("scrapy", "service_identity", "tldextract", "twisted", "w3lib", "zope"),
    }
)
"""Modules that Scrapy's own requirements bring, and the SDK."""


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
