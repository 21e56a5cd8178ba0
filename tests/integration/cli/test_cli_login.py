"""`login` keeps a server for later commands, `logout` forgets it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Stand


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    return Stand(tmp_path_factory.mktemp("login"))


def test_a_server_is_kept_until_logout(stand: Stand, tmp_path: Path) -> None:
    with stand.serving("up", "--port", "0", "--data-dir", str(tmp_path / "data"), says=b"listens on ") as url:
        kept = stand.cli("login", url)
        assert (kept.status, kept.out) == (0, f"{url}\n"), kept.err
        assert stand.cli("workers", "--json").status == 0
        shown = stand.cli("login", "--show", "--json").json
        assert shown == {"server": url, "source": shown["file"], "file": shown["file"]}
        assert stand.cli("logout").status == 0
        assert stand.cli("login", "--show").out == "http://127.0.0.1:8000\n"


def test_a_server_that_does_not_answer_is_not_kept(stand: Stand) -> None:
    ended = stand.cli("login", "http://127.0.0.1:1")
    assert ended.status == 3
    assert ended.err.count("\n") == 1
    assert "scrapeyard up" in ended.err
    assert stand.cli("login", "--show").out == "http://127.0.0.1:8000\n"
