"""Which server a command calls."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from scrapeyard.cli.common.client import Server, ServerUnreachable
from scrapeyard.cli.common.server_address import DEFAULT_URL, config_file, named_server
from scrapeyard.cli.main import app
from scrapeyard.errors import BadRequest


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SCRAPEYARD_SERVER", "SCRAPEYARD_URL"):
        monkeypatch.delenv(name, raising=False)


def keep(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The servers that commands called."""
    found: list[str] = []

    def get(self: Server, path: str, **_: object) -> dict[str, object]:
        found.append(self.url)
        return {"workers": [], "runs": [], "next_cursor": None}

    monkeypatch.setattr(Server, "get", get)
    return found


def test_the_first_of_option_environment_file_and_default_is_called(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*words: str) -> None:
        assert CliRunner().invoke(app, words).exit_code == 0

    call("workers")
    keep('server = "http://kept"')
    call("workers")
    monkeypatch.setenv("SCRAPEYARD_URL", "http://old-variable")
    call("workers")
    monkeypatch.setenv("SCRAPEYARD_SERVER", "http://variable")
    call("workers")
    call("workers", "--server", "http://option")
    assert called == [DEFAULT_URL, "http://kept", "http://old-variable", "http://variable", "http://option"]


def test_the_former_name_of_the_option_still_works_and_is_not_listed(called: list[str]) -> None:
    assert CliRunner().invoke(app, ["workers", "--url", "http://a"]).exit_code == 0
    assert CliRunner().invoke(app, ["runs", "list", "--url=http://b"]).exit_code == 0
    assert called == ["http://a", "http://b"]
    assert "--url" not in CliRunner().invoke(app, ["workers", "--help"]).output


def test_a_group_takes_the_server_for_its_commands(called: list[str]) -> None:
    words = (["runs", "--server", "http://a"], ["runs", "--server", "http://a", "list"])
    assert [CliRunner().invoke(app, each).exit_code for each in words] == [0, 0]
    assert called == ["http://a", "http://a"]


@pytest.mark.parametrize("text", ["server =", "server = 3", 'server = "http://a"\nother = 1', "\udcff"])
def test_a_broken_file_is_told_with_the_remedy(text: str) -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadRequest, match="scrapeyard login"):
        named_server()


def test_a_name_that_does_not_exist_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(ServerUnreachable, match=r"wrong\.invalid.*--server"):
        Server("http://wrong.invalid:8000").get("/")
