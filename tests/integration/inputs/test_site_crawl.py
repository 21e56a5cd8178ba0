"""A whole site by its sitemap, through the real programs: a job is made, its pages are read, the files are opened."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import httpx
import openpyxl
import pytest

from tests.job_calls import Jobs
from tests.programs import Embedded

PAGES = 12


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Embedded]:
    with Embedded() as opened:
        yield opened
        assert not list(opened.errors())


@pytest.fixture(scope="module")
def api(yard: Embedded) -> Iterator[httpx.Client]:
    with yard.client() as client:
        yield client


def made(api: httpx.Client, **body: Any) -> str:
    answer = api.post("/api/jobs", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def files(api: httpx.Client, job_id: str) -> dict[str, bytes]:
    """What each export downloads, by type and format."""
    found = api.get(f"/api/jobs/{job_id}/exports").json()["exports"]
    assert {export["state"] for export in found} == {"done"}, found
    return {f"{export['type']}.{export['format']}": api.get(export["links"]["download"]).content for export in found}


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_a_sitemap_becomes_tables(yard: Embedded, api: httpx.Client) -> None:
    wishes = [{"type": "full", "format": "csv"}, {"type": "seo", "format": "xlsx"}, {"type": "full", "format": "json"}]
    job_id = made(
        api,
        sitemap_url=f"{yard.shop.url}/sitemap.xml",
        sitemap={"include": ["/product/*"], "limit": PAGES},
        scraper="builtin/product",
        exports=wishes,
        policy={"keep_html": True},
    )
    job = Jobs(api).ended(job_id)
    assert (job["status"], job["counts"]["success"], job["counts"]["total"]) == ("completed", PAGES, PAGES), job
    listed = {item["input"]["url"] for item in Jobs(api).items(job_id)}
    assert all(url.startswith(f"{yard.shop.url}/product/") for url in listed)
    found = files(api, job_id)
    table = rows(found["full.csv"])
    assert {row["url"] for row in table} == listed
    assert all(row["title"] for row in table)
    assert len(json.loads(found["full.json"])) == PAGES
    sheet = openpyxl.load_workbook(io.BytesIO(found["seo.xlsx"]), read_only=True).active
    assert sheet is not None
    assert len(list(sheet.iter_rows(min_row=2))) == PAGES
    item = Jobs(api).items(job_id)[0]
    html = api.get(f"/api/jobs/{job_id}/items/{item['id']}/download", params={"artifact": "html"})
    assert html.status_code == 200
    assert "<h1" in html.text


def test_links_are_followed_from_page_to_page(yard: Embedded, api: httpx.Client) -> None:
    job_id = made(
        api,
        start_url=f"{yard.shop.url}/",
        follow={"depth": 1, "limit": 15, "exclude": ["/slow**", "/status/**", "/account"]},
    )
    job = Jobs(api).ended(job_id)
    assert job["status"] == "completed"
    assert 2 <= job["counts"]["total"] <= 15
    urls = [item["input"]["url"] for item in Jobs(api).items(job_id)]
    assert urls[0] == f"{yard.shop.url}/"
    assert len(set(urls)) == len(urls)


def test_a_sitemap_that_is_not_there_fails_the_job_with_its_reason(yard: Embedded, api: httpx.Client) -> None:
    job_id = made(api, sitemap_url=f"{yard.shop.url}/status/404")
    job = Jobs(api).ended(job_id)
    assert (job["status"], job["counts"]["total"]) == ("failed", 0)
    assert "404" in job["error"]["message"]
    stream = api.get(f"/api/jobs/{job_id}/stream")
    assert "event: end" in stream.text


def test_the_wished_exports_decide_what_is_extracted(yard: Embedded, api: httpx.Client) -> None:
    wishes = [{"type": "full", "format": "csv"}, {"type": "seo", "format": "csv"}]
    job_id = made(api, items=[f"{yard.shop.url}/product/1"], exports=wishes)
    assert Jobs(api).ended(job_id)["status"] == "completed"
    found = files(api, job_id)
    (product,) = rows(found["full.csv"])
    assert all(product[name] for name in ("price", "currency", "availability", "sku", "images", "text_hash")), product
    (page,) = rows(found["seo.csv"])
    assert all(page[name] for name in ("title", "og_title", "og_image", "images_alt_joined")), page


def test_what_a_caller_includes_is_left_as_it_is(yard: Embedded, api: httpx.Client) -> None:
    job_id = made(
        api,
        items=[f"{yard.shop.url}/product/1"],
        input={"include": ["links"]},
        exports=[{"type": "full", "format": "csv"}],
    )
    Jobs(api).ended(job_id)
    (item,) = Jobs(api).items(job_id)
    assert item["input"]["include"] == ["links"]


def test_a_crawl_tells_its_broken_links_and_where_pages_were_found(yard: Embedded, api: httpx.Client) -> None:
    job_id = made(
        api,
        start_url=f"{yard.shop.url}/",
        follow={"depth": 1, "limit": 15, "exclude": ["/slow**", "/account"]},
        exports=[{"type": "links", "format": "csv"}, {"type": "full", "format": "csv"}],
    )
    assert Jobs(api).ended(job_id)["status"] == "completed"
    found = files(api, job_id)
    links = rows(found["links.csv"])
    home = [row for row in links if row["source_url"] == f"{yard.shop.url}/"]
    assert home
    assert any(row["anchor_text"] and row["target_status"] for row in home)
    items = Jobs(api).items(job_id)
    assert [item["depth"] for item in items] == [0] + [1] * (len(items) - 1)
    assert {item["referrer"] for item in items[1:]} == {f"{yard.shop.url}/"}
    assert [row["depth"] for row in rows(found["full.csv"])] == [str(item["depth"]) for item in items]


def test_the_profile_of_a_site_leaves_tables_and_from_the_second_crawl_on_what_changed(
    yard: Embedded, api: httpx.Client
) -> None:
    crawl = {
        "profile": "site",
        "sitemap_url": f"{yard.shop.url}/sitemap.xml",
        "sitemap": {"include": ["/product/*"], "limit": 3},
        "policy": {"snapshots": {"scope": "by profile"}},
    }
    first, second = (Jobs(api).ended(made(api, **crawl)) for _ in range(2))
    assert [job["counts"]["success"] for job in (first, second)] == [3, 3]
    assert set(files(api, first["id"])) == {"full.csv", "seo.csv"}
    again = files(api, second["id"])
    assert set(again) == {"full.csv", "seo.csv", "diff.csv"}
    assert [row["change_type"] for row in rows(again["diff.csv"])] == ["UNCHANGED"] * 3
    full = rows(again["full.csv"])
    assert all(row["price"] for row in full)
    assert list(full[0])[-2:] == ["strategy_used", "proxy_used"]
    assert {(row["strategy_used"], row["proxy_used"]) for row in full} == {("http", "")}
    item = Jobs(api).items(second["id"])[0]
    assert (item["strategy_used"], item["proxy_used"]) == ("http", None)


def test_a_crawl_that_was_cancelled_and_resumed_ends_with_the_same_results(yard: Embedded, api: httpx.Client) -> None:
    jobs = Jobs(api)

    def crawl(**policy: Any) -> str:
        return made(
            api,
            sitemap_url=f"{yard.shop.url}/sitemap.xml",
            sitemap={"include": ["/product/*"], "limit": PAGES},
            exports=[{"type": "full", "format": "csv"}],
            policy=policy,
        )

    undisturbed, job_id = crawl(), crawl(rate=4)
    jobs.until(job_id, lambda job: job["counts"]["success"] >= 2, "it runs")
    jobs.ask(job_id, "cancel")
    cancelled = jobs.until(job_id, lambda job: job["status"] == "cancelled" and not job["files_pending"], "it stops")
    assert 0 < cancelled["counts"]["cancelled"] < PAGES
    jobs.ask(job_id, "resume")
    found = [jobs.ended(each) for each in (undisturbed, job_id)]
    assert [(job["status"], job["counts"]) for job in found] == [("completed", found[0]["counts"])] * 2
    assert found[1]["counts"]["success"] == PAGES
    told = ("url", "title", "price", "sku", "text_hash", "item_status", "attempts")
    tables = [[{name: row[name] for name in told} for row in rows(files(api, job["id"])["full.csv"])] for job in found]
    assert tables[0] == tables[1]
    assert len(tables[0]) == PAGES
