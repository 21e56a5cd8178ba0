"""The OpenAPI document is complete: what linters ask for, what readers need, and examples that are true."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from scrapeyard.gateway.app import api_document
from scrapeyard.gateway.document.properties import TIMES, texts
from scrapeyard.settings import GatewaySettings
from tests.page_builtins import BUILTINS


@cache
def document() -> dict[str, Any]:
    return api_document(GatewaySettings(), [builtin.scraper for builtin in BUILTINS.values()])


def operations() -> list[dict[str, Any]]:
    return [operation for methods in document()["paths"].values() for operation in methods.values()]


def properties() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for owner, schema in document()["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield owner, name, field


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def examples() -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Of bodies and answers, with their schemas."""
    for operation in operations():
        parts = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in (content for part in parts for content in part.get("content", {}).values()):
            if "example" in content:
                yield operation["operationId"], content["schema"], content["example"]


def test_every_property_says_what_it_means() -> None:
    silent = [f"{owner}.{name}" for owner, name, field in properties() if not field.get("description")]
    assert silent == [], "describe it where it is defined, or in gateway/document/properties.toml"


def test_every_time_has_its_format() -> None:
    times = [(owner, name, field) for owner, name, field in properties() if name.endswith("_at") or name in TIMES]
    assert len(times) > 40
    assert [f"{owner}.{name}" for owner, name, field in times if "date-time" not in str(field)] == []


def test_every_operation_is_described() -> None:
    named = [tag["name"] for tag in document()["tags"]]
    for operation in operations():
        assert operation["summary"], operation
        assert operation["description"], operation["operationId"]
        assert set(operation["tags"]) <= set(named), operation["operationId"]
        assert all(parameter.get("description") for parameter in operation.get("parameters", ()))
    assert Counter(operation["operationId"] for operation in operations()).most_common(1)[0][1] == 1


def test_every_operation_shows_examples() -> None:
    for operation in operations():
        bodies = [operation.get("requestBody", {}).get("content", {}).get("application/json", {"example": ""})]
        answers = [answer for status, answer in operation["responses"].items() if status < "300"]
        bodies += [content for answer in answers for content in answer.get("content", {}).values()]
        missing = [body for body in bodies if "example" not in body and _is_described(body.get("schema", {}))]
        assert missing == [], operation["operationId"]


def _is_described(schema: dict[str, Any]) -> bool:
    """Bytes of any kind, and a Git host's own words, are not."""
    return bool(schema) and schema.get("format") != "binary"


def test_every_example_is_as_its_schema_says() -> None:
    wrong = {}
    for name, schema, example in examples():
        checker = jsonschema_rs.Draft202012Validator(
            {**schema, "components": document()["components"]}, validate_formats=True
        )
        if faults := [f"{fault.instance_path}: {fault.message}" for fault in checker.iter_errors(example)]:
            wrong[name] = faults
    assert wrong == {}


def test_results_of_built_in_scrapers_are_typed() -> None:
    schemas = document()["components"]["schemas"]
    for owner in ("RunDocument", "ItemDocument"):
        assert {"PageResult", "ProductResult"} <= set(references(schemas[owner]["properties"]["result"]))
    assert schemas["PageResult"]["properties"]["title"]["description"]
    assert BUILTINS["builtin/page"].scraper.output_schema is not None
    assert "description" not in BUILTINS["builtin/page"].scraper.output_schema["properties"]["title"]


def test_no_schema_is_unused_or_missing() -> None:
    assert set(references(document())) == set(document()["components"]["schemas"])


def test_the_document_says_whom_it_is_of() -> None:
    assert document()["servers"] == [{"url": "/", "description": "The gateway that serves this document."}]
    assert document()["info"]["contact"]
    assert document()["info"]["license"]["identifier"] == "Apache-2.0"


def test_no_text_is_left_over() -> None:
    names = {name for _, name, _ in properties()} | {f"{owner}.{name}" for owner, name, _ in properties()}
    for operation in operations():
        own = operation["operationId"]
        asked = [parameter["name"] for parameter in operation.get("parameters", ())]
        names |= {own, *asked, *(f"{own}.{name}" for name in asked)}
    assert sorted(set(texts().meanings) - names) == []
    assert sorted(set(texts().examples) - names) == []
    assert sorted(texts().absent - names) == []
