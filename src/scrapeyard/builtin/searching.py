"""The built-in scraper `builtin/search`: a web search by the outside engine that the operator set."""

from typing import Any

from msgspec.structs import asdict

from scrapeyard.builtin.scrapers import TEXT, told
from scrapeyard.builtin.services import Services
from scrapeyard.engines.solver.port import SearchQuestion

MAX_RESULTS = 100
_SECONDS = 60
_DOMAINS: dict[str, Any] = {
    "type": "array",
    "maxItems": 50,
    "items": {"type": "string", "minLength": 1, "maxLength": 253},
}
SEARCH_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "What is searched for."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_RESULTS,
            "default": 5,
            "description": "Maximum results of each source.",
        },
        "sources": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"enum": ["web", "news", "images"]},
            "description": "Where to search; without it, `web`.",
        },
        "categories": {
            "type": "array",
            "maxItems": 5,
            "items": {"enum": ["github", "research", "pdf", "developer", "gov"]},
            "description": "Kinds of pages to search for.",
        },
        "include_domains": {**_DOMAINS, "description": "Only pages of these sites."},
        "exclude_domains": {**_DOMAINS, "description": "No pages of these sites."},
        "tbs": {"type": "string", "minLength": 1, "maxLength": 100, "description": "How old results may be: `qdr:d`."},
        "location": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Where the searcher is."},
        "country": {"type": "string", "pattern": "^[A-Za-z]{2}$", "description": "Likewise, as a code."},
        "seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 300,
            "default": _SECONDS,
            "description": "Maximum seconds that the engine may take.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
_HITS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
SEARCH_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": told(TEXT, "As it was given."),
        "web": {**_HITS, "description": "`url`, `title`, `description`, `position` and `category` of each page."},
        "news": {**_HITS, "description": "`url`, `title`, `snippet`, `date`, `image_url` and so on of each article."},
        "images": {**_HITS, "description": "`url` of the page, `title`, `image_url` and its size."},
    },
    "required": ["query", "web", "news", "images"],
}


async def run_search(services: Services, given: dict[str, Any]) -> dict[str, Any]:
    """The hits. Raises FetchFailed as `Searcher`."""
    rest = {name: value for name, value in given.items() if name not in ("limit", "seconds")}
    timeout = max(1, int(given.get("seconds", _SECONDS) * 1000))
    found = await services.search(SearchQuestion(limit=given.get("limit", 5), timeout=timeout, **rest))
    return {
        "query": given["query"],
        "web": [asdict(hit) for hit in found.web],
        "news": [asdict(hit) for hit in found.news],
        "images": [asdict(hit) for hit in found.images],
    }
