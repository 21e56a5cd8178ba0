"""A scraper of an installed package, from the outside: in an interpreter of its own, over HTTP and by `run`."""

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.cli_stand import PATIENCE, group_lives
from tests.leaks import killed_after
from tests.services.packages import MODULE, install

PROGRAM = "from scrapeyard.cli.main import main; main()"
SECRETIVE = """
from scrapeyard_sdk import Context, scraper


@scraper("parcel/secretive", version="0.3.0", config={"login": {"key": {"secret": "api_key"}}})
async def secretive(ctx: Context) -> dict:
    key = ctx.config["login"]["key"]
    print("the key is", key)
    ctx.log("logging in", key=key)
    return {"length": len(key)}
"""
KEY = "k3y-of-the-parcel"
ECHO = MODULE.replace('"wall_seconds": 5', '"wall_seconds": 120')
"""A busy machine may hold a run up for seconds."""


class Interpreter:
    """A virtual environment with Scrapeyard in it, and packages of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder / "venv")
        (self.site,) = (folder / "venv").glob("lib/python*/site-packages")
        paths = [path for path in sys.path if Path(path).is_dir() and Path(path).name in ("site-packages", "src")]
        (self.site / "scrapeyard-of-the-tests.pth").write_text("\n".join(paths) + "\n")
        (folder / "tmp").mkdir()

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command. What is left of it when the block ends is killed."""
        python = str(self.folder / "venv" / "bin" / "python")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCRAPEYARD_", "PYTHON"))}
        secrets = {"SCRAPEYARD_REPOSITORY__SECRETS_FILE": str(self.folder / "secrets.toml")}
        process = subprocess.Popen(
            [python, "-I", "-c", PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={**kept, **secrets, "TMPDIR": str(self.folder / "tmp")},
            start_new_session=True,
        )
        with killed_after(process):
            yield process


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    made = Interpreter(tmp_path_factory.mktemp("interpreter"))
    secrets = made.folder / "secrets.toml"
    secrets.write_text(f'["parcel/*"]\napi_key = "{KEY}"\n')
    secrets.chmod(0o600)
    install(made.site, "parcel", {"echoes": ECHO, "m": SECRETIVE}, {"echoes": "parcel.echoes", "m": "parcel.m"})
    return made


@pytest.fixture(scope="module")
def server(interpreter: Interpreter) -> Iterator[httpx.Client]:
    with interpreter.started("up", "--port", "0") as process:
        assert process.stderr is not None
        heard: list[bytes] = []
        try:
            for line in process.stderr:
                heard.append(line)
                if line.startswith(b"{") and (address := json.loads(line).get("url")):
                    break
            else:
                raise AssertionError(b"".join(heard).decode())
            with httpx.Client(base_url=address, trust_env=False, timeout=PATIENCE) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)
        assert not group_lives(process.pid)


def test_it_is_listed_and_answers_like_any_other(server: httpx.Client) -> None:
    listed = {each["id"]: each for each in server.get("/api/scrapers").json()["scrapers"]}
    assert listed["parcel/echo"]["valid"], listed["parcel/echo"]
    answer = server.post(
        "/api/scrape", json={"scraper": "parcel/echo", "input": {"text": "ab", "times": 2}, "wait": PATIENCE}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"text": "abab", "greeting": "hello é \x7f"}
    assert answer.json()["version"] == "1.0.0"
    refused = server.post("/api/scrape", json={"scraper": "parcel/echo", "input": {"text": 3}, "wait": PATIENCE})
    assert refused.status_code == 422, refused.text


def test_its_secret_reaches_it_and_nothing_else(server: httpx.Client) -> None:
    answer = server.post("/api/scrape", json={"scraper": "parcel/secretive", "wait": PATIENCE})
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == {"length": len(KEY)}
    links = answer.json()["links"]
    seen = [answer.text, *(server.get(links[name]).text for name in ("self", "logs", "explain"))]
    seen.append(server.get("/api/scrapers/parcel/secretive").text)
    assert not [text for text in seen if KEY in text]
    assert "the key is ***" in server.get(links["logs"]).text


def test_an_upgrade_is_live_without_a_restart(server: httpx.Client, interpreter: Interpreter) -> None:
    older = ECHO.replace("parcel/", "crate/")
    newer = older.replace('"1.0.0"', '"1.1.0"').replace("text * times", "text.upper()")
    for version, module, wanted in (("1.0.0", older, "ab"), ("1.1.0", newer, "AB")):
        install(interpreter.site, "crate", {"m": module}, {"m": "crate.m"}, version)
        assert server.post("/api/scrapers/refresh").status_code == 200
        answer = server.post("/api/scrape", json={"scraper": "crate/echo", "input": {"text": "ab"}, "wait": PATIENCE})
        assert answer.json()["result"]["text"] == wanted


def test_run_finds_it_without_a_server(interpreter: Interpreter) -> None:
    with interpreter.started("run", "parcel/echo", "text=x") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err.decode()
    assert json.loads(out)["greeting"].startswith("hello")
