"""Commands that need no server, as real processes."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import EXAMPLES, PATIENCE, Stand, on_terminal, until_gone

BUILT_IN = (
    *("builtin/actions", "builtin/document", "builtin/echo", "builtin/extract", "builtin/list", "builtin/map"),
    *("builtin/page", "builtin/product", "builtin/replay", "builtin/select"),
)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("cli"))
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


@pytest.fixture(scope="module")
def shop(stand: Stand) -> Iterator[str]:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as url:
        yield url.rstrip("/")


def test_a_folder_runs_with_pairs_and_its_words_are_heard(stand: Stand) -> None:
    ended = stand.cli("run", "scrapers/lab/lab", "name=007", "big=3")
    assert (ended.status, ended.json) == (0, {"name": "007", "big": "xxx"})
    assert ended.err.splitlines() == ["hello\\x1b[31m", "aside", "[warning] noted number=1"]


def test_words_are_heard_while_the_script_still_runs_and_ctrl_c_ends_it(stand: Stand) -> None:
    with stand.started("run", "scrapers/lab/lab", "seconds=250") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"hello\\x1b[31m\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        until_gone(process.pid)


def test_sigterm_ends_a_run_and_leaves_nothing(stand: Stand) -> None:
    with stand.started("run", "scrapers/lab/lab", "seconds=250") as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.terminate()
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 143
        until_gone(process.pid)


def test_an_id_runs_from_a_folder_of_scrapers_and_the_whole_run_is_told(stand: Stand, shop: str) -> None:
    ended = stand.cli(
        "run", "shop/product@1.0.0", f"url={shop}/product/1", "--scrapers", str(EXAMPLES), "--allow-private", "--json"
    )
    assert ended.status == 0, ended.err
    run = ended.json
    assert (run["status"], run["scraper"], run["result"]["title"]) == ("succeeded", "shop/product", "Aurora Lamp")
    assert "links" not in run


def test_a_url_runs_the_built_in_page(stand: Stand, shop: str) -> None:
    ended = stand.cli("run", f"{shop}/", "--allow-private", "--explain")
    assert ended.status == 0
    assert ended.json["status"] == 200
    assert f"GET {shop}/" in ended.err


def test_private_addresses_are_refused_as_on_the_server(stand: Stand, shop: str) -> None:
    ended = stand.cli("run", f"{shop}/")
    assert ended.status == 1
    assert ended.out == ""
    assert "fetch_private_address" in ended.err
    assert ended.err.splitlines()[-1].strip() == "Give --allow-private to let it fetch private and loopback addresses."


def test_a_bad_end_tells_reason_message_and_traceback(stand: Stand) -> None:
    ended = stand.cli("run", "scrapers/lab/lab", "boom=true")
    assert (ended.status, ended.out) == (1, "")
    assert "script_error" in ended.err
    assert 'raise ValueError("boom")' in ended.err
    whole = stand.cli("run", "scrapers/lab/lab", "boom=true", "--json")
    assert (whole.status, whole.json["exit_reason"], whole.json["result"]) == (1, "script_error", None)


def test_a_timeout_shortens_the_run(stand: Stand) -> None:
    ended = stand.cli("run", "scrapers/lab/lab", "seconds=60", "--timeout", "0.3")
    assert ended.status == 1
    assert "timeout" in ended.err


def test_large_results_and_artifacts_come_out(stand: Stand) -> None:
    ended = stand.cli("run", "scrapers/lab/lab", "big=200000", "--artifacts", "kept", "-o", "big.json")
    assert (ended.status, ended.out) == (0, "")
    assert json.loads((stand.folder / "big.json").read_text())["big"] == "x" * 200_000
    assert (stand.folder / "kept" / "note.txt").read_text() == "kept"


def test_records_become_csv_and_jsonl(stand: Stand, shop: str) -> None:
    words = ("run", str(EXAMPLES / "shop" / "category"), f"url={shop}/category/toys", "--allow-private", "-o")
    assert stand.cli(*words, "toys.csv").status == 0
    assert stand.cli(*words, "toys.jsonl").status == 0
    lines = (stand.folder / "toys.csv").read_text().splitlines()
    records = [json.loads(line) for line in (stand.folder / "toys.jsonl").read_text().splitlines()]
    assert lines[0] == "title,price,url,page"
    assert len(lines) == len(records) + 1
    assert sorted(path.name for path in stand.folder.glob(".toys*")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "scrapers/lab/lab", "seconds=soon"), "/seconds"),
        (("run", "scrapers/lab/lab", "--input", "[1]"), "an object is needed"),
        (("run", "scrapers/lab/lab", "--input", "{"), "not JSON"),
        (("run", "scrapers/lab/lab", "--input", "@none.json"), "cannot read none.json"),
        (("run", "scrapers/lab/lab", "words"), "write key=value"),
        (("run", "scrapers/lab/lab", "-o", "x.xml"), ".json, .jsonl or .csv"),
        (("run", "scrapers/lab/lab", "-o", "none/x.json"), "no such folder"),
        (("run", "lab/none", "--scrapers", "scrapers"), "no scraper lab/none"),
        (("run", "lab/lap", "--scrapers", "scrapers"), "did you mean lab/lab"),
        (("run", "No Such Thing"), "not a scraper's name"),
        (("run",), "Missing argument"),
        (("new", "Shop"), "not a scraper's id"),
        (("new", "a/b", "--template", "none"), "no template"),
        (("scrapers", "list", "--scrapers", "none"), "does not exist"),
        (("runs", "show", "x"), "not a run's id"),
        (("scrape", "a/b", "--server", "ftp://x"), "not a server's address"),
    ],
)
def test_wrong_usage_says_which_part_and_exits_2(stand: Stand, words: tuple[str, ...], said: str) -> None:
    ended = stand.cli(*words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_input_comes_from_a_file_or_stdin_and_pairs_add_to_it(stand: Stand) -> None:
    (stand.folder / "input.json").write_text('{"name": "file", "big": 1}')
    assert stand.cli("run", "scrapers/lab/lab", "--input", "@input.json", "big=2").json == {"name": "file", "big": "xx"}
    assert stand.cli("run", "scrapers/lab/lab", "-i", "@-", stdin='{"name": "in"}').json["name"] == "in"


def test_a_broken_scraper_says_what_is_wrong(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "scraper.toml").write_text('id = "a/b"\nversion = "1"\n')
    ended = stand.cli("run", str(tmp_path))
    assert ended.status == 1
    assert "version" in ended.err
    (tmp_path / "scraper.toml").write_text('entry = "run"\n[input]\nschema = "input.json"\n')
    (tmp_path / "input.json").write_text("{}")
    for words in (["run", str(tmp_path)], ["run", str(tmp_path), "--file", "-"], ["validate", str(tmp_path)]):
        ended = stand.cli(*words, stdin="")
        assert ended.status == 1
        for fault in ("id: missing", "version: missing", "entry: must be"):
            assert fault in ended.err + ended.out
        assert "input" not in ended.err + ended.out


def test_a_new_scraper_is_listed_and_runs(stand: Stand, shop: str, tmp_path: Path) -> None:
    made = stand.cli("new", "shop/page", "--folder", str(tmp_path / "shop" / "page"))
    assert made.status == 0
    names = [Path(line).name for line in made.out.splitlines()]
    assert (names[0], names[-1]) == ("scraper.py", "scraper.toml")
    assert f"--scrapers {tmp_path}" in made.err
    listed = stand.cli("scrapers", "list", "--scrapers", str(tmp_path))
    assert [row[0] for row in listed.rows] == [
        *BUILT_IN,
        "shop/page",
    ]
    assert stand.cli("run", str(tmp_path / "shop" / "page"), f"url={shop}/", "--allow-private").status == 0
    assert stand.cli("new", "shop/page", "--folder", str(tmp_path / "shop" / "page")).status == 2


def test_a_folder_is_listed_without_asking_any_repository(stand: Stand, tmp_path: Path) -> None:
    stand.cli("new", "lab/one", "--folder", str(tmp_path / "one"))
    away = {"SCRIPT_REPOSITORY_TYPE": "http", "SCRIPT_REPOSITORY_URL": "http://127.0.0.1:9/"}
    listed = stand.cli("scrapers", "list", "--scrapers", str(tmp_path), SCRAPEYARD_DATA_DIR=str(tmp_path / "d"), **away)
    assert [row[0] for row in listed.rows] == [
        *BUILT_IN,
        "lab/one",
    ], listed.err
    assert not (tmp_path / "d").exists()


def test_a_folder_with_a_broken_scraper_lists_it_and_exits_1(stand: Stand, tmp_path: Path) -> None:
    (tmp_path / "scraper.toml").write_text("id = 1")
    ended = stand.cli("scrapers", "list", "--scrapers", str(tmp_path), "--json")
    assert ended.status == 1
    assert sorted(each["valid"] for each in ended.json) == [False, *[True] * len(BUILT_IN)]


def test_config_shows_values_and_where_they_came_from(stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / "conf.toml"
    file.write_text("[worker]\nslots = 3\n")
    settings = {
        "SCRAPEYARD_CONFIG": str(file),
        "DATABASE_URL": "postgresql://me:hush@db/x",
        "SCRAPEYARD_GATEWAY__PORT": "1",
    }
    ended = stand.cli("config", **settings)
    rows = {row[0]: row[1:] for row in ended.rows}
    assert rows["worker.slots"] == ["3", "conf.toml"]
    assert rows["gateway.port"] == ["1", "environment SCRAPEYARD_GATEWAY__PORT"]
    assert rows["database_url"] == ["postgresql://me:***@db/x", "environment DATABASE_URL"]
    assert rows["http.profile"] == ["chrome", "default"]
    assert "hush" not in stand.cli("config", "--json", **settings).out


def test_config_describes_every_key(stand: Stand) -> None:
    described = {each["key"]: each for each in stand.cli("config", "--describe", "--json").json}
    assert described["worker.slots"]["env"] == "SCRAPEYARD_WORKER__SLOTS"
    assert all(each["meaning"] for each in described.values())


def test_settings_that_are_wrong_exit_2(stand: Stand) -> None:
    for words in (("config",), ("run", "scrapers/lab/lab"), ("up",)):
        ended = stand.cli(*words, SCRAPEYARD_WORKER__SLOT="1")
        assert ended.status == 2
        assert "worker.slot: no such setting" in ended.err


def test_doctor_runs_a_child_and_finds_nothing_wrong(stand: Stand) -> None:
    ended = stand.cli("doctor", "--json")
    found = {each["check"]: each for each in ended.json}
    assert ended.status == 0, ended.out
    assert {"python", "kernel", "open files", "data dir", "child", "store", "queue", "blobs"} <= set(found)
    assert "cold" in found["child"]["detail"]
    assert not (stand.folder / "scrapeyard-data").exists()


def test_doctor_fails_where_something_is_away_and_hides_passwords(stand: Stand) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        ended = stand.cli(
            "doctor",
            REDIS_URL=f"redis://:secret@127.0.0.1:{port}/0",
            DATABASE_URL=f"postgresql://me:secret@127.0.0.1:{port}/x",
            SCRAPEYARD_URL=f"http://127.0.0.1:{port}",
        )
    states = {line.split()[1]: line.split()[0] for line in ended.out.splitlines() if not line.startswith(" ")}
    assert ended.status == 1
    assert (states["queue"], states["store"], states["server"]) == ("fail", "fail", "warn")
    assert "secret" not in ended.out + ended.err


def test_doctor_finds_real_servers_well_and_migrates_nothing(
    stand: Stand, redis_url: str, fresh_postgres_url: str
) -> None:
    ended = stand.cli("doctor", "--json", REDIS_URL=redis_url, DATABASE_URL=fresh_postgres_url)
    found = {each["check"]: each for each in ended.json}
    assert ended.status == 0, ended.out
    assert " ms" in found["queue"]["detail"]
    assert "schema none" in found["store"]["detail"]


def test_doctor_tells_of_wrong_settings_and_a_data_dir_that_cannot_be(stand: Stand) -> None:
    (stand.folder / "file").write_text("")
    assert stand.cli("doctor", SCRAPEYARD_X="1").status == 1
    ended = stand.cli("doctor", "--json", SCRAPEYARD_DATA_DIR=str(stand.folder / "file" / "data"))
    assert ended.status == 1
    assert [each["check"] for each in ended.json if each["state"] == "fail"] == ["data dir"]


def test_a_terminal_gets_columns_and_indented_json(stand: Stand) -> None:
    status, shown = on_terminal(stand, "scrapers", "list", "--scrapers", "scrapers")
    assert (status, "ID " in shown, "\t" in shown) == (0, True, False), shown
    status, shown = on_terminal(stand, "run", "scrapers/lab/lab", "name=x")
    assert (status, '\n  "name": "x",' in shown) == (0, True), shown


def test_a_reader_that_goes_away_is_no_error_worth_a_word(stand: Stand) -> None:
    with stand.started("run", "scrapers/lab/lab", "big=1000000") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
        process.wait(PATIENCE)
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err
