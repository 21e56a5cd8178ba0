"""Finding the scrapers of a package, which means importing it: in a separate, bounded, short-lived process.

That process runs outside the sandbox: a package installed into the server's environment is trusted, and its code could
run whenever the server starts. The process gets no settings, environment variables or files of the server.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct

from scrapeyard.child_process import DEVNULL, ChildProcess, start_child
from scrapeyard.repository.sources.installed.packages import Package, is_entry

MAX_OUTPUT = 4 * 1024 * 1024
SECONDS = 15.0
_PROGRAM = "scrapeyard_sdk.discover"


class Announced(Struct, frozen=True, kw_only=True):
    """One function that is a scraper, as its package declares it."""

    package: Package
    module: str
    function: str
    validates: bool
    """Whether the module has a validate_result."""
    told: dict[str, Any]
    """The decorator's arguments: a manifest's keys, not checked yet."""


class Broken(Struct, frozen=True, kw_only=True):
    """An entry point that could not be used."""

    package: Package
    entry: str
    problem: str


class Discovered(Struct, frozen=True, kw_only=True):
    """What one package holds."""

    announced: tuple[Announced, ...] = ()
    broken: tuple[Broken, ...] = ()
    ended_well: bool = True
    """False if the process was killed or died; another attempt may succeed."""


async def discover(package: Package, search: tuple[Path, ...], home: Path, seconds: float = SECONDS) -> Discovered:
    """Import the package's announced modules in a process. Never raises for what the package does; OSError if the
    process could not be started."""
    entries = [entry for entry in package.entries if is_entry(entry)]
    output, end = await _run(entries, search, home, seconds)
    answers = _answers(output)
    answers |= {entry: {"error": "not a module's name"} for entry in package.entries if not is_entry(entry)}
    announced: list[Announced] = []
    broken: list[Broken] = []
    for entry in package.entries:
        answer = answers.get(entry, {"error": end or "it gave no answer"})
        if "error" in answer:
            broken.append(Broken(package=package, entry=entry, problem=str(answer["error"])[:500]))
        else:
            announced += [Announced(package=package, **one) for one in answer["found"]]
            if not answer["found"]:
                broken.append(Broken(package=package, entry=entry, problem="no function there has @scraper(…)"))
    return Discovered(announced=tuple(announced), broken=tuple(broken), ended_well=not end)


async def _run(entries: list[str], search: tuple[Path, ...], home: Path, seconds: float) -> tuple[bytes, str]:
    """Its output, and why that is incomplete; empty if it is complete."""
    await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="discover-", dir=home) as folder:
        asked = json.dumps({"search": [str(path) for path in search], "entries": entries})
        process = await start_child(
            (sys.executable, "-I", "-m", _PROGRAM, asked),
            stderr=DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder},
            start_new_session=True,
        )
        try:
            return await _listen(process, seconds)
        finally:
            await process.end()


async def _listen(process: ChildProcess, seconds: float) -> tuple[bytes, str]:
    assert process.stdout is not None  # noqa: S101 - asked for above
    output = b""
    try:
        async with asyncio.timeout(seconds):
            while chunk := await process.stdout.read(65536):
                output += chunk
                if len(output) > MAX_OUTPUT:
                    return output, f"it tells more than {MAX_OUTPUT >> 20} MB of its scrapers"
            status = await process.wait()
    except TimeoutError:
        return output, f"importing it took longer than {seconds:g} s"
    return output, f"the process that imported it ended with {status}" if status else ""


def _answers(output: bytes) -> dict[str, dict[str, Any]]:
    """Answers by entry. Skips lines that are not valid answers; their entry counts as unanswered."""
    answers: dict[str, dict[str, Any]] = {}
    for line in output.splitlines():
        with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError):
            answer = json.loads(line)
            answers[str(answer["entry"])] = answer if "error" in answer else {"found": _found(answer["found"])}
    return answers


def _found(found: Any) -> list[dict[str, Any]]:
    """Check the shape. Raises whatever a wrong shape causes."""
    return [
        {
            "module": _name(one["module"]),
            "function": _name(one["function"]),
            "validates": bool(one["validates"]),
            "told": dict(one["told"]),
        }
        for one in found
    ]


def _name(value: Any) -> str:
    if not isinstance(value, str) or not is_entry(value):
        raise ValueError
    return value
