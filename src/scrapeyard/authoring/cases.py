"""A case: one recorded run of a scraper, as a folder of files under `tests/`.

    tests/lamp/input.json       what the run was given
    tests/lamp/expected.json    its result; null when it ended without one
    tests/lamp/cassette.json    the pages it fetched, with their bodies under pages/
    tests/lamp/case.toml        optional: how it ends, which fields are not compared

    ends = "succeeded"          the exit reason; this is the default
    ignore = ["scraped_at"]     fields whose values are not compared
    artifacts = ["list.csv"]    names of what it keeps

A case is written whole or not at all.
"""

import contextlib
import json
import re
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct

from scrapeyard.authoring.cassette import FILE_NAME as CASSETTE
from scrapeyard.authoring.cassette import RecordedPage, read_bounded, read_cassette, write_cassette
from scrapeyard.authoring.comparing import MAX_MASKS, Step, parse_mask
from scrapeyard.errors import BadRequest, ScraperInvalid
from scrapeyard.model import ExitReason

FOLDER = "tests"
INPUT, EXPECTED, OPTIONS = "input.json", "expected.json", "case.toml"
MAX_CASES = 200
MAX_INPUT_BYTES = 16 * 1024 * 1024
MAX_EXPECTED_BYTES = 32 * 1024 * 1024
MAX_OPTIONS_BYTES = 64 * 1024
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)

REPLAYABLE = frozenset(
    {
        ExitReason.SUCCEEDED,
        ExitReason.SKIPPED,
        ExitReason.FAILED,
        ExitReason.RETRY,
        ExitReason.BLOCKED,
        *(
            reason
            for reason in ExitReason
            if reason.startswith("fetch_") and reason != ExitReason.FETCH_PRIVATE_ADDRESS
        ),
    }
)
"""Exit reasons that a script chooses or that web responses cause. Others are errors and cannot be a case."""


class Options(Struct, frozen=True, kw_only=True):
    """What `case.toml` says."""

    ends: ExitReason = ExitReason.SUCCEEDED
    ignore: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()

    def masks(self, where: str) -> tuple[tuple[Step, ...], ...]:
        """The paths of `ignore`, parsed into steps. Raises ScraperInvalid."""
        return tuple(parse_mask(path, f"{where}: ignore") for path in self.ignore)


class Case(Struct, frozen=True, kw_only=True):
    """A case that was read and checked."""

    name: str
    folder: Path
    input: dict[str, Any]
    expected: Any
    options: Options
    pages: tuple[RecordedPage, ...]


def case_folders(scraper: Path) -> list[Path]:
    """The folders of a scraper's cases by name: those below `tests/` that hold a cassette or an input.

    Raises ScraperInvalid when there are too many.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = sorted(each for each in (scraper / FOLDER).iterdir() if _is_case(each))
        if len(found) > MAX_CASES:
            raise ScraperInvalid(f"{scraper / FOLDER}: more than {MAX_CASES} cases; remove some")
        return found
    return []


def read_case(folder: Path) -> Case:
    """Read one case. Raises ScraperInvalid that names the file and what to do. Blocking."""
    given = read_json(folder / INPUT, MAX_INPUT_BYTES)
    if not isinstance(given, dict):
        raise ScraperInvalid(f"{folder / INPUT}: an object is needed")
    options = read_options(folder)
    options.masks(str(folder / OPTIONS))
    return Case(
        name=folder.name,
        folder=folder,
        input=given,
        expected=read_json(folder / EXPECTED, MAX_EXPECTED_BYTES),
        options=options,
        pages=read_cassette(folder),
    )


def read_options(folder: Path) -> Options:
    """What `case.toml` says; the defaults when there is none. Raises ScraperInvalid."""
    path = folder / OPTIONS
    if not path.exists():
        return Options()
    try:
        table = tomllib.loads(read_bounded(path, MAX_OPTIONS_BYTES).decode())
    except (ValueError, RecursionError) as error:
        raise ScraperInvalid(f"{path}: not TOML in UTF-8: {str(error)[:200]}") from None
    for key in (key for key in table if key not in Options.__struct_fields__):
        raise ScraperInvalid(f"{path}: {key[:100]}: no such key; known are {', '.join(Options.__struct_fields__)}")
    return Options(
        ends=_end(table.get("ends", "succeeded"), path),
        ignore=_names(table.get("ignore", []), f"{path}: ignore"),
        artifacts=_names(table.get("artifacts", []), f"{path}: artifacts"),
    )


def write_case(
    folder: Path, given: dict[str, Any], result: Any, options: Options, pages: tuple[RecordedPage, ...]
) -> None:
    """Write a case in place of what was there before. Raises BadRequest when it cannot be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
        try:
            fresh.chmod(0o755)
            write_json(fresh / INPUT, given)
            write_cassette(fresh, pages)
            write_outcome(fresh, result, options)
            _swap(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise BadRequest(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def write_outcome(folder: Path, result: Any, options: Options) -> None:
    """The expected result, and how the run ends. Raises BadRequest when the result is too large, or OSError."""
    write_json(folder / EXPECTED, result)
    if (folder / EXPECTED).stat().st_size > MAX_EXPECTED_BYTES:
        raise BadRequest(f"the result is larger than {MAX_EXPECTED_BYTES >> 20} MB; record a smaller input")
    text = _toml(options)
    if text:
        (folder / OPTIONS).write_text(text, "utf-8")
    else:
        (folder / OPTIONS).unlink(missing_ok=True)


def read_json(path: Path, most: int) -> Any:
    """A JSON file. Raises ScraperInvalid."""
    try:
        return json.loads(read_bounded(path, most).decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ScraperInvalid(f"{path}: not JSON in UTF-8: {str(error)[:200]}") from None


def write_json(path: Path, value: Any) -> None:
    """Indented, so that version control shows what changed. Raises OSError."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, "utf-8", "backslashreplace")


def _is_case(folder: Path) -> bool:
    return (
        not folder.name.startswith((".", "__"))
        and folder.is_dir()
        and ((folder / CASSETTE).exists() or (folder / INPUT).exists())
    )


def _end(value: Any, path: Path) -> ExitReason:
    if value not in REPLAYABLE:
        raise ScraperInvalid(f"{path}: ends: must be one of {', '.join(sorted(REPLAYABLE))}")
    return ExitReason(value)


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_MASKS or not all(isinstance(each, str) for each in value):
        raise ScraperInvalid(f"{where}: must be a list of at most {MAX_MASKS} strings")
    return tuple(value)


def _toml(options: Options) -> str:
    lines = []
    if options.ends is not ExitReason.SUCCEEDED:
        lines.append(f'ends = "{options.ends.value}"\n')
    for key, names in (("ignore", options.ignore), ("artifacts", options.artifacts)):
        if names:
            lines.append(f"{key} = {json.dumps(list(names), ensure_ascii=False)}\n")
    return "".join(lines)


def _swap(fresh: Path, folder: Path) -> None:
    if not folder.exists():
        fresh.rename(folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
    folder.rename(aside / folder.name)
    fresh.rename(folder)
    shutil.rmtree(aside)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
