"""Assertions for scripts: is this the right page, is the record complete? Each failure names what is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

from scrapeyard_sdk.page import Page


class CheckFailed(AssertionError):
    """A page or a record is not what the script expects. `missing` lists what was not found."""

    def __init__(self, message: str, missing: Sequence[str]) -> None:
        super().__init__(message)
        self.message = message
        self.missing = tuple(missing)


def assert_html_contains(page: Page | str, *needles: str) -> None:
    """Raises CheckFailed unless the page's HTML contains every needle, letter for letter."""
    html = page.html if isinstance(page, Page) else page
    missing = [needle for needle in needles if needle not in html]
    if missing:
        where = page.url if isinstance(page, Page) else "the page"
        raise CheckFailed(f"{where} does not contain {_listed(missing)}", missing)


def assert_fields_present(record: Mapping[str, Any], *fields: str) -> None:
    """Raises CheckFailed unless every field is there and holds something.

    A path goes into mappings and, by number, into lists: `offers[0].price` or `offers.0.price`. None, blank text
    and empty lists and mappings count as absent; 0 and False do not.
    """
    from scrapeyard_sdk.extract.paths import look

    missing = [field for field in fields if _is_absent(look(record, field))]
    if missing:
        raise CheckFailed(f"the record lacks {_listed(missing)}", missing)


def _is_absent(value: Any) -> bool:
    if value is None:
        return True
    return not value.strip() if isinstance(value, str) else isinstance(value, (list, tuple, dict)) and not value


def _listed(missing: Sequence[str]) -> str:
    return ", ".join(repr(each[:100]) for each in missing)
