"""One life of a yard on PostgreSQL and Redis: what it leaves shows no secret and no personal data in clear, and a
backup of it goes on elsewhere."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.cli_stand import Stand, line_with, until_gone
from tests.leaks import PATIENCE, until
from tests.services.postgres import PostgresServer, _installed
from tests.services.valkey import ValkeyServer

MAIL = "quagga.5531@zebra-9417.example"
SCRIPT = """
async def run(ctx, number: int = 0, big: int = 0):
    mail = "quagga.5531" + "@" + "zebra-9417.example"
    print("told", ctx.config["key"], mail)
    ctx.log("noted", key=ctx.config["key"], mail=mail)
    await ctx.artifact("page.html", "<p>" + mail + " " + ctx.config["key"] + "</p>", "text/html")
    await ctx.artifact("page.bin", (mail + ctx.config["key"]).encode(), "application/octet-stream")
    return {"number": number, "mail": mail, "key": ctx.config["key"], "big": "x" * big}
"""
SECRET, HOOK, PROXY = "gnu-secret-3107-xyz", "hook-secret-8841-long-enough", "proxy-word-5520"
DATABASE, REDIS = "pgword-6613", "redisword-2291"


class Yard:
    """A running server."""

    def __init__(self, stand: Stand, process: Any, url: str) -> None:
        self.stand = stand
        self.process = process
        self.http = httpx.Client(base_url=url, timeout=PATIENCE)

    def call(self, method: str, path: str, **body: Any) -> Any:
        answer = self.http.request(method, path, json=body or None)
        assert answer.is_success, answer.text
        return answer.json()


@contextmanager
def running(stand: Stand, data: str, settings: dict[str, str]) -> Iterator[tuple[Yard, list[bytes]]]:
    """A server until the block ends; then the list has its log."""
    told: list[bytes] = []
    words = ("up", "--port", "0", "--data-dir", data, "--scrapers", "scrapers")
    with stand.started(*words, **settings) as process:
        first = line_with(process, b"listens on ")
        yard = Yard(stand, process, first.partition(b"listens on ")[2].split()[0].decode())
        try:
            yield yard, told
        finally:
            yard.http.close()
            process.send_signal(signal.SIGTERM)
            told += [first, *process.communicate(timeout=PATIENCE)]
        until_gone(process.pid, words)


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    stand = Stand(tmp_path)
    folder = stand.write("lab/people", SCRIPT)
    with (folder / "scraper.toml").open("a") as manifest:
        manifest.write('[config]\nkey = { secret = "shop" }\n')
    return stand


def settings_of(server: PostgresServer, name: str, redis: str) -> dict[str, str]:
    return {
        "DATABASE_URL": server.database_url(name).replace("postgres@", f"postgres:{DATABASE}@"),
        "REDIS_URL": redis,
        "SCRAPEYARD_BLOBS__ENCRYPT": "true",
        "SCRAPEYARD_MASKING__KINDS": '["email"]',
    }


def dumped(server: PostgresServer, name: str) -> bytes:
    program = _installed() / "bin" / "pg_dump"
    return subprocess.run(
        [program, server.database_url(name)], capture_output=True, check=True, timeout=PATIENCE
    ).stdout


def restored(server: PostgresServer, dump: bytes) -> str:
    name = server.create_database()
    program = _installed() / "bin" / "psql"
    words = [program, "-q", "-v", "ON_ERROR_STOP=1", server.database_url(name)]
    subprocess.run(words, input=dump, capture_output=True, check=True, timeout=PATIENCE)
    return name


def one_run(yard: Yard, **given: Any) -> Any:
    hook = {"url": "https://203.0.113.7/hook", "secret": HOOK}
    return yard.call("POST", "/api/scrape", scraper="lab/people", input=given, webhook=hook, wait=PATIENCE)


def a_paused_job(yard: Yard) -> str:
    items = [{"number": number} for number in range(4)]
    job = yard.call("POST", "/api/jobs", scraper="lab/people", items=items, policy={"rate": 0.01})
    place = f"/api/jobs/{job['id']}"
    until(lambda: yard.call("GET", place)["counts"]["success"] >= 1, "the first item")
    assert yard.call("POST", f"{place}/pause")["status"] == "paused"
    return place


def test_nothing_in_clear_and_a_backup_goes_on(stand: Stand, postgres_server: PostgresServer, tmp_path: Path) -> None:
    with ValkeyServer(password=REDIS) as redis:
        name = postgres_server.create_database()
        settings = settings_of(postgres_server, name, redis.url)
        with running(stand, "data", settings) as (yard, told):
            server = str(yard.http.base_url)
            assert stand.cli("secrets", "set", "lab/people", "shop", "--server", server, stdin=SECRET).status == 0
            proxy = f"http://user:{PROXY}@proxy.example:8080"
            yard.call("PUT", "/api/proxies/home", urls=[proxy])
            run = one_run(yard, big=100_000)
            assert (run["result"]["mail"], run["result"]["key"]) == ("[email]", "***")
            place = a_paused_job(yard)
            dump = dumped(postgres_server, name)
            shown = {
                "dump": dump,
                "redis": b"".join(redis.command("DUMP", key.decode()) for key in redis_keys(redis)),
                "metrics": yard.http.get("/metrics").content,
                "config": "".join(vars(stand.cli("config", **settings))[stream] for stream in ("out", "err")).encode(),
                "ps": subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout,
                "blobs": b"".join(
                    path.read_bytes() for path in (tmp_path / "data" / "blobs").rglob("*") if path.is_file()
                ),
            }
        shown["logs"] = b"".join(told)
        for where, data in shown.items():
            assert len(data) > 100 or where == "redis"
            for word in (MAIL, SECRET, HOOK, PROXY, DATABASE, REDIS):
                assert word.encode() not in data, f"{word} stands in {where}"
                assert word.encode().hex().encode() not in data, f"{word} stands in {where}, as hex"
        goes_on_elsewhere(stand, postgres_server, dump, redis, run, place)


def redis_keys(server: ValkeyServer) -> list[bytes]:
    return [key for key in server.command("KEYS", "*").split() if not key.startswith((b"*", b"$"))]


def goes_on_elsewhere(
    stand: Stand, server: PostgresServer, dump: bytes, redis: ValkeyServer, run: Any, place: str
) -> None:
    """The dump in another database, copies of blobs and master key in another folder, and an empty Redis."""
    elsewhere = stand.folder / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    for name in ("blobs", "master.key"):
        kept = stand.folder / "data" / name
        (shutil.copytree if kept.is_dir() else shutil.copy2)(kept, elsewhere / name)
    os.rename(stand.folder / "data", stand.folder / "lost")
    redis.command("FLUSHALL")
    with running(stand, "elsewhere", settings_of(server, restored(server, dump), redis.url)) as (yard, _):
        assert yard.call("GET", f"/api/scrape/{run['id']}")["result"] == run["result"]
        page = yard.http.get(f"/api/scrape/{run['id']}/artifacts/page.html")
        assert page.text.startswith("<p>[email]")
        assert yard.call("GET", place)["status"] == "paused"
        yard.call("PATCH", place, policy={"rate": 100})
        yard.call("POST", f"{place}/resume")
        until(lambda: yard.call("GET", place)["status"] == "completed", "the job ends")
        assert yard.call("GET", place)["counts"]["success"] == 4
        assert one_run(yard)["result"]["key"] == "***"
