"""Makes a case of one real run."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapeyard.authoring.cases import FOLDER, NAME, REPLAYABLE, Options, read_options, write_case
from scrapeyard.authoring.cassette import Page
from scrapeyard.errors import BadRequest
from scrapeyard.model import ExitReason, Outcome

GOOD = frozenset({ExitReason.SUCCEEDED, ExitReason.SKIPPED})
"""Ends that are recorded without a word."""


def case_folder(scraper: Path, name: str | None, given: dict[str, Any], *, force: bool) -> Path:
    """Where a case goes; without a name, after the input's URL, the first that is free. Raises BadRequest."""
    tests = scraper / FOLDER
    if name is None:
        return _free(tests, _suggested(given))
    if NAME.fullmatch(name) is None:
        raise BadRequest(
            f'{name[:100]!r} is not a name for a case: lower-case letters, digits, ".", "_", "-", at most 64'
        )
    if (tests / name).exists() and not force:
        raise BadRequest(f"{tests / name} is already there; --force records it again")
    return tests / name


def check_end(outcome: Outcome, ends: str | None) -> None:
    """Raises BadRequest unless the run ended well, or as `ends` says that it should."""
    reason = outcome.exit_reason
    wanted = reason in GOOD if ends is None else reason.value == ends
    if wanted and reason in REPLAYABLE:
        return
    message = f"the run ended as {reason}, and nothing was recorded"
    if reason in REPLAYABLE:
        raise BadRequest(f"{message}; --ends {reason} records it so")
    raise BadRequest(f"{message}; such an end cannot be replayed")


def keep_case(folder: Path, given: dict[str, Any], outcome: Outcome, result: bytes, pages: tuple[Page, ...]) -> None:
    """Write the case; what an earlier recording ignores stays ignored. Raises BadRequest or ScraperInvalid."""
    before = read_options(folder)
    names = tuple(sorted(artifact.name for artifact in outcome.artifacts))
    options = Options(ends=outcome.exit_reason, ignore=before.ignore, artifacts=names)
    write_case(folder, given, json.loads(result), options, pages)


def _suggested(given: dict[str, Any]) -> str:
    url = given.get("url")
    if not isinstance(url, str):
        return "case"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "case"
    words = re.sub(r"[^a-z0-9]+", "-", f"{parts.path} {parts.query}".lower()).strip("-")
    return words[:50].strip("-") or "index"


def _free(tests: Path, name: str) -> Path:
    number = 1
    while (tests / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return tests / (name if number == 1 else f"{name}-{number}")
