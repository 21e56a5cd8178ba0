"""Manifests that mean harm: each ends in a short refusal that names the file, quickly, and in bounded memory."""

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.manifest import MAX_BYTES, read_manifest
from scrapeyard.repository.manifest.schemas import MAX_BYTES as MAX_SCHEMA

pytestmark = pytest.mark.security

HEAD = 'id = "shop/product"\nversion = "1.4.2"\n'
BIDI = "\u202e"
SECONDS = 2.0
"""Of processor time."""


def keys(count: int, table: str = "") -> str:
    return "".join(f"{table}k{number} = 1\n" for number in range(count))


def nested(depth: int) -> str:
    return "config.x = " + "{ a = " * depth + "1" + " }" * depth


HOSTILE = {
    "nothing": "",
    "huge": HEAD + "#" * (10 * MAX_BYTES),
    "one line": HEAD + "name = '" + "x" * (MAX_BYTES - 100) + "'",
    "many unknown keys": HEAD + keys(20_000),
    "dotted key": HEAD + "a." * 100_000 + "b = 1",
    "quoted dotted key": HEAD + "config.'a'" + '."a"' * 50_000 + " = 1",
    "spaced dotted key": HEAD + "config" + " . a" * 50_000 + " = 1",
    "dotted key in a table": HEAD + "config = { a" + ".a" * 100_000 + " = 1 }",
    "one long word": HEAD + "a" * 250_000,
    "quotes": HEAD + "\"'" * 100_000,
    "deep arrays": HEAD + "config.x = " + "[" * 100_000,
    "deep arrays closed": HEAD + "config.x = " + "[" * 3000 + "]" * 3000,
    "deep tables": HEAD + nested(900),
    "deep tables that parse": HEAD + nested(60),
    "deep headers": HEAD + "[config" + ".a" * 40_000 + "]",
    "long number": HEAD + "config.x = " + "9" * 100_000,
    "long float": HEAD + "config.x = 1e" + "9" * 100_000,
    "long limit": HEAD + "limits.wall_seconds = 1e400",
    "hex bomb": HEAD + "config.x = 0x" + "f" * 200_000,
    "many hosts": HEAD + "allowed_hosts = [" + "'a.example'," * 201 + "]",
    "slow host": HEAD + "allowed_hosts = ['" + "a-" * 249 + "']",
    "slow requirement": HEAD + "requirements = ['a" + "[" * 498 + "']",
    "slow marker": HEAD + 'requirements = ["a; ' + "(" * 490 + '"]',
    "slow version": 'id = "a/b"\nversion = "1.0.0-' + "0." * 50_000 + '"',
    "null in id": 'id = "a/b\\u0000"\nversion = "1.0.0"',
    "bidi id": f'id = "a/b{BIDI}"\nversion = "1.0.0"',
    "look-alike id": 'id = "shоp/product"\nversion = "1.0.0"',  # noqa: RUF001
    "wide digits": 'id = "a/b"\nversion = "１.０.０"',  # noqa: RUF001
    "line end in id": 'id = "a/b\\n"\nversion = "1.0.0"',
    "bidi key": HEAD + f'"na{BIDI}me" = "x"',
    "escape in key": HEAD + '"\\u001b[31mred" = 1',
    "bidi entry": HEAD + f'entry = "{BIDI}yp.x.py:run"',
    "null in entry": HEAD + 'entry = "a\\u0000.py:run"',
    "entry out": HEAD + 'entry = "a/../../b.py:run"',
    "bidi host": HEAD + f'allowed_hosts = ["{BIDI}shop.example"]',
    "dunder entry": HEAD + "entry = \"scraper.py:__import__('os')\"",
    "prototype": HEAD + "[__class__]\nx = 1",
    "format string": HEAD + '"{where.__class__}" = 1',
    "schema bomb": HEAD + "[input]\npattern = '" + "(a+)+" * 2000 + "(?=x)'",
    "schema elsewhere": HEAD + "[input]\n'$ref' = 'http://169.254.169.254/latest'",
    "schema file out": HEAD + "[input]\nschema = '../../etc/x.json'",
    "secret as path": HEAD + "config.a = { secret = '../../etc/shadow' }",
    "secret nest": HEAD + "config.a = { secret = { secret = 'x' } }",
    "not text": "\udcff",
    "byte order mark": "\ufeff" + HEAD,
    "duplicate": HEAD + HEAD,
}


def refusal(text: bytes) -> str:
    with pytest.raises(ScraperInvalid) as caught:
        read_manifest(text, "scraper.toml", lambda _: b"{}")
    return caught.value.message


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_is_refused_shortly_and_quickly(name: str) -> None:
    text = HOSTILE[name].encode("utf-8", "surrogateescape")
    tracemalloc.start()
    began = time.process_time()
    try:
        told = refusal(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < SECONDS * 5  # tracing makes it several times slower
    assert peak < 64 << 20
    assert told.startswith("scraper.toml: ")
    assert len(told) < 1000
    assert told.isprintable()


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"9" * 100_000,
        b" " * (MAX_SCHEMA + 1),
        b'{"type": "object", "type": ' + b'"x' * 100,
        b"\xff\xfe",
        b'{"$ref": "file:///etc/passwd"}',
        b'{"properties": {"a": {"pattern": "' + b"(x{1,500}){1,500}" + b'"}}}',
    ],
)
def test_a_hostile_schema_file_is_refused_quickly(content: bytes) -> None:
    began = time.process_time()
    with pytest.raises(ScraperInvalid, match=r"^scraper\.toml: input") as caught:
        read_manifest(f"{HEAD}[input]\nschema = 'input.json'".encode(), "scraper.toml", lambda _: content)
    assert time.process_time() - began < SECONDS
    assert len(caught.value.message) < 1000


_TOP = ("id", "version", "schema", "name", "entry", "requirements", "capabilities", "allowed_hosts", "network", "lane")
_TABLES = ("config", "policy", "limits", "input", "output")
_BELOW = ("config.a", "limits.memory_mb", "policy.retries", "input.type", "input.schema")
_KEYS = st.sampled_from([*_TOP, *_TABLES, *_BELOW])
_SCALARS = st.sampled_from(
    [
        "1",
        "-1",
        "true",
        "nan",
        "inf",
        "1979-05-27",
        "''",
        "'a'",
        "'http'",
        "[]",
        "[1]",
        "['a']",
        "{}",
        "{ secret = 'a' }",
    ]
) | st.text(max_size=20).map(lambda text: "'''" + text + "'''")


@settings(deadline=None)
@given(st.lists(st.tuples(_KEYS, _SCALARS), max_size=6))
def test_any_mixture_is_read_or_refused_in_words(pairs: list[tuple[str, str]]) -> None:
    text = HEAD + "\n".join(f"{key} = {value}" for key, value in pairs)
    try:
        read_manifest(text.encode("utf-8", "replace"), "scraper.toml", lambda _: b"{}")
    except ScraperInvalid as error:
        assert error.message.startswith("scraper.toml: ")  # noqa: PT017 - either way out is good
        assert len(error.message) < 1000  # noqa: PT017
