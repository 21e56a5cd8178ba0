"""Inputs against the scrapers' schemas, as the door tells it."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from scrapeyard.errors import InputInvalid, ScraperInvalid
from scrapeyard.model import Scraper
from scrapeyard.queues.port import MAX_MESSAGE_BYTES
from scrapeyard.repository.manifest.json_schemas import InputChecker, SchemaRefused

MAX_INPUT_BYTES = MAX_MESSAGE_BYTES - 65_536
"""Leaves room for the rest of the delivery."""
MAX_PATH = 200


class InputChecks:
    """Checks inputs and packs them for the queue."""

    def __init__(self) -> None:
        self._checker = InputChecker()

    def check(self, scraper: Scraper, given: Mapping[str, Any], place: str = "/input") -> Raw:
        """The input as JSON. Raises InputInvalid listing each wrong place under `place`, or ScraperInvalid."""
        try:
            faults = self._checker.errors(scraper, given)
        except SchemaRefused as error:
            raise ScraperInvalid(f"{scraper.ref}: its input schema is wrong: {error}") from None
        if faults:
            raise _invalid(faults, place)
        return _packed(given)


def _invalid(faults: list[dict[str, str]], place: str) -> InputInvalid:
    errors = [{"path": (place + fault["path"])[:MAX_PATH], "message": fault["message"]} for fault in faults]
    detail = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
    return InputInvalid(detail, errors=errors)


def _packed(given: Mapping[str, Any]) -> Raw:
    try:
        packed = msgspec.json.encode(given)
    except (OverflowError, RecursionError, ValueError) as error:
        raise InputInvalid(f"the input cannot be sent on: {error}") from None
    if len(packed) > MAX_INPUT_BYTES:
        raise InputInvalid(f"the input has {len(packed)} bytes; at most {MAX_INPUT_BYTES} can be delivered")
    return Raw(packed)
