"""`run --file`: whole jobs without a server, as real processes."""

import csv
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import EXAMPLES, PATIENCE, Stand, group_lives, line_with
from tests.leaks import until

PRODUCT = str(EXAMPLES / "shop" / "product")
ITEM = """
import asyncio


async def run(ctx, name: str, seconds: float = 0, boom: bool = False):
    if boom:
        raise ValueError(f"no {name}")
    await asyncio.sleep(seconds)
    return {"name": name, "seconds": seconds}
"""
COUNT = """
def run(ctx, name: str = ""):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    return {"n": n}
"""


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("cli"))
    stand.write("lab/item", ITEM)
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


@pytest.fixture(scope="module")
def shop(stand: Stand) -> Iterator[str]:
    with stand.serving("demo-site", "--port", "0", says=b"open at ") as url:
        yield url.rstrip("/")


def write(stand: Stand, name: str, *lines: str) -> str:
    (stand.folder / name).write_text("".join(f"{line}\n" for line in lines))
    return name


def test_a_csv_runs_through_a_scraper_into_a_csv(stand: Stand, shop: str) -> None:
    file = write(stand, "products.csv", "url", *(f"{shop}/product/{number}" for number in range(1, 31)))
    ended = stand.cli("run", PRODUCT, "--file", file, "--allow-private", "-o", "out.csv", "--json")
    assert ended.status == 0, ended.err
    job = ended.json
    assert (job["status"], job["scraper"], job["counts"]["success"]) == ("completed", "shop/product", 30)
    assert "wrote out.csv: 30 rows" in ended.err
    found = list(csv.DictReader(io.StringIO((stand.folder / "out.csv").read_text("utf-8-sig"))))
    assert [row["url"] for row in found] == [f"{shop}/product/{number}" for number in range(1, 31)]


def test_addresses_from_stdin_become_lines_on_stdout(stand: Stand, shop: str) -> None:
    urls = f"{shop}/product/1\n{shop}/product/2\n"
    ended = stand.cli("run", "builtin/page", "-f", "-", "--type", "seo", "--allow-private", stdin=urls)
    assert ended.status == 0, ended.err
    assert [json.loads(line)["h1"] for line in ended.out.splitlines()] == ["Aurora Lamp", "Aurora Lantern"]
    assert ended.err.splitlines()[-1].startswith("scrapeyard: completed, 2 items in ")


def test_columns_stand_in_the_order_of_the_fields(stand: Stand, shop: str) -> None:
    file = write(stand, "shops.txt", f"{shop}/product/1")
    pairs = [word for pair in ("zeta=h1", "alpha=title", "mid=h1", "beta=title") for word in ("--field", pair)]
    ended = stand.cli("run", "builtin/select", "-f", file, *pairs, "--allow-private", "-o", "order.csv")
    assert ended.status == 0, ended.err
    (row,) = csv.DictReader(io.StringIO((stand.folder / "order.csv").read_text("utf-8-sig")))
    assert [name for name in row if name not in ("_item", "url", "status", "warnings")] == [
        "zeta",
        "alpha",
        "mid",
        "beta",
    ]


def test_the_state_is_kept_from_one_command_to_the_next(stand: Stand) -> None:
    stand.write("lab/count", COUNT)
    file = write(stand, "two.jsonl", '{"name": "a"}', '{"name": "b"}')
    assert [stand.cli("run", "scrapers/lab/count").json["n"] for _ in range(2)] == [1, 2]
    assert stand.cli("run", "scrapers/lab/count", "--no-state").json["n"] == 1
    ended = stand.cli("run", "scrapers/lab/count", "--file", file, "--policy", '{"concurrency": 1}')
    assert sorted(json.loads(line)["n"] for line in ended.out.splitlines()) == [3, 4]
    ended = stand.cli("run", "scrapers/lab/count", "--file", file, "--no-state")
    assert 1 in [json.loads(line)["n"] for line in ended.out.splitlines()]
    assert stand.cli("run", "scrapers/lab/count").json["n"] == 5
    assert stand.cli("record", "scrapers/lab/count").status == 0
    assert stand.cli("test", "scrapers/lab/count").status == 0
    assert json.loads((stand.scrapers / "lab/count/tests/case/expected.json").read_text())["n"] == 1


def test_failures_are_told_and_pairs_are_fields_of_every_item(stand: Stand) -> None:
    file = write(stand, "names.jsonl", '{"name": "a"}', '{"name": "b", "boom": true}', '{"name": "c", "seconds": 0.01}')
    words = ("run", "lab/item", "--scrapers", "scrapers", "-f", file, "seconds=0.02", "--policy", '{"retries": 0}')
    ended = stand.cli(*words)
    assert ended.status == 0, ended.err
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [(each["name"], each["seconds"]) for each in found] == [("a", 0.02), ("c", 0.01)]
    assert '"name":"b"' in ended.err
    assert "script_error: no b" in ended.err
    assert stand.cli(*words, "--strict").status == 1
    hopeless = write(stand, "hopeless.jsonl", '{"name": "b", "boom": true}')
    assert stand.cli(*words[:5], hopeless, "--policy", '{"retries": 0}').status == 1


def test_a_budget_ends_the_job_and_what_it_has_is_written(stand: Stand, shop: str) -> None:
    file = write(stand, "many.csv", "url", *(f"{shop}/product/{number}" for number in range(1, 61)))
    policy = json.dumps({"budget": {"requests": 5}, "concurrency": 1, "rate": 20})
    ended = stand.cli("run", PRODUCT, "-f", file, "--allow-private", "--policy", policy, "-o", "some.jsonl")
    assert ended.status == 1
    assert "cancelled" in ended.err
    assert 5 <= len((stand.folder / "some.jsonl").read_text().splitlines()) < 60


def test_ctrl_c_ends_everything_and_leaves_nothing(stand: Stand) -> None:
    before = set(stand.temporary.iterdir())
    file = write(stand, "slow.jsonl", *(f'{{"name": "n{number}", "seconds": 60}}' for number in range(20)))
    with stand.started("run", "scrapers/lab/item", "--file", file) as process:
        line_with(process, b"running: 0 of 20")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert not group_lives(process.pid)
    assert set(stand.temporary.iterdir()) == before


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_rows_are_written_as_they_come_and_stay_after_ctrl_c(stand: Stand, form: str) -> None:
    file = write(stand, "waits.jsonl", '{"name": "first"}', '{"name": "second"}', '{"name": "slow", "seconds": 600}')
    out = stand.folder / f"live.{form}"
    out.write_text("of an earlier run")
    with stand.started("run", "scrapers/lab/item", "--file", file, "-o", out.name) as process:
        until(lambda: _names(out) == ["first", "second"], "the first rows are there")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
    assert f"interrupted; {out.name} has 2 rows" in err.decode()
    assert _names(out) == ["first", "second"]
    assert out.read_bytes().endswith(b"\n")


def test_lines_on_stdout_come_while_the_job_goes_on(stand: Stand) -> None:
    file = write(stand, "waits.jsonl", '{"name": "first"}', '{"name": "slow", "seconds": 600}')
    with stand.started("run", "scrapers/lab/item", "--file", file) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["name"] == "first"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130


def _names(file: Path) -> list[str]:
    """The names in the complete lines of a file that is being written."""
    text = file.read_text("utf-8-sig")
    whole = text[: text.rfind("\n") + 1]
    rows = csv.DictReader(io.StringIO(whole)) if file.suffix == ".csv" else map(json.loads, whole.splitlines())
    return [row["name"] for row in rows]


def test_ctrl_c_ends_a_wait_for_stdin(stand: Stand) -> None:
    before = set(stand.temporary.iterdir())
    with stand.started("run", "scrapers/lab/item", "--file", "-", "--format", "jsonl", stdin=True) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"name": "a"}\n')
        process.stdin.flush()
        until(lambda: {place.parent for place in stand.temporary.glob("*/blobs")} - before, "it is read")
        process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE)
        assert code == 130, process.communicate()[1].decode()
        process.communicate()
        assert not group_lives(process.pid)
    assert set(stand.temporary.iterdir()) == before


DOWN = {"breaker": {"failures": 3, "cooldown_seconds": 3000}, "retries": 5, "backoff": {"first_seconds": 0}}


def test_a_site_that_is_down_is_given_up_with_the_reason(stand: Stand) -> None:
    file = write(stand, "down.txt", *(f"http://127.0.0.1:9/{number}" for number in range(10)))
    words = ("run", "builtin/page", "-f", file, "--allow-private", "--policy", json.dumps(DOWN), "-o", "down.jsonl")
    ended = stand.cli(*words)
    assert ended.status == 1
    (said,) = (line for line in ended.err.splitlines() if "gave up" in line)
    assert "the breaker is open" in said
    assert "fetch_connect: cannot connect to 127.0.0.1:9" in said
    assert "--max-wait" in said
    assert ended.err.splitlines()[-1].startswith("scrapeyard: cancelled, 10 items")


def test_a_wait_for_a_breaker_is_told_at_once(stand: Stand) -> None:
    file = write(stand, "down.txt", *(f"http://127.0.0.1:9/{number}" for number in range(10)))
    words = ("run", "builtin/page", "-f", file, "--allow-private", "--policy", json.dumps(DOWN), "-o", "down.jsonl")
    with stand.started(*words, "--max-wait", "9000") as process:
        said = line_with(process, b"waits until ").decode()
        assert "the breaker is open" in said
        assert "fetch_connect" in said
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lab/item", "--file", "none.csv"), "none.csv: cannot be read"),
        (("lab/none", "--file", "good.jsonl"), "no scraper lab/none"),
        (("lab/item", "--file", "wrong.csv"), "line 2: "),
        (("http://shop.example/", "--file", "good.jsonl"), "the target is a scraper"),
        (("lab/item", "--file", "good.jsonl", "-o", "x.doc"), ".parquet"),
        (("lab/item", "--file", "good.jsonl", "--explain"), "--explain"),
        (("lab/item", "--file", "good.jsonl", "--type", "diff"), "--type diff"),
        (("lab/item", "--file", "good.jsonl", "--policy", '{"rates": 2}'), "policy/rates"),
        (("lab/item", "--file", "good.jsonl", "--json"), "--json needs -o"),
        (("lab/item", "name=x", "--rate", "2"), "go with --file"),
        (("lab/item", "name=x", "--max-wait", "2"), "go with --file"),
    ],
)
def test_what_is_wrong_is_said_and_exits_2(stand: Stand, words: tuple[str, ...], said: str) -> None:
    write(stand, "good.jsonl", '{"name": "a"}')
    write(stand, "wrong.csv", "name,seconds", "a,soon")
    ended = stand.cli("run", *words, "--scrapers", "scrapers")
    assert (ended.status, ended.out) == (2, ""), ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err
