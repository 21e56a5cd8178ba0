"""`scraper.toml`: who a scraper is, how it is called and what it may use.

    schema = 1                      optional; the version of this format
    id = "shop/product"             required: site/task, lower case
    version = "1.4.2"               required: a semantic version
    name = "Product page"
    description = "Title and price of one product."
    entry = "scraper.py:run"        file:function, inside the folder; this is the default
    requirements = ["price-parser>=0.3"]   PEP 508 names; each set of them has an environment of its own
    capabilities = ["http"]         of http, browser, captcha, ai: a scraper that needs what is not here is refused
    allowed_hosts = ["shop.example", "*.shop.example"]
    network = "engines"             or "direct", which an operator must grant
    lane = "default"
    nan = "error"                   or "null": what becomes of NaN and infinity in a result
    isolation = "run"               or "warm": one child serves many calls, one after another
    [input]                         a JSON Schema, or schema = "input.json"; without it, the function's hints decide
    [output]                        likewise; without it, any result is good
    [config]                        what the script finds in ctx.config; { secret = "name" } stands for a secret
    [policy]                        retries, timeout_seconds, proxy, budget, …: what a call that does not say gets
    [limits]                        wall_seconds, cpu_seconds, memory_mb, …; cut to the operator's ceiling

Unknown keys are refused; `docs/manifest.md` describes each key in full. Every error is a ScraperInvalid that names the
file, the key and the remedy.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import SCRAPER_ID, Defaults, Limits
from scrapeyard.repository.manifest.policy import read_policy
from scrapeyard.repository.manifest.requirements import check_requirement
from scrapeyard.repository.manifest.schemas import ReadFile, read_schema
from scrapeyard.repository.manifest.semver import is_version
from scrapeyard.repository.manifest.values import WORD, Place, check_json, check_secrets, meant, parse_toml

FILE_NAME = "scraper.toml"
FORMAT = 1
MAX_BYTES = 256 * 1024
MAX_LIST = 200
_FAULTS_TOLD = 10
CAPABILITIES = ("http", "browser", "captcha", "ai")
"""Capabilities that a scraper may require from a worker."""

_HOST = re.compile(
    r"(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*|[0-9a-f:]*:[0-9a-f:.]*"
)


class Manifest(Struct, frozen=True, kw_only=True):
    """A manifest that was read and checked."""

    id: str
    version: str
    name: str = ""
    description: str = ""
    entry: str = "scraper.py:run"
    input_schema: dict[str, Any] | None = None
    """None when the manifest has none: the function's hints decide."""
    output_schema: dict[str, Any] | None = None
    """None when any result is good."""
    requirements: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    network: str = "engines"
    lane: str = "default"
    nan: str = "error"
    isolation: str = "run"
    config: dict[str, Any] = field(default_factory=dict)
    policy: Defaults = Defaults()
    limits: Limits = Limits()

    @property
    def entry_file(self) -> str:
        """The file part of the entry, relative to the scraper's folder."""
        return self.entry.partition(":")[0]

    @property
    def entry_function(self) -> str:
        """The function part of the entry."""
        return self.entry.partition(":")[2]


def read_manifest(text: bytes, where: str, read_file: ReadFile | None = None) -> Manifest:
    """Read and check a manifest. Raises ScraperInvalid naming `where`, and key and remedy of each fault.

    `read_file` reads a file of the scraper's folder, for a schema in a file of its own. None if there is no folder; a
    manifest that names such a file is then refused.
    """
    table = _parse(text, where)
    written = table.get("schema", FORMAT)
    if isinstance(written, bool) or written != FORMAT:  # in Python, true is 1
        raise ScraperInvalid(f"{where}: schema: this version of Scrapeyard reads schema = {FORMAT} alone")
    fields: dict[str, Any] = {}
    faults = [*_strange(table, where), *_missing(table, where)]
    for key in (key for key in _READERS if key in table):
        try:
            fields[key] = _READERS[key](table[key], Place(where, key))
        except ScraperInvalid as fault:
            faults.append(fault)
    for side in (side for side in ("input", "output") if side in table):
        try:
            fields[f"{side}_schema"] = read_schema(table[side], Place(where, side), read_file)
        except ScraperInvalid as fault:
            if read_file is not None or not faults:  # without a folder it may be no fault of the manifest
                faults.append(fault)
    if faults:
        raise _all_of(faults, where)
    return Manifest(**fields)


def _strange(table: dict[str, Any], where: str) -> Iterator[ScraperInvalid]:
    """The keys that are known are listed once."""
    known = {"schema", "input", "output", *_READERS}
    strange = [key for key in table if key not in known]
    for number, key in enumerate(strange):
        words = meant(key, known) if number < _FAULTS_TOLD else ""
        is_list = words.startswith("; known are")
        yield Place(where, key[:100]).fault(f"no such key{'' if is_list and number else words}")


def _missing(table: dict[str, Any], where: str) -> Iterator[ScraperInvalid]:
    return (Place(where, key).fault(f"missing; add it, e.g. {_EXAMPLES[key]}") for key in _EXAMPLES if key not in table)


def _all_of(faults: list[ScraperInvalid], where: str) -> ScraperInvalid:
    """One error that tells all faults; its details are those of the first."""
    first, *others = faults
    told = [fault.message.removeprefix(f"{where}: ") for fault in others[: _FAULTS_TOLD - 1]]
    more = [f"{len(faults) - _FAULTS_TOLD:,} more"] if len(faults) > _FAULTS_TOLD else []
    return ScraperInvalid("; also ".join([first.message, *told, *more]), **first.details)


def read_identity(text: bytes) -> tuple[str, str]:
    """Id and version of a manifest, each empty if missing or malformed; ignores everything else."""
    try:
        table = parse_toml(text)
    except ValueError:
        return "", ""
    named, version = table.get("id"), table.get("version")
    if not isinstance(named, str) or SCRAPER_ID.fullmatch(named) is None:
        return "", ""
    return named, version if isinstance(version, str) and is_version(version) else ""


def _parse(text: bytes, where: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        raise ScraperInvalid(f"{where}: larger than {MAX_BYTES // 1024} KB; move schemas into .json files")
    try:
        return parse_toml(text)
    except UnicodeDecodeError as error:
        raise ScraperInvalid(f"{where}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ScraperInvalid(f"{where}: not TOML: {error}") from None
    except ValueError as error:
        raise ScraperInvalid(f"{where}: not TOML we read: {str(error)[:200]}") from None


def _id(value: Any, place: Place) -> str:
    if not isinstance(value, str) or SCRAPER_ID.fullmatch(value) is None:
        raise place.fault('must be site/task in lower-case letters, digits, ".", "_", "-", e.g. "shop/product"')
    return value


def _version(value: Any, place: Place) -> str:
    if not isinstance(value, str) or not is_version(value):
        raise place.fault('must be a semantic version such as "1.4.2" or "2.0.0-rc.1"')
    return value


def _text(longest: int) -> Callable[[Any, Place], str]:
    def read(value: Any, place: Place) -> str:
        if not isinstance(value, str) or len(value) > longest:
            raise place.fault(f"must be text of at most {longest} characters")
        return value

    return read


def _entry(value: Any, place: Place) -> str:
    file, colon, function = value.partition(":") if isinstance(value, str) and len(value) <= 500 else ("", "", "")
    path = PurePosixPath(file)
    good = colon and function.isidentifier() and path.suffix == ".py" and not path.is_absolute()
    if not good or ".." in path.parts or "\\" in file or not file.isprintable():
        raise place.fault('must be file.py:function, inside the scraper\'s folder, e.g. "scraper.py:run"')
    return f"{path}:{function}"


def _strings(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list) or len(value) > MAX_LIST:
        raise place.fault(f"must be a list of at most {MAX_LIST} strings")
    for item in value:
        if not isinstance(item, str) or not 0 < len(item) <= 500 or not item.isprintable():
            raise place.fault("must be a list of strings of 1 to 500 printable characters")
    return value


def _requirements(value: Any, place: Place) -> tuple[str, ...]:
    return tuple(check_requirement(item, place) for item in _strings(value, place))


def _capabilities(value: Any, place: Place) -> tuple[str, ...]:
    names = _strings(value, place)
    for name in (name for name in names if name not in CAPABILITIES):
        raise place.fault(f"{name[:100]!r} is not known; there are: {', '.join(CAPABILITIES)}")
    return tuple(dict.fromkeys(names))


def _hosts(value: Any, place: Place) -> tuple[str, ...]:
    hosts = tuple(item.lower() for item in _strings(value, place))
    for host in hosts:
        if _HOST.fullmatch(host) is None:
            raise place.fault(
                f'{host[:100]!r} is not a host; write "shop.example" or "*.shop.example", without scheme, port or path'
            )
    return hosts


def _one_of(*words: str) -> Callable[[Any, Place], str]:
    def read(value: Any, place: Place) -> str:
        if value not in words:
            raise place.fault("must be " + " or ".join(f'"{word}"' for word in words))
        return str(value)

    return read


def _word(value: Any, place: Place) -> str:
    if not isinstance(value, str) or WORD.fullmatch(value) is None:
        raise place.fault('must be 1 to 64 of lower-case letters, digits, ".", "_", "-", a letter or digit first')
    return value


def _config(value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.fault("must be a table: write [config] and the keys below it")
    check_json(value, place)
    check_secrets(value, place)
    return value


def _limits(value: Any, place: Place) -> Limits:
    if not isinstance(value, dict):
        raise place.fault("must be a table: write [limits] and the keys below it")
    for name, limit in value.items():
        _check_limit(name, limit, Place(place.where, f"limits.{name[:100]}"))
    return Limits(**value)


def _check_limit(name: str, limit: Any, place: Place) -> None:
    defaults = Limits()
    if name not in Limits.__struct_fields__:
        raise place.fault(f"no such limit{meant(name, Limits.__struct_fields__)}")
    whole = isinstance(getattr(defaults, name), int)
    kinds = int if whole else (int, float)
    if isinstance(limit, bool) or not isinstance(limit, kinds) or not 0 < limit < 2**53:
        raise place.fault(f"must be a {'whole ' if whole else ''}number above 0")


_READERS: dict[str, Callable[[Any, Place], Any]] = {
    "id": _id,
    "version": _version,
    "name": _text(200),
    "description": _text(5000),
    "entry": _entry,
    "requirements": _requirements,
    "capabilities": _capabilities,
    "allowed_hosts": _hosts,
    "network": _one_of("engines", "direct"),
    "lane": _word,
    "nan": _one_of("error", "null"),
    "isolation": _one_of("run", "warm"),
    "config": _config,
    "policy": read_policy,
    "limits": _limits,
}
_EXAMPLES = {"id": 'id = "shop/product"', "version": 'version = "1.0.0"'}
