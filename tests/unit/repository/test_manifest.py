"""scraper.toml: what is taken, and how each fault is named."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Backoff, BudgetLimits, Defaults, FetchPolicy, Limits
from scrapeyard.repository.manifest.manifest import MAX_BYTES, Manifest, read_manifest

HEAD = 'id = "shop/product"\nversion = "1.4.2"\n'


def read(text: str, files: dict[str, bytes] | None = None) -> Manifest:
    def read_file(name: str) -> bytes:
        if name not in (files or {}):
            raise FileNotFoundError(2, "No such file or directory")
        return (files or {})[name]

    return read_manifest(text.encode(), "scraper.toml", None if files is None else read_file)


def problem(text: str, files: dict[str, bytes] | None = None) -> str:
    with pytest.raises(ScraperInvalid) as caught:
        read(text, files)
    return caught.value.message


def test_two_keys_are_enough() -> None:
    manifest = read(HEAD)
    assert manifest == Manifest(id="shop/product", version="1.4.2")
    assert (manifest.entry_file, manifest.entry_function) == ("scraper.py", "run")
    assert manifest.input_schema is None
    assert manifest.limits == Limits()


def test_every_key_is_kept() -> None:
    manifest = read(
        """
        schema = 1
        id = "shop/product"
        version = "2.0.0-rc.1+build.5"
        name = "Product"
        description = "One product."
        entry = "src/main.py:go"
        requirements = ["price-parser>=0.3"]
        capabilities = ["http", "browser"]
        allowed_hosts = ["Shop.example", "*.shop.example", "127.0.0.1", "::1"]
        network = "direct"
        lane = "heavy"
        [input]
        type = "object"
        [output.schema]
        type = "array"
        [config]
        nested = { deep = [1, 2.5, "x", true] }
        key = [{ at = { secret = "api_key" } }]
        [policy]
        retries = 3
        timeout_seconds = 20
        priority = "low"
        [limits]
        wall_seconds = 1.5
        memory_mb = 64
        """
    )
    assert manifest.entry == "src/main.py:go"
    assert manifest.requirements == ("price-parser>=0.3",)
    assert manifest.capabilities == ("http", "browser")
    assert manifest.allowed_hosts == ("shop.example", "*.shop.example", "127.0.0.1", "::1")
    assert (manifest.network, manifest.lane) == ("direct", "heavy")
    assert manifest.input_schema == {"type": "object"}
    assert manifest.output_schema == {"type": "array"}
    assert manifest.config == {
        "nested": {"deep": [1, 2.5, "x", True]},
        "key": [{"at": {"secret": "api_key"}}],
    }
    assert manifest.policy == Defaults(retries=3, timeout_seconds=20, priority="low")
    assert manifest.limits == Limits(wall_seconds=1.5, memory_mb=64)


@pytest.mark.parametrize(
    ("text", "key", "remedy"),
    [
        ('version = "1.0.0"', "id", "missing"),
        ('id = "a/b"', "version", "missing"),
        ('id = "Shop/Product"\nversion = "1.0.0"', "id", "site/task"),
        ('id = "a/b\\n"\nversion = "1.0.0"', "id", "site/task"),
        ('id = "a/b"\nversion = "1.0"', "version", "semantic version"),
        ('id = "a/b"\nversion = "v1.0.0"', "version", "semantic version"),
        ('id = "a/b"\nversion = "1.0.01"', "version", "semantic version"),
        ('id = "a/b"\nversion = 1.0', "version", "semantic version"),
        (HEAD + "schema = 2", "schema", "schema = 1"),
        (HEAD + "schema = true", "schema", "schema = 1"),
        (HEAD + 'entri = "a.py:run"', "entri", "did you mean entry?"),
        (HEAD + 'zzz = "x"', "zzz", "known are"),
        (HEAD + 'entry = "../a.py:run"', "entry", "inside the scraper's folder"),
        (HEAD + 'entry = "/etc/a.py:run"', "entry", "inside the scraper's folder"),
        (HEAD + 'entry = "a.py"', "entry", "file.py:function"),
        (HEAD + 'entry = "a.txt:run"', "entry", "file.py:function"),
        (HEAD + 'entry = "a.py:1run"', "entry", "file.py:function"),
        (HEAD + 'requirements = "x"', "requirements", "list"),
        (HEAD + 'requirements = [""]', "requirements", "1 to 500"),
        (HEAD + 'allowed_hosts = ["http://x.example"]', "allowed_hosts", "without scheme"),
        (HEAD + 'allowed_hosts = ["x.example:80"]', "allowed_hosts", "without scheme"),
        (HEAD + 'allowed_hosts = ["x.*.example"]', "allowed_hosts", "without scheme"),
        (HEAD + 'capabilities = ["Browser"]', "capabilities", "there are: http, browser, captcha, ai"),
        (HEAD + 'network = "open"', "network", '"engines" or "direct"'),
        (HEAD + 'lane = "a b"', "lane", "lower-case"),
        (HEAD + "name = 3", "name", "text"),
        (HEAD + "limits = 3", "limits", "table"),
        (HEAD + "limits.memory = 3", "limits.memory", "did you mean memory_mb?"),
        (HEAD + "limits.memory_mb = 3.5", "limits.memory_mb", "whole number"),
        (HEAD + "limits.memory_mb = true", "limits.memory_mb", "whole number"),
        (HEAD + "limits.wall_seconds = 0", "limits.wall_seconds", "above 0"),
        (HEAD + "limits.wall_seconds = nan", "limits.wall_seconds", "above 0"),
        (HEAD + "limits.wall_seconds = inf", "limits.wall_seconds", "above 0"),
        (HEAD + "config.when = 2020-01-01", "config.when", "as text"),
        (HEAD + "config.x = nan", "config.x", "finite"),
        (HEAD + "config.x = 99999999999999999999", "config.x", "64 bits"),
        (HEAD + "policy = 3", "policy", "table"),
        (HEAD + "policy.retry = 3", "policy.retry", "did you mean retries?"),
        (HEAD + "policy.retries = 21", "policy.retries", "0 to 20"),
        (HEAD + "policy.retries = -1", "policy.retries", "0 to 20"),
        (HEAD + "policy.retries = 1.0", "policy.retries", "whole number"),
        (HEAD + "policy.retries = true", "policy.retries", "whole number"),
        (HEAD + "policy.timeout_seconds = 0", "policy.timeout_seconds", "above 0"),
        (HEAD + "policy.timeout_seconds = nan", "policy.timeout_seconds", "above 0"),
        (HEAD + "policy.timeout_seconds = 86401", "policy.timeout_seconds", "86400"),
        (HEAD + "policy.priority = 'urgent'", "policy.priority", '"high", "normal" or "low"'),
        (HEAD + "policy.priority = ['high']", "policy.priority", '"high", "normal" or "low"'),
        (HEAD + 'capabilities = ["teleport"]', "capabilities", "'teleport' is not known"),
        (HEAD + 'requirements = ["a @ https://x.example/a.whl"]', "requirements", "names an address"),
        (HEAD + 'config.a = { secret = "x", other = 1 }', "config.a", "alone"),
        (HEAD + "config.a = { secret = 3 }", "config.a", "alone"),
        (HEAD + 'config.a = { secret = "API KEY" }', "config.a", "alone"),
        (HEAD + 'config.a.b = [[{ secret = "../x" }]]', "config.a.b", "alone"),
        (HEAD + "input = 3", "input", "JSON Schema"),
        (HEAD + "input.type = 'strin'", "input", "JSON Schema"),
        (HEAD + "input.type = 'string'", "input", "always an object"),
        (HEAD + "[input]\ntype = 'object'\nschema = 'a.json'", "input", "both"),
        (HEAD + "[output]\nschema = 'a.json'", "output.schema", "no folder"),
        (HEAD + "[output]\n'$ref' = 'http://127.0.0.1:9/x.json'", "output", "refers outside"),
        (HEAD + "[output]\n'$ref' = 'file:///etc/passwd'", "output", "refers outside"),
        (HEAD + "[output]\n'$ref' = '#/nowhere'", "output", "JSON Schema"),
        (HEAD + "[output]\npattern = '^(?=a)b'", "output", "look-around"),
        (HEAD + "[output]\npattern = '(a{1000}){1000}'", "output", "pattern"),
    ],
)
def test_a_fault_names_file_key_and_remedy(text: str, key: str, remedy: str) -> None:
    told = problem(text)
    assert told.startswith(f"scraper.toml: {key}")
    assert remedy in told


def test_all_faults_are_told_at_once() -> None:
    told = problem("nmae = 'x'\nentry = 'run'\nlane = 1\n[output]\ntype = 'strnig'", {})
    assert told.startswith("scraper.toml: nmae: no such key; did you mean name?; also id: missing; add it, e.g. ")
    assert told.count("scraper.toml") == 1
    for key in ("version: missing", "entry: must be", "lane: must be", "output: "):
        assert f"; also {key}" in told


def test_of_many_faults_the_first_are_told() -> None:
    told = problem(HEAD + "\n".join(f"x{number} = 1" for number in range(50)))
    assert told.count("; also ") == 10
    assert told.endswith("; also 40 more")


def test_without_a_folder_a_schema_in_a_file_is_no_further_fault() -> None:
    assert "folder" not in problem("id = 'a/b'\n[output]\nschema = 'a.json'")


def test_secret_directly_below_config_is_a_key_like_any_other() -> None:
    assert read(HEAD + '[config]\nsecret = "plain"\nother = 1').config == {"secret": "plain", "other": 1}


def test_a_capability_named_twice_counts_once() -> None:
    assert read(HEAD + 'capabilities = ["http", "ai", "http"]').capabilities == ("http", "ai")


def test_a_schema_may_stand_in_a_file() -> None:
    schema = {"type": "object", "required": ["url"]}
    text = HEAD + '[input]\nschema = "schemas/input.json"'
    assert read(text, {"schemas/input.json": json.dumps(schema).encode()}).input_schema == schema
    assert "No such file" in problem(text, {})
    assert "is not JSON" in problem(text, {"schemas/input.json": b"{"})
    assert "is not JSON" in problem(text, {"schemas/input.json": b"[" * 100_000})
    assert "must be a JSON Schema" in problem(text, {"schemas/input.json": b"[1]"})
    assert "larger than" in problem(text, {"schemas/input.json": b" " * (MAX_BYTES + 1)})
    assert "finite" in problem(text, {"schemas/input.json": b'{"maximum": NaN}'})


@pytest.mark.parametrize("path", ["../x.json", "/etc/x.json", "x.toml", "a\\b.json"])
def test_a_schema_file_stays_inside_the_folder(path: str) -> None:
    assert "inside the scraper's folder" in problem(f"{HEAD}[input]\nschema = '{path}'", {})


def test_sizes_and_depths_are_bounded() -> None:
    assert "larger than" in problem(HEAD + "#" * MAX_BYTES)
    assert "not UTF-8" in _bytes_problem(HEAD.encode() + b'name = "\xff"')
    assert "not TOML we read: Exceeds the limit" in problem(HEAD + "config.x = " + "9" * 5000)
    assert "scraper.toml" in problem(HEAD + "config.x = " + "[" * 5000 + "]" * 5000)
    assert "nested deeper" in problem(HEAD + "config.x = " + "[" * 40 + "]" * 40)
    assert "not TOML" in problem("id = ")


def _bytes_problem(text: bytes) -> str:
    with pytest.raises(ScraperInvalid) as caught:
        read_manifest(text, "scraper.toml")
    return caught.value.message


@given(st.binary(max_size=300))
def test_any_bytes_are_a_manifest_or_a_clear_fault(text: bytes) -> None:
    for content in (text, HEAD.encode() + text):
        try:
            read_manifest(content, "scraper.toml")
        except ScraperInvalid as error:
            assert error.message.startswith("scraper.toml: ")  # noqa: PT017 - either way out is good


def test_the_policy_of_fetches_stands_beside_the_rest() -> None:
    manifest = read(
        HEAD + '[policy]\nretries = 1\nproxy = "home"\ncountry = "us"\n'
        'budget = { requests = 5 }\nbackoff = { kind = "linear", first_seconds = 2 }\n'
    )
    wanted = FetchPolicy(
        proxy="home",
        country="us",
        budget=BudgetLimits(requests=5),
        backoff=Backoff(kind="linear", first_seconds=2),
    )
    assert manifest.policy == Defaults(retries=1, fetching=wanted)


@pytest.mark.parametrize(
    ("line", "key", "remedy"),
    [
        ("budgt = 1", "policy.budgt", "did you mean budget?"),
        ("budget = { request = 1 }", "policy.budget.request", "did you mean requests?"),
        ("budget = { requests = 0 }", "policy.budget.requests", "whole number from 1"),
        ("budget = 7", "policy.budget", "[policy.budget]"),
        ("max_age_seconds = nan", "policy.max_age_seconds", "number from 0"),
        ('country = "usa"', "policy.country", "two letters"),
        ('escalate = "yes"', "policy.escalate", "true or false"),
    ],
)
def test_a_wrong_policy_is_refused_with_its_remedy(line: str, key: str, remedy: str) -> None:
    with pytest.raises(ScraperInvalid, match=re.escape(remedy)) as refused:
        read(HEAD + f"[policy]\n{line}\n")
    assert refused.value.details["key"] == key
