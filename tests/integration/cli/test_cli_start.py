"""Starts that cannot succeed end with one sentence; a start leaves nothing open to other users or machines unasked."""

import shlex
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Ended, Stand, line_with


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("start"))
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


def refused(ended: Ended, *words: str) -> None:
    assert ended.status == 2, ended.err
    lines = [line for line in ended.err.splitlines() if line.startswith("scrapeyard: ")]
    assert len(lines) == 1, ended.err
    assert "Traceback" not in ended.err
    for word in words:
        assert word in lines[0]


def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def test_a_data_directory_that_cannot_be_written(stand: Stand) -> None:
    refused(stand.cli("up", "--port", "0", "--data-dir", "/sys/kernel"), "data_dir", "/sys/kernel")


def test_a_file_that_is_no_database(stand: Stand, tmp_path: Path) -> None:
    (data(tmp_path) / "scrapeyard.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    ended = stand.cli("up", "--port", "0", "--data-dir", str(tmp_path / "data"))
    refused(ended, "not a database", "restore it from a backup")


def test_a_database_of_a_newer_version(stand: Stand, tmp_path: Path) -> None:
    with sqlite3.connect(data(tmp_path) / "scrapeyard.db") as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('9001')")
    connection.close()
    refused(stand.cli("up", "--port", "0", "--data-dir", str(tmp_path / "data")), "schema 9001", "newer version")


def test_a_file_where_a_folder_should_be(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    refused(stand.cli("up", "--port", "0", "--data-dir", str(tmp_path / "data")), "data_dir")


def test_the_data_directory_is_closed_to_others(stand: Stand, tmp_path: Path) -> None:
    """Also one that an earlier version made."""
    folder = data(tmp_path)
    folder.chmod(0o755)
    (folder / "scrapeyard.db").touch(0o644)
    (folder / "blobs").mkdir(0o755)
    with stand.serving("up", "--port", "0", "--data-dir", str(folder), says=b"listens on "):
        assert stat.S_IMODE(folder.stat().st_mode) & 0o007 == 0
        assert stat.S_IMODE((folder / "scrapeyard.db").stat().st_mode) & 0o007 == 0
        assert stat.S_IMODE((folder / "blobs").stat().st_mode) & 0o007 == 0


def test_a_new_data_directory_is_the_users_alone(stand: Stand, tmp_path: Path) -> None:
    with stand.serving("up", "--port", "0", "--data-dir", str(tmp_path / "new"), says=b"listens on "):
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "new" / "scrapeyard.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_a_public_address_needs_a_word(stand: Stand, tmp_path: Path, host: str) -> None:
    ended = stand.cli("up", "--host", host, "--port", "0", "--data-dir", str(tmp_path / "data"))
    refused(ended, "gateway.host", host, "--auth on", "--insecure")


def test_a_public_address_is_told_truly(stand: Stand, tmp_path: Path) -> None:
    words = ("up", "--host", "0.0.0.0", "--insecure", "--port", "0", "--data-dir", str(tmp_path / "data"))
    with stand.started(*words) as process:
        line = line_with(process, b"WARNING: anyone who reaches ")
        assert b"127.0.0.1:" in line
        process.terminate()
        process.communicate()


@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "::1"])
def test_loopback_needs_no_word(stand: Stand, tmp_path: Path, host: str) -> None:
    words = ("up", "--host", host, "--port", "0", "--data-dir", str(tmp_path / "data"))
    with stand.serving(*words, says=b"listens on ") as url:
        assert url.startswith("http://")


def test_a_folder_of_scrapers_that_is_not_there(stand: Stand, tmp_path: Path) -> None:
    for role in ("up", "gateway"):
        ended = stand.cli(role, "--port", "0", "--data-dir", str(tmp_path / "data"), "--scrapers", "missing")
        refused(ended, "--scrapers missing", "no such folder")


def test_a_new_scraper_is_served_by_a_server_that_runs_already(stand: Stand, tmp_path: Path) -> None:
    shutil.rmtree(stand.scrapers)
    with stand.serving("up", "--port", "0", "--data-dir", str(tmp_path / "data"), says=b"listens on ") as url:
        assert stand.cli("new", "shop/first").status == 0
        assert stand.cli("scrapers", "refresh", "--server", url).status == 0
        assert stand.cli("scrapers", "show", "shop/first", "--server", url).json["id"] == "shop/first"


def test_the_printed_hint_works_as_printed(stand: Stand, tmp_path: Path) -> None:
    """But for the shop's port, which may be taken here."""
    words = ("up", "--port", "0", "--data-dir", str(tmp_path / "data"), "--allow-private")
    with stand.started(*words) as process:
        shop_words = hint(line_with(process, b" demo-site"))
        scrape_words = hint(line_with(process, b" scrape http"))
        with stand.serving(*shop_words, "--port", "0", says=b"open at ") as shop:
            ended = stand.cli(*(word.replace("http://127.0.0.1:8800/", shop) for word in scrape_words))
        assert ended.status == 0, ended.err
        assert "Practice Shop" in ended.json["title"]
        process.terminate()
        process.communicate()


def hint(line: bytes) -> list[str]:
    """The words of a printed command, without the program."""
    return shlex.split(line.decode())[1:]
