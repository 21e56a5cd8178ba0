"""Ids by prefix and `last`, and what the shell completes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from scrapeyard.cli.common import listing
from scrapeyard.cli.common.client import Server
from scrapeyard.cli.common.listing import complete_ids, complete_scrapers, whole_id
from scrapeyard.cli.main import app
from scrapeyard.errors import BadRequest

RUNS = [f"run_{number:032x}" for number in (0xABC1 << 112, 0xABC2 << 112, 0xABD3 << 112)]


class Listed(Server):
    """A server with these runs, in pages of one."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__("http://127.0.0.1:1")
        self.ids = ids

    def get(self, path: str, *, cursor: str | None = None, **_: Any) -> Any:
        assert path == "/api/scrape"
        at = int(cursor or 0)
        entry = {"status": "failed", "scraper": "a/b", "created_at": "2026-01-01T00:00:00Z"}
        after = str(at + 1) if at + 1 < len(self.ids) else None
        return {"runs": [{**entry, "id": each} for each in self.ids[at : at + 1]], "next_cursor": after}


def test_the_beginning_of_an_id_is_enough() -> None:
    server = Listed(RUNS)
    found = [whole_id(server, "run", given) for given in ("run_abd", "abd", "run_abc2", "abc1", RUNS[0], "last")]
    assert found == [RUNS[2], RUNS[2], RUNS[1], RUNS[0], RUNS[0], RUNS[0]]


def test_a_beginning_of_several_is_refused_with_the_list() -> None:
    with pytest.raises(BadRequest) as refused:
        whole_id(Listed(RUNS), "run", "abc")
    lines = refused.value.message.splitlines()
    assert [line.split()[0] for line in lines[1:]] == RUNS[:2]


def test_a_list_that_was_not_searched_to_its_end_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_MAX_SEARCHED", 2)
    with pytest.raises(BadRequest, match="write the whole id"):
        whole_id(Listed(RUNS), "run", "abc2")


@pytest.mark.parametrize("given", ["x", "run_x", "../abc", "", "job_abc"])
def test_what_cannot_be_an_id_is_refused_without_a_call(given: str) -> None:
    with pytest.raises(BadRequest, match="run"):
        whole_id(Listed([]), "run", given)


def test_nothing_to_find_is_told() -> None:
    for given in ("last", "abc"):
        with pytest.raises(BadRequest, match="no run"):
            whole_id(Listed([]), "run", given)


@contextmanager
def context(url: str) -> Iterator[typer.Context]:
    root: Any = typer.main.get_command(app)
    with typer.Context(root.commands["workers"]) as found:
        found.params["url"] = url
        yield found


def test_completion_of_a_server_that_is_away_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    with context("http://127.0.0.1:1") as away:
        assert complete_ids("run")(away, "run_") == []
        assert complete_scrapers(away, "") == []
    assert capfd.readouterr() == ("", "")


def test_completion_of_a_server_that_is_slow_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    monkeypatch.setattr(Server, "get", lambda *_, **__: gate.wait())
    monkeypatch.setattr(listing, "_COMPLETION_SECONDS", 0.01)
    try:
        with context("http://127.0.0.1:1") as slow:
            assert complete_ids("job")(slow, "") == []
    finally:
        gate.set()


def test_the_shell_completes_ids_and_scrapers(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"status": "failed", "scraper": "a/b", "created_at": "2026-01-01T00:00:00Z", "id": RUNS[0]}
    answers = {
        "/api/scrape": {"runs": [entry], "next_cursor": None},
        "/api/scrapers": {"scrapers": [{"id": "shop/product", "name": "A product"}]},
    }
    monkeypatch.setattr(Server, "get", lambda _, path, **__: answers[path])
    monkeypatch.setattr(listing, "_COMPLETION_SECONDS", 60)

    def completed(*words: str) -> str:
        given = {"_SCRAPEYARD_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("scrapeyard", *words))}
        given["COMP_CWORD"] = str(len(words))
        return CliRunner().invoke(app, [], env=given, prog_name="scrapeyard").output

    assert RUNS[0] in completed("runs", "show", "run_")
    assert "shop/product" in completed("scrape", "sho")
