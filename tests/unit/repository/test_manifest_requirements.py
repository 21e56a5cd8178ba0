"""requirements: what of PEP 508 is taken, and nothing that chooses where a package comes from."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.manifest.requirements import MAX_LENGTH, check_requirement
from scrapeyard.repository.manifest.values import Place

PLACE = Place("scraper.toml", "requirements")

GOOD = [
    "lxml",
    "price-parser>=0.3",
    "price_parser.x == 1.0.*",
    "a[b]",
    "a[b, c.d]>=1,<2,!=1.5",
    "a ~=1.4.2",
    "a (>=1,<2)",
    "a===1.0+local.1",
    "a>=1!2.0",
    "a>=1.0rc1; python_version < '3.13'",
    'a; sys_platform == "linux" and (python_version >= "3.11" or os_name != "nt")',
    "a; 'linux' in sys_platform",
    "a; 'win' not in sys_platform",
    "a; extra == 'dev'",
    "a ; ((python_version > '3'))",
]
BAD = [
    ("-r other.txt", "option"),
    ("--index-url=x", "option"),
    ("-e .", "option"),
    ("./wheel.whl", "path"),
    ("../x", "path"),
    ("~/x", "path"),
    ("a/b", "path"),
    ("c:\\wheels\\a", "path"),
    ("a @ file:///etc/passwd", "address"),
    ("git+https://git.example/a", "address"),
    ("a @ b", "address"),
    ("a b", "not a requirement"),
    ("a>=", "not a requirement"),
    ("a>1 <2", "not a requirement"),
    ("a[b", "not a requirement"),
    ("a[b]]", "not a requirement"),
    ("a (>=1", "not a requirement"),
    ("a ()", "not a requirement"),
    ("a\n>=1", "printable"),
    ("a>=1,\r\n<2", "printable"),
    ("a--hash=sha256:1", "not a requirement"),
    ("a==1 --hash=sha256:1", "not a requirement"),
    ("a$(id)", "not a requirement"),
    ("a;", "not a requirement"),
    ("a; ", "not a requirement"),
    ("a; python_version", "marker"),
    ("a; python_version <", "marker"),
    ("a; python < '3'", "marker"),
    ("a; (python_version < '3'", "marker"),
    ("a; python_version < '3' python_version", "marker"),
    ("a; python_version < '3' and", "marker"),
    ("a; __import__('os') == '1'", "marker"),
    ("a" * (MAX_LENGTH + 1), "at most"),
    ("а>=1", "ASCII"),  # noqa: RUF001 - a Cyrillic letter that looks like ours
]


@pytest.mark.parametrize("text", GOOD)
def test_a_name_with_versions_and_markers_is_taken(text: str) -> None:
    assert check_requirement(f" {text} ", PLACE) == text
    Requirement(text)


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_anything_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ScraperInvalid, match=r"^scraper\.toml: requirements: ") as caught:
        check_requirement(text, PLACE)
    assert reason in caught.value.message


_PARTS = st.sampled_from(
    [
        "a",
        "b-c",
        "[",
        "]",
        ",",
        ">=",
        "==",
        "1.0",
        "1.*",
        ";",
        " ",
        "(",
        ")",
        "and",
        "'x'",
        "os_name",
        "in",
        "not",
        "@",
        "/",
    ]
)


@given(st.lists(_PARTS, max_size=14).map("".join))
def test_what_we_take_is_a_requirement_without_an_address(text: str) -> None:
    try:
        good = check_requirement(text, PLACE)
    except ScraperInvalid:
        return
    try:
        found = Requirement(good)
    except InvalidRequirement:
        assert any(mark in good for mark in (">=", "==")), good  # versions are the resolver's to judge
    else:
        assert found.url is None


@pytest.mark.parametrize(
    "text", ["a" + "[" * 499, "a;" + "(" * 498, "a; " + "'x'=='x'or" * 49, "a-" * 250, "a" + ",<1" * 166]
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    with pytest.raises(ScraperInvalid):
        check_requirement(text, PLACE)
    assert time.process_time() - began < 5
