"""Makes what is made of something else: `make clients`.

The OpenAPI document gives the types of the TypeScript client; the async Python client gives the sync one; the table of
permissions gives the page what each operation asks for.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from clients.typescript_types import types_of
from scrapeyard.builtin.reading.thread import ThreadExtractor
from scrapeyard.builtin.registry import make_builtins
from scrapeyard.gateway.app import api_document
from scrapeyard.gateway.auth.permissions import asked_for
from scrapeyard.settings import GatewaySettings

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / "src" / "scrapeyard_client"
TYPES = ROOT / "clients" / "typescript" / "src" / "types.ts"
PAGE_GRANTS = ROOT / "web" / "src" / "api" / "grants.ts"
_WORDS = {
    "AsyncClient": "Client",
    "AsyncIterator": "Iterator",
    "AsyncJob": "Job",
    "AsyncJobs": "Jobs",
    "AsyncRuns": "Runs",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "anyio": "time",
    "aread": "read",
    "async_pieces": "plain_pieces",
    "asynccontextmanager": "contextmanager",
}
_HEAD = '"""`Client`. Made of `aio.py` by `make clients`: change that file."""'


_GRANTS = """// Made of the table of permissions by `make clients`. Do not change it by hand.

import type {{ Operations }} from "#client";

/** The permission that each operation asks for. */
export const asks: Record<keyof Operations, string> = {{
{asks}}};
"""


def main() -> None:
    """Write the files, or do what an option says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--document", type=Path, help="write the OpenAPI document to this file, and nothing else")
    parser.add_argument("--covered", type=Path, help="check that a generated client in this folder has every operation")
    asked = parser.parse_args()
    if asked.covered:
        found = {path.stem for path in asked.covered.rglob("api/*/*.py")}
        if missing := sorted(operations() - found):
            sys.exit(f"{asked.covered} lacks {', '.join(missing)}")
        return
    if asked.document:
        asked.document.write_text(json.dumps(document(), indent=1), "utf-8")
        return
    (PYTHON / "sync.py").write_text(sync_client(), "utf-8")
    TYPES.write_text(types_of(document()), "utf-8")
    PAGE_GRANTS.write_text(page_grants(), "utf-8")


def document() -> dict[str, Any]:
    """The OpenAPI document of a server with its default settings."""
    return api_document(GatewaySettings(), [builtin.scraper for builtin in make_builtins(ThreadExtractor()).values()])


def page_grants() -> str:
    """What each operation asks for, for the page, which shows nobody what they may not do."""
    asked = asked_for()
    paths = document()["paths"].items()
    named = {
        each["operationId"]: asked[f"{method.upper()} {path}"]
        for path, methods in paths
        for method, each in methods.items()
    }
    return _GRANTS.format(asks="".join(f'  {name}: "{permission}",\n' for name, permission in named.items()))


def operations() -> set[str]:
    """The ids of all operations."""
    return {one["operationId"] for methods in document()["paths"].values() for one in methods.values()}


def sync_client() -> str:
    """The async client without `async` and `await`."""
    source = (PYTHON / "aio.py").read_text("utf-8").partition("\n")[2]
    plain = re.sub(r"\b(async|await) ", "", source)
    named = re.sub(r"\w+", lambda found: _WORDS.get(found[0], found[0]), plain)
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    plainer = ["check", "--select", "C416,I,UP028", "--fix", "--unsafe-fixes", "--quiet"]
    return _piped([*ruff, "format", "--quiet"], _piped([*ruff, *plainer], f"{_HEAD}\n{named}"))


def _piped(command: list[str], text: str) -> str:
    name = ["--stdin-filename", str(PYTHON / "sync.py"), "-"]
    return subprocess.run([*command, *name], input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    main()
