"""The export `links`: broken links, inlinks and redirect chains."""

import json
from typing import Any

from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports.builder import ExportBuilder
from scrapeyard.results.exports.protocol import Line

SHOP = "http://shop.example"


def page(path: str, *links: str, **more: Any) -> Line:
    url = f"{SHOP}{path}"
    anchors = [{"url": link, "text": "to", "rel": None, "internal": link.startswith(SHOP)} for link in links]
    found = {"status": 200, "url": url, "final_url": url, "redirects": [], "anchors": anchors, **more}
    asked = {"url": url, "include": ["links", "anchors"]}
    return Line(path, "success", 1.0, None, json.dumps(asked).encode(), json.dumps(found).encode(), "succeeded")


def failed(path: str, reason: str, status: int | None = None) -> Line:
    asked = json.dumps({"url": f"{SHOP}{path}"}).encode()
    return Line(path, "error", 1.0, status, asked, b"", reason)


def links(*lines: Line) -> list[dict[str, Any]]:
    pieces: list[bytes] = []
    builder = ExportBuilder(ExportWish(type="links", format="jsonl"), pieces.append)
    for line in lines:
        builder.add_lines([line])
    list(builder.finish())
    rows = [json.loads(line) for line in b"".join(pieces).splitlines()]
    assert builder.written.rows == len(rows)
    return rows


def by_target(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["target_url"].removeprefix(SHOP): row for row in rows}


def test_a_link_knows_its_target_wherever_that_comes_in_the_job() -> None:
    rows = links(
        page("/", f"{SHOP}/gone", f"{SHOP}/down", f"{SHOP}/ok", f"{SHOP}/later", "http://other.example/"),
        page("/ok", f"{SHOP}/gone"),
        page("/gone", status=404),
        failed("/down", "fetch_dns"),
        failed("/later", "fetch_rate_limited", 429),
    )
    assert [(row["source_url"], row["target_url"]) for row in rows] == [
        *((f"{SHOP}/", f"{SHOP}/{name}") for name in ("gone", "down", "ok", "later")),
        (f"{SHOP}/", "http://other.example/"),
        (f"{SHOP}/ok", f"{SHOP}/gone"),
    ]
    found = by_target(rows)
    assert (found["/gone"]["broken"], found["/gone"]["target_status"], found["/gone"]["target_inlinks"]) == (
        True,
        404,
        2,
    )
    assert (found["/down"]["broken"], found["/down"]["target_exit_reason"]) == (True, "fetch_dns")
    assert (found["/ok"]["broken"], found["/ok"]["anchor_text"], found["/ok"]["internal"]) == (False, "to", True)
    assert (found["/later"]["broken"], found["/later"]["target_status"]) == (None, 429)
    other = found["http://other.example/"]
    assert (other["broken"], other["target_status"], other["internal"], other["target_inlinks"]) == (
        None,
        None,
        False,
        1,
    )


def test_a_redirect_chain_is_told() -> None:
    hops = [f"{SHOP}/old", f"{SHOP}/older"]
    (row,) = links(page("/", f"{SHOP}/old"), page("/old", final_url=f"{SHOP}/new", redirects=hops))
    assert (row["redirect_url"], row["redirects"], row["broken"]) == (f"{SHOP}/new", 2, False)
    assert row["redirect_chain"] == "|".join([*hops, f"{SHOP}/new"])


def test_the_spelling_of_a_link_does_not_matter() -> None:
    (row,) = links(page("/", "HTTP://SHOP.example:80/a%20b#top"), page("/a b", status=410))
    assert (row["broken"], row["target_status"]) == (True, 410)


def test_what_needs_mending_and_is_linked_nowhere_comes_last() -> None:
    rows = links(page("/gone", status=404), page("/fine"), page("/", f"{SHOP}/fine"))
    assert [(row["source_url"], row["target_url"], row["target_inlinks"]) for row in rows] == [
        (f"{SHOP}/", f"{SHOP}/fine", 1),
        (None, f"{SHOP}/gone", 0),
    ]


def test_plain_links_will_do() -> None:
    result = json.dumps({"status": 200, "url": SHOP, "final_url": SHOP, "links": [f"{SHOP}/a"]}).encode()
    (row,) = links(Line("k", "success", 1.0, None, json.dumps({"url": SHOP}).encode(), result))
    assert (row["target_url"], row["anchor_text"]) == (f"{SHOP}/a", None)
