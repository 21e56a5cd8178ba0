"""Entry functions, read from their text."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.signature import MAX_BYTES, read_signature


def schema(source: str) -> dict[str, Any]:
    return read_signature(source.encode(), "run", "scraper.py")


def problem(source: str | bytes) -> str:
    with pytest.raises(ScraperInvalid) as caught:
        read_signature(source.encode() if isinstance(source, str) else source, "run", "scraper.py")
    return caught.value.message


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("str", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("None", {"type": "null"}),
        ("Any", {}),
        ("typing.Any", {}),
        ("Whatever", {}),
        ("list", {"type": "array"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("typing.List[str]", {"type": "array", "items": {"type": "string"}}),
        ("list[Any]", {"type": "array"}),
        ("set[str]", {"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
        ("dict", {"type": "object"}),
        ("dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("Mapping[str, Any]", {"type": "object"}),
        ("tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        (
            "tuple[int, str]",
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        ("str | None", {"type": ["string", "null"]}),
        ("Optional[str]", {"type": ["string", "null"]}),
        ("Union[int, str, None]", {"type": ["integer", "string", "null"]}),
        ("int | list[int]", {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
        ("int | Unknown", {}),
        ("Literal['a', 'b', -1, None]", {"enum": ["a", "b", -1, None]}),
        ("Literal[Colour.RED]", {}),
        ("Annotated[int, Field(gt=0)]", {"type": "integer"}),
        ("'str | None'", {"type": ["string", "null"]}),
        ("'not a ( hint'", {}),
        ("x[0].List[int]", {}),
    ],
)
def test_hints_become_schemas(hint: str, expected: dict[str, Any]) -> None:
    assert schema(f"async def run(ctx, value: {hint}): ...")["properties"]["value"] == expected


def test_what_has_no_default_is_required_and_nothing_else_is_taken() -> None:
    assert schema("def run(ctx, url: str, *, pages: int = 3, depth): ...") == {
        "type": "object",
        "properties": {"url": {"type": "string"}, "pages": {"type": "integer", "default": 3}, "depth": {}},
        "required": ["url", "depth"],
        "additionalProperties": False,
    }


def test_defaults_are_told_where_they_are_json() -> None:
    properties = schema("def run(ctx, a=[1, 'x'], b=None, c: str = None, d=make(), e=b'x', f=1e999, g=(1,)): ...")[
        "properties"
    ]
    assert properties["a"] == {"default": [1, "x"]}
    assert properties["b"] == {"default": None}
    assert properties["c"] == {"type": ["string", "null"], "default": None}
    assert [properties[name] for name in "defg"] == [{}, {}, {}, {}]


def test_a_function_of_ctx_alone_takes_any_object() -> None:
    assert schema("def run(ctx): ...") == {"type": "object"}
    assert schema("def run(ctx, /): ...") == {"type": "object"}
    assert schema("def run(ctx, **rest): ...") == {"type": "object"}


def test_more_keywords_are_taken_where_the_function_takes_them() -> None:
    assert "additionalProperties" not in schema("def run(ctx, url: str, **rest): ...")
    assert schema("def run(ctx, **rest: int): ...")["additionalProperties"] == {"type": "integer"}


@pytest.mark.parametrize(
    "source",
    [
        "async def run(ctx, url: str):\n    yield 1",
        "def run(ctx, url: str):\n    yield 1",
        "@decorated\ndef run(ctx, url: str): ...",
        "def run(ctx): ...\ndef run(ctx, url: str): ...",
        "# coding: latin-1\ndef run(ctx, url: str): ...",
    ],
)
def test_every_kind_of_function_is_found(source: str) -> None:
    assert schema(source)["required"] == ["url"]


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("class run(BaseScraper):\n    async def scrape(self, url: str, pages: int = 3): ...", {"url", "pages"}),
        ("class run:\n    def scrape(self, *, url): yield 1", {"url"}),
        ("class run:\n    def scrape(self, input: dict): ...", set()),
        ("class run:\n    def scrape(self, inputs): ...", set()),
        ("class run:\n    def scrape(self): ...", set()),
    ],
)
def test_a_class_takes_what_its_method_takes(source: str, fields: set[str]) -> None:
    assert schema(source).get("properties", {}).keys() == fields


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def other(ctx): ...", "no function run"),
        ("from x import run", "no function run"),
        ("class A:\n    def run(self): ...", "no function run"),
        ("class A:\n    def scrape(self): ...", 'to run the class A, write entry = "scraper.py:A" in the manifest'),
        ("\nclass run: ...", "scraper.py:2: the class run has no method scrape"),
        ("\nclass run(Base): ...", "scraper.py:2: the class run has no method scrape"),
        ("class run:\n    def scrape(): ...", "scraper.py:2: scrape takes no self"),
        ("\n\ndef run(): ...", "scraper.py:3: run takes no ctx"),
        ("\ndef run(*, ctx): ...", "scraper.py:2: run takes no ctx"),
        ("\ndef run(ctx, *args): ...", "scraper.py:2: *args cannot be filled"),
        ("\ndef run(ctx, url, /): ...", "scraper.py:2: url is positional-only"),
        ("x = 1\ndef run(ctx:\n    pass", "scraper.py:2: "),
        ("x = 1\nreturn x\ndef run(ctx): ...", "scraper.py:2: 'return' outside function"),
        (b"\x00def run(ctx): ...", "scraper.py:1: "),
        (b"\xffdef run(ctx): ...", "scraper.py:1: "),
        ("-" * 200_000 + "1", "scraper.py:1: "),
        ("(" * 10_000, "scraper.py:1: "),
        ("x = " + "1+" * 200_000 + "1", "scraper.py:1: "),
        ("x = 1\n" * (MAX_BYTES // 6 + 1), "larger than"),
    ],
)
def test_what_cannot_be_called_is_refused_with_its_line(source: str | bytes, told: str) -> None:
    assert told in problem(source)


class _Garbage:
    """A cycle whose end runs Python code, wherever the collector happens to be called."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(200))


def test_scripts_may_be_read_by_many_threads_at_once() -> None:
    def read(_: int) -> dict[str, Any]:
        _Garbage()
        return schema(source)

    source = "def run(ctx, a: list[int] = [1, (2, [3, {4: (5, 6)}])]):\n" + "    x = (1 + (2 * (3 - (4 / 5))))\n" * 50
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50, 1, 1)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(read, range(20)))
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
    assert all(each == found[0] for each in found)
