"""Inputs against the scrapers' schemas."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol, cast

import jsonschema_rs
import msgspec
from msgspec import Raw

from scrapeyard.errors import InputInvalid, ScraperInvalid
from scrapeyard.model import Scraper
from scrapeyard.queues.port import MAX_MESSAGE_BYTES

MAX_INPUT_BYTES = MAX_MESSAGE_BYTES - 65_536
"""Leaves room for the rest of the delivery."""
MAX_SCHEMAS = 256
MAX_ERRORS = 20
MAX_MESSAGE = 500
MAX_PATH = 200


class _Schema(Protocol):
    def is_valid(self, instance: Any) -> bool: ...
    def iter_errors(self, instance: Any) -> Any: ...


class InputChecks:
    """Compiles each scraper version's schema once and keeps the MAX_SCHEMAS used last. Fetches no outside `$ref`."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[str, _Schema] = OrderedDict()

    def check(self, scraper: Scraper, given: Mapping[str, Any], place: str = "/input") -> Raw:
        """The input as JSON. Raises InputInvalid listing each wrong place under `place`, or ScraperInvalid."""
        try:
            if scraper.input_schema and not self._schema(scraper).is_valid(given):
                raise _invalid(self._schema(scraper), given, place)
            return _bounded(msgspec.json.encode(given))
        except (OverflowError, RecursionError, ValueError) as error:
            raise InputInvalid(f"the input cannot be checked: {error}") from None

    def _schema(self, scraper: Scraper) -> _Schema:
        key = f"{scraper.ref}#{scraper.ref.digest}"
        found = self._schemas.get(key)
        if found is None:
            found = self._schemas[key] = _compile(scraper)
            if len(self._schemas) > MAX_SCHEMAS:
                self._schemas.popitem(last=False)
        self._schemas.move_to_end(key)
        return found


def _bounded(packed: bytes) -> Raw:
    if len(packed) > MAX_INPUT_BYTES:
        raise InputInvalid(f"the input has {len(packed)} bytes; at most {MAX_INPUT_BYTES} can be delivered")
    return Raw(packed)


def _compile(scraper: Scraper) -> _Schema:
    try:
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)
        compiled = jsonschema_rs.validator_for(scraper.input_schema, offline=True, pattern_options=options)
        return cast("_Schema", compiled)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise ScraperInvalid(f"{scraper.ref}: its input schema is wrong: {str(error)[:MAX_MESSAGE]}") from None


def _invalid(schema: _Schema, given: Mapping[str, Any], place: str) -> InputInvalid:
    errors: list[dict[str, str]] = []
    for error in schema.iter_errors(given):
        pointer = place + "".join(f"/{part}" for part in error.instance_path)
        errors.append({"path": pointer[:MAX_PATH], "message": error.message[:MAX_MESSAGE]})
        if len(errors) == MAX_ERRORS:
            break
    detail = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
    return InputInvalid(detail, errors=errors)
