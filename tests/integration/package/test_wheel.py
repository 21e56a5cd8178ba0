"""The wheel, installed without extras into an environment of its own and used from an empty folder."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.package.installed import Installed, uv
from tests.leaks import PATIENCE
from tests.programs import ROOT, Program, Shop

MOST_MB = 189
"""Without bytecode, which takes a quarter more: 220 MB as `du -m` counts them."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, real_servers: None) -> Iterator[Installed]:
    base = Installed(tmp_path_factory.mktemp("package"))
    yield base
    base.remove()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    shop = Shop(tmp_path_factory.mktemp("shop") / "home")
    yield shop.url
    shop.stop()


@pytest.fixture(scope="module")
def server(base: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    home = tmp_path_factory.mktemp("up") / "home"
    command = [str(base.python.with_name("scrapeyard")), "up", "--port", "0", "--allow-private"]
    program = Program(command, home, {**base.environment(), "SCRAPEYARD_LOG__FORMAT": "json"})
    try:
        url = str(program.wait_for("gateway.listening")["url"])
        with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
            yield client
    finally:
        program.stop()


def test_the_base_is_small(base: Installed) -> None:
    assert base.megabytes < MOST_MB


def test_up_serves_a_page_from_an_empty_folder(server: httpx.Client, shop: str) -> None:
    answer = server.post("/api/scrape", json={"url": shop})
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"]["h1"] == "Things worth keeping"


def test_an_article_without_its_extra_is_refused_at_once(server: httpx.Client, shop: str) -> None:
    given = {"scraper": "builtin/page", "input": {"url": shop, "include": ["article"]}}
    answer = server.post("/api/scrape", json=given)
    assert answer.json()["exit_reason"] == "bad_input", answer.text
    assert "pip install 'scrapeyard[article]'" in answer.text


def test_a_parquet_export_without_its_extra_is_refused_at_once(server: httpx.Client, shop: str) -> None:
    given = {"scraper": "builtin/page", "items": [{"url": shop}], "exports": [{"type": "full", "format": "parquet"}]}
    answer = server.post("/api/jobs", json=given)
    assert answer.status_code == 422
    assert "pip install 'scrapeyard[parquet]'" in answer.text


def test_a_server_that_needs_a_missing_extra_does_not_start(base: Installed, tmp_path: Path) -> None:
    for extra, setting, value in (
        ("redis", "REDIS_URL", "redis://127.0.0.1:1"),
        ("postgres", "DATABASE_URL", "postgresql://someone@127.0.0.1:1/none"),
    ):
        ended = base.cli(tmp_path, "up", "--port", "0", **{setting: value})
        assert ended.returncode != 0
        assert f"pip install 'scrapeyard[{extra}]'" in ended.stderr


def test_a_command_that_needs_a_missing_extra_says_so(base: Installed, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("url\nhttp://127.0.0.1:1/\n")
    for extra, words in (
        ("parquet", ("run", "builtin/page", "--file", "list.csv", "-o", "list.parquet")),
        ("parquet", ("crawl", "http://127.0.0.1:1/", "-o", "site.parquet")),
    ):
        ended = base.cli(tmp_path, *words)
        assert ended.returncode != 0
        assert f"pip install 'scrapeyard[{extra}]'" in ended.stderr


def test_a_scraper_with_requirements_says_what_the_worker_lacks(base: Installed, tmp_path: Path) -> None:
    (tmp_path / "scraper.toml").write_text('id = "a/b"\nversion = "1.0.0"\nrequirements = ["six==1.17.0"]\n')
    (tmp_path / "scraper.py").write_text("import six\n\n\ndef run(ctx):\n    return six.__version__\n")
    ended = base.cli(tmp_path, "run", str(tmp_path))
    assert ended.returncode != 0
    assert "pip install 'scrapeyard[environments]'" in ended.stderr


def test_the_example_package_of_scrapers_is_found_once_installed(base: Installed, shop: str, tmp_path: Path) -> None:
    source = shutil.copytree(ROOT / "examples" / "scrapers" / "package", tmp_path / "source")
    uv("pip", "install", "--no-deps", "--python", str(base.python), str(source))
    ended = base.cli(tmp_path, "run", "package/headline", f"url={shop}", "--allow-private")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["headline"] == "Things worth keeping"


def test_doctor_names_the_missing_extras(base: Installed, tmp_path: Path) -> None:
    found = {each["check"]: each for each in json.loads(base.cli(tmp_path, "doctor", "--json").stdout)}
    assert found["extras"]["state"] == "ok"
    for name in ("article", "environments", "parquet", "postgres", "redis"):
        assert f"{name} (" in found["extras"]["detail"]
