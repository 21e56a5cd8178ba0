"""The built-in scraper `builtin/extract`: fields of a page by name and type, without selectors or a script."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from scrapeyard.builtin.extraction.fields import WantedFields
from scrapeyard.builtin.extraction.ladder import Extracted, Ladder, PageSource
from scrapeyard.builtin.fetching import content_type
from scrapeyard.builtin.pages.kinds import HTML, kind_of
from scrapeyard.builtin.pages.port import PageUnreadable
from scrapeyard.builtin.requests import request_of
from scrapeyard.builtin.services import Services
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.models.port import ModelFailed
from scrapeyard.errors import BadRequest, FetchFailed
from scrapeyard.model import ExitReason


class ExtractScraper:
    """Fetches, or takes what is given, and climbs the ladder."""

    def __init__(self, ladder: Ladder, sites: Sites) -> None:
        self._ladder = ladder
        self._sites = sites

    async def __call__(self, services: Services, given: dict[str, Any]) -> dict[str, Any]:
        """`given` fits EXTRACT_INPUT. Raises FetchFailed, also with `bad_result` if the data do not fit the schema."""
        try:
            return await self._extract(services, given)
        except PageUnreadable as error:
            raise FetchFailed(ExitReason.FETCH_DECODE, error.message) from None
        except ModelFailed as error:
            raise _model_failed(error, error.message) from None

    async def _extract(self, services: Services, given: dict[str, Any]) -> dict[str, Any]:
        options = self._ladder.options(given)
        wanted = await self._ladder.wanted(given, services, options)
        _check_names(given, wanted)
        page, status = await self._page(services, given)
        taught, warnings = await self._learn(services, given, wanted, (page, status))
        if page is None:
            warnings.append(f"nothing is read: the site answered {status}, or the page is not HTML")
            found = Extracted(answers={})
        else:
            found = await self._ladder.read(page, wanted, options, services)
        return {
            "url": given.get("url"),
            "final_url": (page.url or None) if page is not None else given.get("url"),
            "status": status,
            "data": _data(wanted, found, options.least, status) if page is not None else None,
            "fields": {name: answer.shown() for name, answer in found.answers.items()},
            "pattern": _pattern(found),
            "taught": taught,
            "model": _model(found),
            "warnings": [*warnings, *found.warnings],
        }

    async def _page(self, services: Services, given: Mapping[str, Any]) -> tuple[PageSource | None, int | None]:
        """The page, and the site's status; None for a page that cannot be read or is an error page."""
        url = given.get("url", "")
        if "html" in given:
            body = str(given["html"]).encode("utf-8", "replace")
            return PageSource(url=url, body=body, site=self._site(url)), None
        response = await services.fetch(request_of(dict(given)))
        if response.status >= 400 or kind_of(content_type(response), response.body) != HTML:
            return None, response.status
        site = self._site(response.url)
        page = PageSource(url=response.url, body=response.body, encoding=response.encoding, site=site)
        return page, response.status

    async def _learn(
        self,
        services: Services,
        given: Mapping[str, Any],
        wanted: WantedFields,
        own: tuple[PageSource | None, int | None],
    ) -> tuple[int, list[str]]:
        """Learn from the examples of the call: how many the pattern keeps, and warnings about those that are of no use.
        One for the page of the call itself is learned from `own`, the page as it was fetched for the call."""
        taught, warnings = 0, list[str]()
        for number, example in enumerate(given.get("examples") or (), 1):
            asked = _address(example)
            page, status = own if asked == _address(given) else await self._page(services, asked)
            if page is None:
                warnings.append(f"example {number}: {example.get('url')} answered {status}, or is no HTML page")
                continue
            values = {name: value for name, value in example["values"].items() if _is_wanted(name, wanted)}
            is_kept, told = await self._ladder.teach(page, wanted, values, services)
            taught += is_kept
            warnings += [f"example {number}: {each}" for each in told]
        return taught, warnings

    def _site(self, url: str) -> str:
        host = urlsplit(url).hostname or ""
        return self._sites.of(host) if host else ""


def _address(page: Mapping[str, Any]) -> dict[str, Any]:
    return {name: page[name] for name in ("url", "html") if name in page}


def _is_wanted(name: str, wanted: WantedFields) -> bool:
    return any(field.name == name for field in wanted.fields)


def _check_names(given: Mapping[str, Any], wanted: WantedFields) -> None:
    named = [*(given.get("fallback") or ()), *(name for each in given.get("examples") or () for name in each["values"])]
    unknown = sorted({name for name in named if not _is_wanted(name, wanted)})
    if unknown:
        raise BadRequest(f"fallback and examples name fields that are not wanted: {', '.join(unknown)[:300]}")


def _data(wanted: WantedFields, found: Extracted, least: float, status: int | None) -> dict[str, Any]:
    """The values that are sure enough. Raises FetchFailed (`bad_result`) if they do not fit the schema."""
    values = {
        name: answer.value
        for name, answer in found.answers.items()
        if answer.value is not None and answer.confidence >= least
    }
    data = wanted.data(values)
    if not (faults := wanted.faults(data)):
        return data
    words = f"the data do not fit the schema: {faults[0]}"
    if found.failure is not None:
        raise _model_failed(found.failure, f"{words}; {found.failure.message}")
    raise FetchFailed(ExitReason.BAD_RESULT, words, site_status=status, errors=faults, warnings=found.warnings)


def _pattern(found: Extracted) -> dict[str, Any] | None:
    pattern = found.pattern
    if pattern is None:
        return None
    return {"id": pattern.id, "version": pattern.version, "status": pattern.status, "examples": pattern.taught}


def _model(found: Extracted) -> dict[str, Any] | None:
    if not found.models:
        return None
    return {
        "name": found.models[0].model,
        "calls": len(found.models),
        "cached": sum(each.cached for each in found.models),
        "tokens": sum(each.input_tokens + each.output_tokens for each in found.models),
        "cost": round(sum(each.cost for each in found.models), 6),
    }


def _model_failed(error: ModelFailed, words: str) -> FetchFailed:
    if error.retry_after is None:
        return FetchFailed(error.reason, words)
    return FetchFailed(error.reason, words, retry_after=error.retry_after)
