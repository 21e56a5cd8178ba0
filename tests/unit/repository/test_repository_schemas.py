"""Inputs and results against schemas: short clear errors, and no schema that hangs."""

import time
from typing import Any

import pytest

from scrapeyard.model import Scraper, ScraperRef
from scrapeyard.repository.manifest.json_schemas import (
    MAX_ERRORS,
    MAX_MESSAGE,
    InputChecker,
    SchemaRefused,
    check_schema,
    estimate_cost,
)


def scraper(schema: dict[str, Any], output: dict[str, Any] | None = None, version: str = "1.0.0") -> Scraper:
    ref = ScraperRef(id="a/b", version=version)
    return Scraper(ref=ref, folder=None, input_schema=schema, output_schema=output)


def errors(schema: dict[str, Any], value: Any) -> list[dict[str, str]]:
    return InputChecker().errors(scraper(schema), value)


def test_a_good_input_has_no_errors() -> None:
    assert errors({"type": "object", "required": ["url"]}, {"url": "x"}) == []
    assert errors({}, {"anything": [1]}) == []


def test_an_error_tells_where_and_why() -> None:
    schema = {
        "type": "object",
        "properties": {"a/b": {"type": "array", "items": {"type": "integer"}}},
        "required": ["url"],
        "additionalProperties": False,
    }
    found = errors(schema, {"a/b": [1, "x"], "q": 1})
    assert {"path": "/a~1b/1", "message": '"x" is not of type "integer"'} in found
    assert {"path": "", "message": '"url" is a required property'} in found
    assert any("'q' was unexpected" in each["message"] for each in found)


def test_int_takes_no_bool_and_float_takes_int() -> None:
    assert errors({"properties": {"x": {"type": "integer"}}}, {"x": True})
    assert errors({"properties": {"x": {"type": "number"}}}, {"x": 1}) == []


def test_formats_are_checked() -> None:
    assert errors({"properties": {"u": {"format": "uri"}}}, {"u": "not a uri"})


def test_messages_and_their_number_are_bounded() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    found = errors(schema, {f"k{at}": "x" * 5000 for at in range(100)})
    assert len(found) == MAX_ERRORS
    assert all(len(each["message"]) <= MAX_MESSAGE and each["message"].endswith('"integer"') for each in found)


def test_a_large_value_tells_its_first_error_soon() -> None:
    started = time.process_time()
    found = errors({"properties": {"x": {"items": {"type": "string"}}}}, {"x": list(range(300_000))})
    assert [each["path"] for each in found] == ["/x/0"]
    assert time.process_time() - started < 10


def test_values_that_are_not_json_are_errors_not_exceptions() -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    for value in ({"x": b"bytes"}, {"x": "\ud800"}, {"x": deep}):
        assert errors({"properties": {"x": {"type": "integer"}}}, value)


def test_the_result_has_its_own_schema() -> None:
    checker = InputChecker()
    one = scraper({"type": "object"}, {"type": "array"})
    assert checker.errors(one, {}) == []
    assert checker.output_errors(one, [1]) == []
    assert checker.output_errors(one, {})[0]["message"].endswith('is not of type "array"')
    assert checker.output_errors(scraper({}, None, "2.0.0"), object()) == []


def test_the_checker_forgets_the_least_used() -> None:
    checker = InputChecker(capacity=2)
    for version in ("1.0.0", "2.0.0", "1.0.0", "3.0.0"):
        checker.errors(scraper({}, version=version), {})
    assert [key[0] for key in checker._validators] == ["a/b@1.0.0", "a/b@3.0.0"]


def doubling(steps: int) -> dict[str, Any]:
    parts: dict[str, Any] = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(steps)}
    return {"$defs": {**parts, f"d{steps}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def test_references_that_double_are_refused() -> None:
    check_schema(doubling(5))
    with pytest.raises(SchemaRefused, match="expand to more than"):
        check_schema(doubling(40))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}, "allOf": [{"properties": {"a": {"$ref": "#"}}}], "required": ["q"]},
        {"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}, "required": ["z"]}]},
        {"allOf": [{"$ref": "#"}] * 50, "required": ["q"]},
        {
            "$defs": {"n": {"$anchor": "n", "anyOf": [{"items": {"$ref": "#n"}}] * 9}},
            "properties": {"a": {"$ref": "#n"}},
        },
    ],
)
def test_recursion_with_branches_does_not_hang(schema: dict[str, Any]) -> None:
    check_schema(schema)
    for build in (lambda inner: {"a": inner}, lambda inner: {"a": [inner]}):
        value: Any = 1
        for _ in range(60):
            value = build(value)
        started = time.process_time()
        errors({**schema, "type": "object", "maxProperties": 0}, value)
        assert time.process_time() - started < 10


def test_a_plain_recursive_schema_tells_where() -> None:
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"type": "integer"}},
    }
    assert estimate_cost(tree).loops == 1
    value: Any = {"n": "x"}
    for _ in range(20):
        value = {"kids": [value]}
    assert [each["path"] for each in errors(tree, value)] == ["/kids/0" * 20 + "/n"]


def test_patterns_run_in_linear_time() -> None:
    started = time.process_time()
    assert errors({"properties": {"x": {"pattern": "^(a+)+$"}}}, {"x": "a" * 100_000 + "!"})
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "strin"}, "type"),
        ({"$schema": "http://127.0.0.1:9/meta"}, "meta-schema"),
        ({"$ref": "other.json"}, "refers outside"),
        ({"$dynamicRef": "http://127.0.0.1:9/#x"}, "refers outside"),
        ({"properties": {"a": {"$id": "http://x.example/a"}}}, r"\$id"),
        ({"allOf": [{"pattern": "x"}] * 65}, "65 patterns"),
        ({"$defs": {str(at): {"$ref": f"#/$defs/{at + 1}"} for at in range(500)}, "$ref": "#/$defs/0"}, "steps"),
    ],
)
def test_what_cannot_be_used_is_refused(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(SchemaRefused, match=told):
        check_schema(schema)


def test_data_in_a_schema_is_not_taken_for_references() -> None:
    check_schema({"properties": {"$ref": {"type": "string"}}, "enum": [{"$ref": "http://x.example"}]})
