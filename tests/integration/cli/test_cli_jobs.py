"""Jobs and schedules from the command line: a real `scrapeyard up`, the practice shop and real processes."""

import csv
import io
import json
import re
import shutil
import signal
from collections.abc import Iterator

import openpyxl
import pytest

from tests.integration.cli_stand import EXAMPLES, PATIENCE, Ended, Stand, line_with, on_terminal
from tests.leaks import until

JOB_ID = re.compile(r"job_[0-9a-f]{32}")
SLOW = """
import asyncio


async def run(ctx, seconds: float = 0, boom: bool = False):
    if boom:
        raise ValueError("boom")
    await asyncio.sleep(seconds)
    return {"seconds": seconds}
"""


class Client:
    """Runs commands against the server."""

    def __init__(self, stand: Stand, url: str, shop: str) -> None:
        self.stand = stand
        self.url = url
        self.shop = shop

    def __call__(self, *words: str, stdin: str = "") -> Ended:
        return self.stand.cli(*words, stdin=stdin, SCRAPEYARD_URL=self.url)

    def made(self, *words: str, stdin: str = "") -> str:
        """The id that a command prints."""
        ended = self(*words, stdin=stdin)
        assert ended.status == 0, ended.err
        return ended.out.strip()

    def products(self, name: str, count: int) -> str:
        """A list of products in a file."""
        lines = ["url", *(f"{self.shop}/product/{number}" for number in range(1, count + 1))]
        return self.write(name, "\n".join(lines) + "\n")

    def write(self, name: str, text: str) -> str:
        (self.stand.folder / name).write_text(text)
        return name

    def read(self, name: str) -> str:
        return (self.stand.folder / name).read_text("utf-8-sig")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    stand = Stand(tmp_path_factory.mktemp("cli"))
    stand.write("lab/slow", SLOW)
    for name in ("product", "category"):
        shutil.copytree(EXAMPLES / "shop" / name, stand.scrapers / "shop" / name)
    up = ("up", "--port", "0", "--data-dir", "data", "--scrapers", "scrapers", "--allow-private")
    with (
        stand.serving("demo-site", "--port", "0", says=b"open at ") as shop,
        stand.serving(*up, says=b"listens on ") as url,
    ):
        yield Client(stand, url, shop.rstrip("/"))
    assert list(stand.temporary.iterdir()) == [], "temporary files were left"


@pytest.fixture(scope="module")
def done(yard: Client) -> str:
    """The id of a job of products that ended."""
    file = yard.products("done.csv", 12)
    ended = yard("jobs", "create", file, "--scraper", "shop/product", "--export", "records:csv", "--watch")
    assert ended.status == 0, ended.err
    return ended.out.strip()


@pytest.fixture(scope="module")
def failed(yard: Client) -> str:
    """The id of a job of which one item failed."""
    ended = yard(
        "jobs", "create", "-", "--scraper", "lab/slow", "--format", "jsonl", "--policy", '{"retries": 0}', "--watch",
        stdin='{"boom": true, "item_id": "bad"}\n{"seconds": 0, "item_id": "good"}\n',
    )  # fmt: skip
    assert ended.status == 0, ended.err
    assert "bad failed: script_error: boom" in ended.err
    return ended.out.strip()


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_csv_becomes_a_job_is_watched_and_its_results_are_a_csv(yard: Client, done: str) -> None:
    assert JOB_ID.fullmatch(done)
    ended = yard("jobs", "results", done, "-o", "out.csv")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.startswith("wrote out.csv: 12 rows, ")
    found = rows(yard.read("out.csv"))
    assert [row["url"] for row in found] == [f"{yard.shop}/product/{number}" for number in range(1, 13)]
    assert found[0]["title"] == "Aurora Lamp"


def test_results_are_made_once_and_go_to_stdout_as_lines(yard: Client, done: str) -> None:
    first, second = yard("jobs", "results", done), yard("jobs", "results", done)
    assert first.out == second.out
    assert [json.loads(line)["sku"] for line in first.out.splitlines()][:2] == ["LIG-0001", "LIG-0002"]
    listed = yard("jobs", "exports", done, "--json").json
    assert [(made["type"], made["format"]) for made in listed].count(("records", "jsonl")) == 1


@pytest.mark.parametrize("suffix", ["xlsx", "json", "parquet"])
def test_results_come_in_every_format(yard: Client, done: str, suffix: str) -> None:
    ended = yard("jobs", "results", done, "-o", f"all.{suffix}", "--json")
    assert ended.status == 0, ended.err
    assert (ended.json["rows"], ended.json["state"]) == (12, "done")
    file = yard.stand.folder / f"all.{suffix}"
    assert file.stat().st_size == ended.json["bytes"]
    if suffix == "xlsx":
        assert len(list(openpyxl.load_workbook(file, read_only=True).active.rows)) == 13


def test_an_export_is_made_and_kept(yard: Client, done: str) -> None:
    made = yard.made("jobs", "export", done, "--type", "seo", "--format", "csv", "--wait")
    assert [made, "done", "seo", "csv", "12"] in [row[:5] for row in yard("jobs", "exports", done).rows]


def test_the_sitemap_of_the_shop_becomes_a_job(yard: Client) -> None:
    words = ("--sitemap", f"{yard.shop}/", "--include", "/product/**", "--limit", "15", "--name", "sitemap")
    ended = yard("jobs", "create", *words, "--rate", "500", "--export", "full:csv", "--watch", "--json")
    assert ended.status == 0, ended.err
    job = ended.json
    assert (job["counts"]["success"], job["source"]["kind"], job["policy"]["rate"]) == (15, "sitemap", 500)
    assert yard("jobs", "results", job["id"], "-o", "sitemap.csv").status == 0
    found = rows(yard.read("sitemap.csv"))
    assert len(found) == 15
    assert all(row["http_status"] == "200" and "/product/" in row["url"] for row in found)


def test_links_are_followed_and_addresses_taken(yard: Client) -> None:
    words = ("--start-url", f"{yard.shop}/", "--depth", "1", "--limit", "6", "--include", "/category/*")
    crawl = yard("jobs", "create", *words, "--watch", "--json").json
    assert crawl["source"]["kind"] == "follow"
    assert 1 < crawl["counts"]["success"] <= 6
    urls = (f"{yard.shop}/product/1", f"{yard.shop}/product/2")
    assert yard("jobs", "create", "--urls", *urls, "--watch", "--json").json["counts"]["success"] == 2
    listed = yard("jobs", "create", "--items-url", f"{yard.shop}/sitemap.xml", "--format", "csv", "--watch", "--json")
    assert (listed.status, listed.json["status"]) == (1, "failed")


def test_create_with_a_file_waits_and_writes_it(yard: Client) -> None:
    urls = (f"{yard.shop}/product/1", f"{yard.shop}/product/2")
    ended = yard("jobs", "create", "--urls", *urls, "--scraper", "shop/product", "-o", "made.csv")
    assert "scrapeyard: Obeys robots.txt of public hosts and sends at most 2 requests a second" in ended.err
    assert ended.status == 0, ended.err
    assert ended.out.startswith("job_")
    assert "wrote made.csv: 2 rows" in ended.err
    assert [row["url"] for row in rows(yard.read("made.csv"))] == list(urls)
    refused = yard("jobs", "create", "--urls", *urls, "-o", "made.doc")
    assert (refused.status, refused.out) == (2, "")


def test_lists_and_status_tell_how_jobs_stand(yard: Client, done: str, failed: str) -> None:
    row = next(row for row in yard("jobs").rows if row[0] == done)
    assert row[1:7] == ["completed", "", "shop/product@1.0.0", "12", "12", "0"]
    assert row[8].endswith("s")
    assert row[9] == "done.csv"
    assert yard("jobs", "status", done[:-6], "--json").json["id"] == done
    newest = yard("jobs", "list", "--limit", "1", "--json").json[0]
    assert yard("jobs", "status", "last", "--json").json["id"] == newest["id"]
    listed = yard("jobs", "list", "--scraper", "lab/slow", "--json").json
    assert {job["scraper"] for job in listed} == {"lab/slow"}
    assert failed in {job["id"] for job in listed}
    assert len(yard("jobs", "list", "--limit", "1", "--json").json) == 1
    told = yard("jobs", "status", done).out
    assert "items      12 total, 12 success" in told
    assert "http       200: 12\n" in told
    assert "warning" not in told
    assert yard("jobs", "status", done, "--json").json["progress"] == 1.0


def test_the_status_tells_what_of_a_list_was_left_out(yard: Client) -> None:
    lines = f"page\n{yard.shop}/product/1\none,too many\n"
    shaped = ("--scraper", "shop/product", "--format", "csv", "--column", "page=url", "--bad-rows", "skip", "--paused")
    job = yard.made("jobs", "create", "-", *shaped, stdin=lines)
    warnings = yard("jobs", "status", job, "--json").json["warnings"]
    assert [warning for warning in warnings if "line 3" in warning]
    assert [f"warning    {warning}" in yard("jobs", "status", job).out for warning in warnings] == [True]
    assert yard("jobs", "cancel", job).status == 0


def test_items_and_dead_letters_are_listed(yard: Client, done: str, failed: str) -> None:
    assert len(yard("jobs", "items", done, "--limit", "5").rows) == 5
    assert [row[:3] for row in yard("jobs", "items", failed, "--status", "error").rows] == [["bad", "error", "1"]]
    assert yard("jobs", "items", failed, "--item", "good", "--json").json[0]["result"] == {"seconds": 0}
    assert [failed, "bad"] in [row[:2] for row in yard("jobs", "dead-letters").rows]
    assert [row[:2] for row in yard("jobs", "dead-letters", "--job", failed).rows] == [[failed, "bad"]]
    assert yard("jobs", "dead-letters", "--job", done, "--json").json == []


def test_a_failed_item_is_told_and_makes_only_strict_watches_fail(yard: Client, failed: str) -> None:
    ended = yard("jobs", "watch", failed)
    assert ended.status == 0
    assert f"jobs items {failed} --status error" in ended.err
    assert yard("jobs", "watch", failed, "--strict").status == 1


def test_items_are_run_again(yard: Client, failed: str) -> None:
    ended = yard("jobs", "redrive", failed, "--exit-reason", "script_error", "--json")
    assert (ended.status, ended.json["items"]) == (0, 1)
    events = [json.loads(line) for line in yard("jobs", "watch", failed, "--json").out.splitlines()]
    assert events[-1]["event"] == "end"
    assert [event["data"]["attempt"] for event in events if event["event"] == "item_failed"] == [1, 1]
    assert "0 items run again" in yard("jobs", "redrive", failed, "--site", "none.example").out


def test_a_job_is_paused_resumed_cancelled_and_deleted(yard: Client) -> None:
    lines = "".join(f'{{"seconds": {60 + number}}}\n' for number in range(30))
    job = yard.made("jobs", "create", "-", "--scraper", "lab/slow", "--paused", "--name", "slow", stdin=lines)
    assert yard("jobs", "status", job, "--json").json["status"] == "paused"
    assert yard("jobs", "resume", job).out.startswith(f"{job}: running")
    assert yard("jobs", "pause", job, "--json").json["status"] == "paused"
    assert yard("jobs", "resume", job).status == 0
    refused = yard("jobs", "delete", job)
    assert (refused.status, "cancel it first" in refused.err) == (2, True)
    assert yard("jobs", "cancel", job, "--kill").status == 0
    ended = yard("jobs", "watch", job)
    assert ended.status == 1
    assert "cancelled" in ended.err
    assert yard("jobs", "delete", job).out == f"{job}: deleted\n"
    assert yard("jobs", "status", job).status == 2


def test_items_are_appended_to_a_job_that_has_not_ended(yard: Client, done: str) -> None:
    job = yard.made("jobs", "create", yard.products("first.csv", 2), "--scraper", "shop/product", "--paused")
    ended = yard("jobs", "append", job, yard.products("more.csv", 5))
    assert (ended.status, ended.out) == (0, f"{job}: 3 items added, 2 were there already\n")
    lines = f"page\n{yard.shop}/product/6\none,too many\n"
    shaped = ("--format", "csv", "--column", "page=url", "--idempotency-key", "once")
    refused = yard("jobs", "append", job, "-", *shaped, stdin=lines)
    assert (refused.status, "line 3" in refused.err, "--bad-rows skip" in refused.err) == (2, True, True)
    for _ in range(2):
        again = yard("jobs", "append", job, "-", *shaped, "--bad-rows", "skip", "--json", stdin=lines)
        assert (again.status, again.json["added"], again.json["bad"]) == (0, 1, 1)
        assert "line 3" in again.err
    addresses = [f"{yard.shop}/product/{number}" for number in (6, 7)]
    assert yard("jobs", "append", job, "--urls", *addresses).out == f"{job}: 1 item added, 1 was there already\n"
    assert yard("jobs", "status", job, "--json").json["counts"]["total"] == 7
    late = yard("jobs", "append", done, "--urls", yard.shop)
    assert (late.status, "the job is completed, so it cannot take more items" in late.err) == (2, True)
    assert yard("jobs", "cancel", job).status == 0


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(yard: Client) -> None:
    job = yard.made("jobs", "create", "-", "--scraper", "lab/slow", stdin='{"seconds": 250}\n')
    with yard.stand.started("jobs", "watch", job, SCRAPEYARD_URL=yard.url) as process:
        assert line_with(process, b"running: 0 of 1").startswith(b"scrapeyard: ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    assert f"scrapeyard jobs watch {job}" in err.decode()
    assert yard("jobs", "status", job, "--json").json["status"] == "running"
    assert yard("jobs", "cancel", job, "--kill").status == 0


def test_a_terminal_is_shown_a_bar(yard: Client) -> None:
    file = yard.products("bar.csv", 40)
    words = ("jobs", "create", file, "--scraper", "shop/product", "--rate", "40", "--watch")
    status, shown = on_terminal(yard.stand, *words, SCRAPEYARD_URL=yard.url, TERM="xterm", COLUMNS="160")
    assert status == 0, shown
    assert JOB_ID.search(shown)
    assert "40 of 40 (100%)" in shown
    assert "0 errors" in shown
    assert "/s" in shown


def test_rows_that_cannot_be_used_are_named_and_may_be_left_out(yard: Client) -> None:
    file = yard.write("bad.csv", f"url\n{yard.shop}/product/1\nnonsense\n")
    refused = yard("jobs", "create", file, "--scraper", "shop/product")
    assert (refused.status, refused.out) == (2, "")
    assert "line 3: " in refused.err
    assert "--bad-rows skip" in refused.err
    taken = yard("jobs", "create", file, "--scraper", "shop/product", "--bad-rows", "skip", "--watch", "--json")
    assert (taken.status, taken.json["counts"]["total"], taken.json["skipped_rows"]) == (0, 1, 1)
    assert "1 rows cannot be used and were left out:\n  line 3: " in taken.err


def test_columns_names_and_fields_of_every_item_shape_a_list(yard: Client) -> None:
    shape = ("--names", "when,page", "--column", "page=url", "--delimiter", "tab", "--input", '{"currency": "USD"}')
    ended = yard(
        "jobs", "create", "-", "--format", "csv", *shape, "--watch", "--json",
        stdin=f"monday\t{yard.shop}/product/1\n",
    )  # fmt: skip
    assert (ended.status, "currency" in ended.err) == (2, True), "builtin/page takes no currency"
    good = yard("jobs", "create", "-", "--format", "csv", *shape[:-2], "--watch", "--json",
                stdin=f"monday\t{yard.shop}/product/1\n")  # fmt: skip
    assert (good.status, good.json["counts"]["success"]) == (0, 1)


def test_the_same_key_makes_one_job(yard: Client) -> None:
    words = ("jobs", "create", yard.products("key.csv", 1), "--scraper", "shop/product", "--idempotency-key", "one")
    assert yard.made(*words) == yard.made(*words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jobs", "create", "none.csv"), "none.csv: cannot be read: No such file"),
        (("jobs", "create", "tmp"), "tmp: cannot be read: Is a directory"),
        (("jobs", "create", "empty.csv"), "nothing in it"),
        (("jobs", "create"), "give one source"),
        (("jobs", "create", "done.csv", "--strict"), "--strict goes with --watch"),
        (("jobs", "create", "done.csv", "--scraper", "lab/none"), "no scraper lab/none"),
        (("jobs", "create", "done.csv", "--policy", '{"rates": 1}'), "policy/rates"),
        (("jobs", "create", "done.csv", "--export", "csv"), "type:format"),
        (("jobs", "create", "done.csv", "--print"), "--print"),
        (("jobs", "status", "job_" + "0" * 32), "no job"),
        (("jobs", "watch", "job_" + "0" * 32), "no job"),
        (("jobs", "results", "job_" + "0" * 32, "-o", "x.csv"), "no job"),
        (("jobs", "results", "job_" + "0" * 32, "-o", "x.doc"), ".parquet"),
        (("jobs", "results", "job_" + "0" * 32, "-o", "none/x.csv"), "no such folder"),
        (("jobs", "cancel", "a/b"), "not a job's id"),
        (("jobs", "append", "job_" + "0" * 32, "done.csv"), "no job"),
        (("jobs", "append", "a b", "done.csv"), "not a job's id"),
        (("jobs", "list", "--status", "odd"), "status"),
        (("schedule", "create", "--every", "1h"), "say what to start"),
        (("schedule", "create", "--scrape", "http://x.example/"), "say when"),
        (("schedule", "create", "--scrape", "http://x.example/", "--cron", "soon"), "cron"),
        (("schedule", "show", "schedule_" + "0" * 32), "no schedule"),
    ],
)
def test_what_is_wrong_is_said_and_exits_2(yard: Client, words: tuple[str, ...], said: str) -> None:
    yard.products("done.csv", 12)
    yard.write("empty.csv", "")
    ended = yard(*words)
    assert (ended.status, ended.out) == (2, ""), ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "words",
    [
        ("jobs",),
        ("jobs", "create", "--urls", "http://x.example/"),
        ("jobs", "create", "some.csv"),
        ("jobs", "watch", "job_" + "0" * 32),
        ("jobs", "results", "job_" + "0" * 32),
        ("schedule",),
    ],
)
def test_a_server_that_is_away_exits_3(yard: Client, words: tuple[str, ...]) -> None:
    yard.products("some.csv", 1)
    ended = yard.stand.cli(*words, SCRAPEYARD_URL="http://127.0.0.1:1")
    assert (ended.status, ended.out) == (3, "")
    assert "scrapeyard up" in ended.err


def test_schedules_start_what_create_prints(yard: Client) -> None:
    call = yard("jobs", "create", "--urls", f"{yard.shop}/product/1", "--name", "hourly", "--print").json
    assert call == {"name": "hourly", "items": [f"{yard.shop}/product/1"]}
    schedule = yard.made("schedule", "create", "--every", "1h", "--job", json.dumps(call), "--name", "lamp")
    assert [row[1:4] for row in yard("schedule").rows] == [["lamp", "every 3600 s", "job builtin/page"]]
    assert len(yard("schedule", "show", schedule).json["next_runs"]) == 5
    assert yard("schedule", "pause", schedule).out == f"{schedule}: paused\n"
    assert yard("schedule", "resume", schedule, "--json").json["paused"] is False
    job = yard.made("schedule", "run", schedule)
    until(lambda: yard("jobs", "watch", job).status != 2, "it is started")
    assert [row[1:4] for row in yard("schedule", "history", schedule).rows] == [["manual", "started", job]]
    assert [row[0] for row in yard("jobs", "list", "--schedule", schedule).rows] == [job]
    assert yard("schedule", "delete", schedule).status == 0
    assert yard("schedule", "list").rows == []
