"""The manifest's format as it is published: the page, the JSON Schema, and the reader say the same."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Backoff, BudgetLimits, Defaults, FetchPolicy, Limits
from scrapeyard.repository.manifest import manifest
from scrapeyard.repository.manifest.document import manifest_json_schema
from scrapeyard.repository.manifest.manifest import read_manifest
from scrapeyard.repository.manifest.policy import RULES

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "manifest.md").read_text("utf-8")
KEYS = {"schema", "input", "output", *manifest._READERS}
VALIDATOR = jsonschema_rs.validator_for(manifest_json_schema())
HEAD = {"id": "shop/product", "version": "1.4.2"}


def is_read(table: dict[str, Any]) -> bool:
    try:
        read_manifest(_toml(table).encode(), "scraper.toml", lambda _: b"{}")
    except ScraperInvalid:
        return False
    return True


def _toml(table: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {_value(value)}" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_value(child)}' for key, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def test_the_page_tells_every_key() -> None:
    rows = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| `")}
    for key in KEYS:
        assert f"`{key}`" in rows, f"docs/manifest.md does not tell of {key}"
    for key in RULES:
        assert any(f"`{key}`" in first for first in rows), f"docs/manifest.md does not tell of policy.{key}"
    defaults = manifest.Manifest(id="a/b", version="1.0.0")
    for key in ("entry", "network", "lane"):
        assert f"| `{getattr(defaults, key)}` |" in rows[f"`{key}`"]


def test_the_example_of_the_page_is_good_and_shows_every_key() -> None:
    (example,) = [text for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if text.startswith("schema")]
    read_manifest(example.encode(), "scraper.toml", lambda _: b"{}")
    assert VALIDATOR.is_valid(tomllib.loads(example))
    assert set(tomllib.loads(example)) == KEYS - {"network"}


def test_the_schema_knows_every_key_and_limit() -> None:
    properties = manifest_json_schema()["properties"]
    assert set(properties) == KEYS
    assert set(properties["limits"]["properties"]) == set(Limits.__struct_fields__)
    of_calls = {"fetching", "isolation"}  # of the manifest itself, not of its policy
    fields = {*Defaults.__struct_fields__, *FetchPolicy.__struct_fields__} - of_calls
    assert set(properties["policy"]["properties"]) == fields
    for table in (BudgetLimits, Backoff):
        name = table.__name__.removesuffix("Limits").lower()
        assert set(properties["policy"]["properties"][name]["properties"]) == set(table.__struct_fields__)


def test_the_published_schema_is_this_one() -> None:
    assert json.loads((DOCS / "manifest.schema.json").read_text("utf-8")) == manifest_json_schema()


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"schema": 1, "name": "x", "description": "y"},
        {"version": "2.0.0-rc.1+build.5"},
        {"entry": "src/a.b/main.py:go"},
        {"requirements": ["a>=1", "b[c]; python_version < '4'"]},
        {"capabilities": ["http", "browser"]},
        {"allowed_hosts": ["*.shop.example", "127.0.0.1", "::1"]},
        {"network": "direct", "lane": "heavy"},
        {"input": {"schema": "input.json"}, "output": {"type": "array"}},
        {"input": "input.json"},
        {"config": {"a": {"secret": "x"}, "b": [1, 2.5, True]}},
        {"policy": {"retries": 0, "timeout_seconds": 0.5, "priority": "high"}},
        {"policy": {"robots": "obey", "cache": "around", "max_age_seconds": 0, "profile": "none", "escalate": False}},
        {"policy": {"proxy": "home", "country": "US", "state": "ny", "city": "New York"}},
        {"policy": {"budget": {"requests": 1, "megabytes": 0.5, "residential_megabytes": 0, "seconds": 9}}},
        {"policy": {"backoff": {"kind": "linear", "first_seconds": 0, "cap_seconds": 60}}},
        {"limits": {"wall_seconds": 1.5, "memory_mb": 64}},
    ],
)
def test_both_take_what_is_good(more: dict[str, Any]) -> None:
    assert is_read({**HEAD, **more})
    assert VALIDATOR.is_valid({**HEAD, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"id": "Shop/Product"},
        {"id": 3},
        {"version": "1.0"},
        {"schema": 2},
        {"entri": "x"},
        {"entry": "/etc/a.py:run"},
        {"entry": "a.py"},
        {"requirements": "x"},
        {"requirements": [""]},
        {"capabilities": ["teleport"]},
        {"allowed_hosts": ["http://x.example"]},
        {"network": "open"},
        {"lane": "a b"},
        {"config": 3},
        {"policy": {"retries": 21}},
        {"policy": {"retry": 1}},
        {"policy": {"priority": "urgent"}},
        {"policy": {"robots": ""}},
        {"policy": {"cache": "on"}},
        {"policy": {"max_age_seconds": -1}},
        {"policy": {"escalate": 1}},
        {"policy": {"proxy": "Home"}},
        {"policy": {"country": "usa"}},
        {"policy": {"city": "x" * 61}},
        {"policy": {"city": "paris_session"}},
        {"policy": {"budget": 3}},
        {"policy": {"budget": {"requests": 0}}},
        {"policy": {"budget": {"requests": 1.5}}},
        {"policy": {"budget": {"megabytes": 0}}},
        {"policy": {"budget": {"gigabytes": 1}}},
        {"policy": {"backoff": {"kind": "random"}}},
        {"policy": {"backoff": {"first_seconds": True}}},
        {"limits": {"memory": 3}},
        {"limits": {"memory_mb": 3.5}},
        {"limits": {"wall_seconds": 0}},
        {"name": "x" * 201},
    ],
)
def test_both_refuse_what_is_wrong(more: dict[str, Any]) -> None:
    assert not is_read({**HEAD, **more})
    assert not VALIDATOR.is_valid({**HEAD, **more})


_VALUES = st.recursive(
    st.booleans()
    | st.integers(-3, 100)
    | st.sampled_from(["", "a", "http", "direct", "scraper.py:run", "a/b", "1.0.0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["retries", "priority", "budget", "requests", "memory_mb", "secret", "type", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(KEYS)), _VALUES, max_size=4))
def test_the_schema_refuses_nothing_that_is_read(more: dict[str, Any]) -> None:
    table = {**HEAD, **more}
    assert VALIDATOR.is_valid(table) or not is_read(table)
