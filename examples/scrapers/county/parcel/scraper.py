"""One parcel of the practice county: search form, list of results, parcel, values and tax bills, as one record."""

from typing import Any

from scrapeyard_sdk import (
    BaseHttpScraper,
    Node,
    Page,
    ScraperError,
    assert_fields_present,
    assert_html_contains,
    extract_text,
    select_one,
)

SESSION = "register"
"""The form wants the cookie that its page sets."""
MAX_PAGES = 20


class ParcelScraper(BaseHttpScraper):
    async def scrape(self, site: str, parcel_id: str) -> dict[str, Any]:
        parcel = await self.get(await self.find(site, parcel_id))
        if extract_text(parcel, ".parcel-id") != parcel_id:
            raise ScraperError(f"{parcel.url} is not the page of {parcel_id}", "retryable")
        values = await self.get(link(parcel, "a.values"))
        return {
            "parcel_id": parcel_id,
            "url": parcel.url,
            **facts(parcel),
            "values": assessed_values(values),
            "tax_bills": await self.tax_bills(link(parcel, "a.taxes")),
        }

    async def find(self, site: str, parcel_id: str) -> str:
        """The address of the parcel's page. A search also finds parcels whose numbers begin alike."""
        form = await self.get(f"{site}/county", session=SESSION)
        assert_html_contains(form, "form_id")
        fields = {"form_id": form.attr("input[name=form_id]", "value"), "query": parcel_id}
        results = await self.fetch(f"{site}/county/search", form=fields, session=SESSION)
        if results.status == 403:
            raise ScraperError("the form has expired", "retryable", after=1)
        for _ in range(MAX_PAGES):
            results.raise_for_status()
            for result in results.css("a.result"):
                if result.text() == parcel_id:
                    return results.url_join(result.attr("href") or "")
            following = results.attr("a[rel=next]", "href")
            if following is None:
                break
            results = await self.fetch(results.url_join(following), session=SESSION)
        raise ScraperError(f"the county has no parcel {parcel_id}", "non_retryable")

    async def tax_bills(self, url: str) -> list[dict[str, Any]]:
        """The bills of all years, from page to page."""
        bills: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = await self.get(url)
            bills += [
                {"year": int(year), "amount": money(amount), "state": state} for year, amount, state in rows(page)
            ]
            following = page.attr("a[rel=next]", "href")
            if following is None:
                return bills
            url = page.url_join(following)
        raise ScraperError(f"the tax bills have more than {MAX_PAGES} pages", "non_retryable")

    def validate_result(self, result: dict[str, Any]) -> None:
        assert_fields_present(result, "address", "use", "values.0.total", "tax_bills.0.amount")
        years = [each["year"] for each in result["values"]]
        if years != sorted(set(years), reverse=True):
            raise ValueError(f"years out of order: {years}")


def link(page: Page, selector: str) -> str:
    return page.url_join(select_one(page, selector, required=True).attr("href") or "")


def facts(page: Page) -> dict[str, Any]:
    told = dict(zip(page.texts(".facts dt"), page.texts(".facts dd"), strict=True))
    built = told.get("Built")
    return {
        "address": told.get("Address"),
        "use": told.get("Use"),
        "square_feet": int(told["Lot"].removesuffix(" sq ft").replace(",", "")),
        "built": int(built) if built else None,
    }


def assessed_values(page: Page) -> list[dict[str, Any]]:
    return [
        {"year": int(year), "land": money(land), "building": money(building), "total": money(total)}
        for year, land, building, total in rows(page)
    ]


def rows(page: Page) -> list[list[str]]:
    return [cells(row) for row in page.css("table tbody tr")]


def cells(row: Node) -> list[str]:
    return [cell.text() for cell in row.css("td")]


def money(text: str) -> float:
    return float(text.removeprefix("$").replace(",", ""))
