"""What commands load: every module that a command does not need makes it start later."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.integration.cli_stand import Ended, Stand

SERVER = ("fastapi", "starlette", "uvicorn", "redis", "alembic", "opentelemetry", "asyncpg", "boto3")
"""What only a server needs."""
HEAVY = (*SERVER, "sqlalchemy", "pydantic", "wreq", "rich", "scrapeyard.settings")
"""What a command that only calls a server, or prints its help, does without."""


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Stand:
    return Stand(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def shop(stand: Stand) -> Iterator[str]:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as url:
        yield url.rstrip("/")


def imported(ended: Ended) -> set[str]:
    """The modules that a command loaded, of those that Python told of on stderr."""
    return {line.rpartition("|")[2].strip() for line in ended.err.splitlines() if line.startswith("import time:")}


def loaded(stand: Stand, *words: str, status: int = 0) -> set[str]:
    ended = stand.cli(*words, PYTHONPROFILEIMPORTTIME="1")
    assert ended.status == status, ended.err
    return imported(ended)


def test_a_page_needs_no_server_and_no_sandbox(stand: Stand, shop: str) -> None:
    ended = stand.cli("run", f"{shop}/product/1", "--allow-private", PYTHONPROFILEIMPORTTIME="1")
    assert ended.json["title"]
    assert imported(ended).isdisjoint((*SERVER, "sqlalchemy", "rich", "scrapeyard.results.exports.builder"))
    assert len(imported(ended)) < 770


LIGHT_JOB = (*SERVER, "sqlalchemy.dialects.postgresql", "rich", "scrapeyard.wiring.duties", "scrapeyard.gateway.app")
"""What a job without a server does without."""


def test_a_list_of_pages_loads_nothing_of_a_server(stand: Stand, shop: str) -> None:
    (stand.folder / "pages.txt").write_text(f"{shop}/product/1\n{shop}/product/2\n")
    words = ("run", "builtin/page", "--file", "pages.txt", "-o", "pages.csv", "--allow-private")
    modules = loaded(stand, *words)
    assert modules.isdisjoint(LIGHT_JOB)
    assert len(modules) < 1175


def test_a_crawl_loads_nothing_of_a_server(stand: Stand, shop: str) -> None:
    modules = loaded(stand, "crawl", shop, "--limit", "3", "-o", "site.jsonl", "--allow-private")
    assert modules.isdisjoint(LIGHT_JOB)
    assert len(modules) < 1200


def test_a_command_that_calls_a_server_loads_no_engine(stand: Stand) -> None:
    started = loaded(stand, "scrape", "lab/lab", "--server", "http://127.0.0.1:1", status=3)
    assert started.isdisjoint((*HEAVY, "asyncio"))


def test_help_and_version_import_nothing_of_the_server(stand: Stand) -> None:
    ended = stand.cli("--help", PYTHONPROFILEIMPORTTIME="1")
    assert ended.status == 0
    assert "Commands:" in ended.out
    assert imported(ended).isdisjoint((*HEAVY, "msgspec", "urllib.request", "tomllib"))
    assert len(imported(ended)) < 230
    assert stand.cli("--version").out.strip() == "0.1.0"


def test_a_parser_process_loads_parsers_alone() -> None:
    program = "import sys, scrapeyard.builtin.reading.serving\nprint(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()).isdisjoint((*HEAVY, "asyncio", "scrapeyard.builtin.registry"))
