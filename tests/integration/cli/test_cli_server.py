"""Commands that call a server: a real `scrapeyard up` and real processes."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import PATIENCE, Ended, Stand, until_gone
from tests.leaks import until

RUN_ID = re.compile(r"run_[0-9a-f]{32}")


class Client:
    """Runs commands against the server."""

    def __init__(self, stand: Stand, url: str) -> None:
        self.stand = stand
        self.url = url

    def __call__(self, *words: str) -> Ended:
        return self.stand.cli(*words, SCRAPEYARD_URL=self.url)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    stand = Stand(tmp_path_factory.mktemp("cli"))
    stand.write("lab/broken", "def run(:\n")
    with stand.serving("up", "--port", "0", "--data-dir", "data", "--scrapers", "scrapers", says=b"listens on ") as url:
        yield Client(stand, url)
    assert list(stand.temporary.iterdir()) == [], "temporary files were left"


@pytest.fixture(scope="module")
def done(yard: Client) -> str:
    """The id of a run that ended well."""
    return str(yard("scrape", "lab/lab", "name=done", "--json").json["id"])


def test_scrape_prints_the_result(yard: Client) -> None:
    ended = yard("scrape", "lab/lab", "name=12")
    assert (ended.status, ended.json, ended.err) == (0, {"name": "12", "big": ""}, "")


def test_scrape_takes_a_policy(yard: Client) -> None:
    ended = yard("scrape", "lab/lab", "--policy", '{"retries": 4}', "--json")
    assert ended.status == 0, ended.err
    assert yard("runs", "explain", ended.json["id"], "--json").json["max_attempts"] == 5


def test_scrape_writes_files_large_ones_too(yard: Client) -> None:
    ended = yard("scrape", "lab/lab", "--input", '{"big": 200000}', "-o", "big.json")
    assert (ended.status, ended.out) == (0, "")
    assert len(json.loads((yard.stand.folder / "big.json").read_text())["big"]) == 200_000


def test_a_bad_end_exits_1_with_its_traceback(yard: Client) -> None:
    ended = yard("scrape", "lab/lab", "boom=true")
    assert (ended.status, ended.out) == (1, "")
    assert "script_error" in ended.err
    assert 'raise ValueError("boom")' in ended.err
    assert yard("scrape", "lab/lab", "boom=true", "--json").json["exit_reason"] == "script_error"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("scrape", "lab/lab", "seconds=soon"), "/input/seconds"),
        (("scrape", "lab/lab", "--policy", '{"robot": "obey"}'), "/policy/robot"),
        (("scrape", "lab/lab", "--policy", "[]"), "--policy: an object is needed"),
        (("scrape", "lab/none"), "no scraper lab/none"),
        (("scrape", "lab/lap"), "did you mean lab/lab?"),
        (("scrape", "shop.example/page"), "write https://shop.example/page"),
        (("scrape", "shop.example/page", "x=1"), "write https://shop.example/page"),
        (("scrape", "lab/lab@9.9.9"), "no version 9.9.9"),
        (("scrape", "lab/broken"), "scraper.py"),
        (("runs", "show", "run_" + "0" * 32), "no run"),
        (("runs", "list", "--status", "odd"), "status"),
        (("scrapers", "show", "lab/none"), "no scraper"),
    ],
)
def test_problems_become_clear_messages(yard: Client, words: tuple[str, ...], said: str) -> None:
    ended = yard(*words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert "{" not in ended.err


def test_a_wait_that_is_over_leaves_the_run_going(yard: Client) -> None:
    ended = yard("scrape", "lab/lab", "seconds=250", "--wait", "0.2")
    found = RUN_ID.search(ended.err)
    assert (ended.status, ended.out) == (1, "")
    assert found is not None
    assert yard("runs", "cancel", found[0]).status == 0


def test_a_run_in_the_background_is_followed_to_its_end(yard: Client) -> None:
    run_id = yard("scrape", "--async", "lab/lab", "seconds=0.5", "name=later").out.strip()
    followed = yard("runs", "logs", "--follow", run_id)
    assert followed.status == 0
    assert "succeeded" in followed.err
    assert yard("runs", "show", run_id, "--result").json["name"] == "later"
    assert yard("runs", "logs", run_id).out.splitlines() == ["hello\\x1b[31m", "aside", "[warning] noted number=1"]


def test_the_same_key_runs_once(yard: Client) -> None:
    words = ("scrape", "--async", "lab/lab", "--idempotency-key", "once")
    assert yard(*words).out == yard(*words).out


def test_cancel_tells_and_ctrl_c_cancels(yard: Client, done: str) -> None:
    assert "had ended already: succeeded" in yard("runs", "cancel", done).out
    with yard.stand.started("scrape", "lab/lab", "seconds=251", SCRAPEYARD_URL=yard.url) as process:
        running = _wait_for(yard, '"seconds":251')
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    assert yard("runs", "logs", "--follow", running).err.startswith("scrapeyard: cancelled")


def test_an_id_may_be_short_or_last(yard: Client, done: str) -> None:
    assert json.loads(yard("runs", "show", done[:-8]).out)["id"] == done
    newest = yard("scrape", "lab/lab", "--async").out.strip()
    assert yard("runs", "show", "last").json["id"] == newest
    several = yard("runs", "show", "run_")
    assert several.status == 2
    assert newest in several.err


def test_lists_filter_and_count(yard: Client, done: str) -> None:
    listed = yard("runs", "list", "--status", "succeeded", "--scraper", "lab/lab", "--limit", "1")
    assert [row[1:3] for row in listed.rows] == [["succeeded", "lab/lab@1.0.0"]]
    row = next(row for row in yard("runs").rows if row[0] == done)
    assert row[4].endswith(" s") or row[4].endswith(" ms")
    assert row[5] == "name=done"
    assert done in {run["id"] for run in yard("runs", "list", "--limit", "300", "--json").json}


def test_explain_and_artifacts(yard: Client, done: str) -> None:
    assert "child_start" in yard("runs", "explain", done).out
    assert yard("runs", "explain", done, "--json").json["id"] == done
    assert yard("runs", "artifacts", done).rows == [["note.txt", "text/plain", "4 B"]]
    assert yard("runs", "artifacts", done, "note.txt").out == "kept"
    assert yard("runs", "artifacts", done, "note.txt", "-o", "note").status == 0
    assert (yard.stand.folder / "note").read_text() == "kept"
    assert yard("runs", "artifacts", done, "none.txt").status == 2


def test_scrapers_workers_and_health(yard: Client) -> None:
    rows = {row[0]: row for row in yard("scrapers").rows}
    names = ("actions", "document", "echo", "extract", "list", "map", "page", "product", "replay", "select")
    built_in = {f"builtin/{name}" for name in names}
    assert set(rows) == built_in | {"lab/broken", "lab/lab"}
    assert yard("scrapers", "show", "lab/lab").json["input_schema"]["properties"]["seconds"]
    yard.stand.write("lab/added", "def run(ctx):\n    return 1\n")
    assert "lab/added" in yard("scrapers", "refresh").out
    assert yard("scrape", "lab/added").json == 1
    assert [worker["draining"] for worker in yard("workers", "--json").json] == [False]
    assert len(yard("workers").rows) == 1
    assert yard("alerts", "list", "--json").json == []
    assert yard("alerts", "test").status == 2
    (worker,) = yard("workers", "--json").json
    drained = yard("workers", "drain", worker["id"], "--wait", "--json")
    assert (drained.status, drained.json["draining"], drained.json["running"]) == (0, True, 0), drained.err
    assert yard("workers").rows[0][2] == "draining, 0 left"
    assert yard("workers", "drain", worker["id"], "--exit").status == 2
    assert "takes work" in yard("workers", "undrain", worker["id"]).err
    until(lambda: not yard("workers", "--json").json[0]["draining"], "it takes work again")
    assert any(each["check"] == "server" and "is well" in each["detail"] for each in yard("doctor", "--json").json)


def test_doctor_sees_the_schema_and_the_blobs_of_a_yard_in_use(yard: Client) -> None:
    ended = yard.stand.cli("doctor", "--json", SCRAPEYARD_DATA_DIR="data")
    found = {each["check"]: each for each in ended.json}
    assert re.search(r"schema \d{4}$", found["store"]["detail"])
    assert found["blobs"]["detail"].endswith(" ms")


def test_no_server_exits_3(yard: Client) -> None:
    for words in (("runs",), ("scrape", "lab/lab"), ("workers",), ("scrapers", "list")):
        ended = yard.stand.cli(*words, SCRAPEYARD_URL="http://127.0.0.1:1")
        assert (ended.status, ended.out) == (3, "")
        assert "scrapeyard up" in ended.err


def test_loopback_is_never_asked_through_a_proxy(yard: Client) -> None:
    ended = yard.stand.cli("workers", SCRAPEYARD_URL=yard.url, http_proxy="http://127.0.0.1:1")
    assert ended.status == 0


def _wait_for(yard: Client, part: str) -> str:
    def found() -> str | None:
        runs = yard("runs", "list", "--status", "running", "--json").json
        return next((str(run["id"]) for run in runs if part in json.dumps(run["input"], separators=(",", ":"))), None)

    return until(found, f"a run of {part} is there")


def test_a_server_whose_log_nobody_reads_any_more_still_ends_when_told(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    with stand.started("up", "--port", "0", "--data-dir", "data") as process:
        assert process.stderr is not None
        assert any(b"listens on " in line for line in process.stderr)
        process.stderr.close()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        until_gone(process.pid)


def test_forget_counts_then_removes(yard: Client) -> None:
    kept = yard("scrape", "lab/lab", "name=https://quagga.example/5531", "--json").json["id"]
    asked = ("forget", "--url", "https://quagga.example/5531")
    dry = yard(*asked, "--dry-run", "--json")
    assert (dry.status, dry.json["counts"]["runs"]) == (0, 1), dry.err
    assert yard("forget").status == 2
    gone = yard(*asked, "--yes")
    assert (gone.status, gone.rows) == (0, [["runs", "1"]]), gone.err
    assert yard("runs", "get", kept).status == 2
