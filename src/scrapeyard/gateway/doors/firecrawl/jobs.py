"""Firecrawl's calls that go on after their answer: crawl, batch scrape and extract. Each is a job of ours."""

from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from starlette.responses import Response

from scrapeyard.builtin import DOCUMENT, EXTRACT
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import DoorCall
from scrapeyard.gateway.doors.firecrawl.errors import respond
from scrapeyard.gateway.doors.firecrawl.options import DocumentWish, FirecrawlBody, FirecrawlOptions, PageUrl, wanted
from scrapeyard.gateway.doors.firecrawl.pages import key_of, note_of, tracked
from scrapeyard.gateway.doors.firecrawl.progress import address, job_of
from scrapeyard.gateway.http.patterns import Url

RETRIES: Final = 3
_PAGES: Final = [status for status in range(400, 500) if status not in (408, 425, 429)]
"""Statuses that are pages in the answer of a crawl, with their status in the metadata, as they are of a scrape."""
_MERGED: Final = 1000
"""Maximum pages of an extract whose data are put together."""


_HookEvent = Literal["started", "page", "completed", "failed"]
_HOOK_EVENTS: Final[list[_HookEvent]] = ["started", "page", "completed", "failed"]


class HookBody(FirecrawlBody):
    """Who is told."""

    url: Url
    headers: dict[str, str] | None = Field(None, max_length=0, description="Messages are signed instead.")
    metadata: dict[str, str] = Field(default_factory=dict, max_length=20)
    events: list[_HookEvent] = Field(_HOOK_EVENTS, min_length=1, max_length=4)


_Hook = Annotated[HookBody, BeforeValidator(lambda given: {"url": given} if isinstance(given, str) else given)]
"""Its address alone will do."""


class _JobBody(FirecrawlBody):
    webhook: _Hook | None = None
    max_concurrency: int | None = Field(None, ge=1, le=100_000)
    zero_data_retention: Literal[False] | None = None


class CrawlBody(_JobBody):
    """`/crawl`."""

    url: PageUrl
    include_paths: list[Annotated[str, Field(min_length=1, max_length=490)]] = Field(
        default_factory=list, max_length=50
    )
    exclude_paths: list[Annotated[str, Field(min_length=1, max_length=490)]] = Field(
        default_factory=list, max_length=50
    )
    max_depth: int | None = Field(None, ge=0, le=100)
    max_discovery_depth: int | None = Field(None, ge=0, le=100)
    limit: int = Field(10_000, ge=1, le=1_000_000)
    sitemap: Literal["skip", "include", "only"] = "include"
    ignore_sitemap: bool = False
    ignore_query_parameters: bool = False
    deduplicate_similar_urls: bool | None = Field(None, alias="deduplicateSimilarURLs")
    """Fragments, default ports and the case of hosts never make two pages of one; nothing else is taken for similar."""
    crawl_entire_domain: bool = False
    allow_backward_links: bool = False
    allow_external_links: bool = False
    allow_subdomains: bool = False
    ignore_robots_txt: bool = False
    robots_user_agent: None = None
    delay: float | None = Field(None, gt=0, le=3600)
    scrape_options: FirecrawlOptions = FirecrawlOptions()
    regex_on_full_url: bool = Field(False, alias="regexOnFullURL")
    prompt: None = Field(None, description="Options of crawls are not made from a prompt.")


class BatchBody(_JobBody, FirecrawlOptions):
    """`/batch/scrape`."""

    urls: list[str] = Field(min_length=1, max_length=100_000)
    append_to_id: str | None = Field(None, max_length=100)
    ignore_invalid_urls: bool | None = Field(None, alias="ignoreInvalidURLs")


class ExtractBody(FirecrawlBody):
    """`/extract`."""

    urls: list[str] = Field(min_length=1, max_length=_MERGED)
    prompt: str | None = Field(None, min_length=1, max_length=2000)
    data_schema: dict[str, Any] | None = Field(None, alias="schema")
    system_prompt: None = None
    allow_external_links: Literal[False] | None = None
    enable_web_search: Literal[False] | None = None
    include_subdomains: bool | None = None
    show_sources: bool = False
    scrape_options: FirecrawlOptions | None = None
    ignore_invalid_urls: bool | None = Field(None, alias="ignoreInvalidURLs")
    agent: None = None
    threat_protection: None = None


class JobMaking:
    """Makes jobs."""

    async def crawl(self, call: DoorCall, version: str) -> Response:
        """`POST /crawl`."""
        body = CrawlBody.model_validate(await call.json())
        if body.sitemap == "only" and body.ignore_sitemap:
            raise BadRequest("sitemap is `only`, and ignoreSitemap is true")
        wish = wanted(body.scrape_options)
        note = note_of(wish, body.scrape_options, await tracked(call, wish))
        given = {**wish.input, "formats": list(dict.fromkeys([*wish.input["formats"], "links"])), "note": note}
        policy = _policy(wish, body) | {"robots": "ignore" if body.ignore_robots_txt else "obey"}
        policy |= {"rate": 1 / body.delay, "concurrency": 1} if body.delay else {}
        asked = {
            "scraper": DOCUMENT,
            "input": given,
            "policy": policy,
            **_source(body, version),
            **_webhook(body, "crawl"),
        }
        return await self._made(call, asked, f"{version}/crawl", {})

    async def batch(self, call: DoorCall, version: str) -> Response:
        """`POST /batch/scrape`."""
        body = BatchBody.model_validate(await call.json())
        urls, bad = _valid(body, version)
        wish = wanted(body)
        given = {**wish.input, "note": note_of(wish, body, await tracked(call, wish))}
        more: dict[str, Any] = {"invalidURLs": bad} if bad or body.ignore_invalid_urls else {}
        if body.append_to_id is not None:
            await job_of(call, body.append_to_id)
            await call.api("POST", f"/api/jobs/{body.append_to_id}/items", {"items": urls, "input": given})
            return _started(call, body.append_to_id, f"{version}/batch/scrape", more)
        asked = {"scraper": DOCUMENT, "items": urls, "input": given, "policy": _policy(wish, body)}
        return await self._made(call, {**asked, **_webhook(body, "batch_scrape")}, f"{version}/batch/scrape", more)

    async def extract(self, call: DoorCall, version: str) -> Response:
        """`POST /extract`."""
        body = ExtractBody.model_validate(await call.json())
        if body.data_schema is None and body.prompt is None:
            raise BadRequest("extract needs a schema or a prompt")
        if any("*" in url for url in body.urls):
            raise BadRequest("addresses with * are not available here: crawl the site with the format json")
        urls, bad = _valid(body, version)
        given: dict[str, Any] = (
            {"schema": body.data_schema} if body.data_schema is not None else {"prompt": body.prompt}
        )
        wish = wanted(body.scrape_options or FirecrawlOptions())
        if left := wish.input.keys() - {"formats", "only_main", "headers", "browser", "engine"}:
            raise BadRequest(
                f"scrapeOptions of extract: {sorted(left)[0]} is not available; scrape with the format json"
            )
        given |= {name: wish.input[name] for name in ("headers", "browser", "engine") if name in wish.input}
        asked = {"scraper": EXTRACT, "items": urls, "input": given, "policy": {**wish.policy, "retries": RETRIES}}
        return await self._made(call, asked, f"{version}/extract", {"urlTrace": [], "invalidURLs": bad})

    async def _made(self, call: DoorCall, asked: dict[str, Any], place: str, more: dict[str, Any]) -> Response:
        job = (await call.api("POST", "/api/jobs", asked, headers=key_of(call))).json()
        return _started(call, job["id"], place, more)


def _policy(wish: DocumentWish, body: _JobBody) -> dict[str, Any]:
    policy: dict[str, Any] = {**wish.policy, "accept_status": _PAGES}
    if policy["retries"]:
        policy["retries"] = RETRIES
    if wish.seconds is not None:
        policy["timeout_seconds"] = wish.seconds
    if body.max_concurrency is not None:
        policy["concurrency"] = body.max_concurrency
    return policy


def _source(body: CrawlBody, version: str) -> dict[str, Any]:
    """Where the pages of a crawl come from."""
    deep = body.max_discovery_depth if body.max_discovery_depth is not None else body.max_depth
    include, exclude = _patterns(body.include_paths, body), _patterns(body.exclude_paths, body)
    if body.sitemap == "only":
        chosen = {"include": include, "exclude": exclude, "limit": body.limit}
        return {"sitemap_url": body.url, "sitemap": chosen}
    whole = body.crawl_entire_domain or body.allow_backward_links or (version == "v1" and not _is_path(body.url))
    scope = "any" if body.allow_external_links else "site" if body.allow_subdomains else "host" if whole else "path"
    follow = {
        "depth": 10 if deep is None else deep,
        "limit": body.limit,
        "scope": scope,
        "query": "drop" if body.ignore_query_parameters else "keep",
        "sitemap": body.sitemap == "include" and not body.ignore_sitemap,
        "include": include,
        "exclude": exclude,
    }
    return {"start_url": body.url, "follow": follow}


def _is_path(url: str) -> bool:
    return urlsplit(url).path not in ("", "/")


def _patterns(given: list[str], body: CrawlBody) -> list[str]:
    """Regular expressions that are looked for in the path, or in the whole address."""
    return [f"{'re' if body.regex_on_full_url else 'path'}:{each}" for each in given]


def _webhook(body: _JobBody, kind: str) -> dict[str, Any]:
    if body.webhook is None:
        return {}
    hook = body.webhook
    names = {"started": "job.created", "page": "item.ended", "completed": "job.completed", "failed": "job.failed"}
    form = {"form": f"firecrawl.{kind}", "metadata": hook.metadata}
    return {"webhook": {"url": hook.url, "events": [names[each] for each in hook.events], **form}}


_URL: Final = TypeAdapter(PageUrl)


def _valid(body: BatchBody | ExtractBody, version: str) -> tuple[list[str], list[str]]:
    """The addresses that can be used, and the others. Raises BadRequest if there are others that matter."""
    ignore = version == "v2" if body.ignore_invalid_urls is None else body.ignore_invalid_urls
    good: list[str] = []
    bad: list[str] = []
    for url in body.urls:
        try:
            good.append(_URL.validate_python(url))
        except ValidationError:
            bad.append(url[:500])
    if bad and not ignore:
        raise BadRequest(f"not an address: {bad[0][:200]}")
    if not good:
        raise BadRequest("none of the addresses can be used")
    return good, bad


def _started(call: DoorCall, job_id: str, place: str, more: dict[str, Any]) -> Response:
    return respond({"success": True, "id": job_id, "url": address(call, f"{place}/{job_id}"), **more})
