"""The index of a repository: what is good is offered, what is not is told, one entry never spoils another."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapeyard.errors import SourceUnavailable
from scrapeyard.repository.sources.indexed import document
from scrapeyard.repository.sources.indexed.document import MAX_FAULTS, path_fault, read_offer
from scrapeyard.repository.sources.port import Offer

SHA = "0123456789abcdef" * 4
GOOD = {"archive": "archives/a.tar.gz", "size": 100, "sha256": SHA}


def read(scrapers: Any, **more: Any) -> Offer:
    return read_offer(json.dumps({"schema": 1, "scrapers": scrapers, **more}).encode(), "m", "the index")


def test_a_good_document() -> None:
    entry = {"versions": {"1.0.0": GOOD, "1.1.0": {**GOOD, "digest": SHA, "later": 1}}, "channels": {"stable": "1.0.0"}}
    offer = read({"shop/product": {**entry, "owner": "us"}}, made_by="hand")
    assert [(release.id, release.version) for release in offer.releases] == [
        ("shop/product", "1.0.0"),
        ("shop/product", "1.1.0"),
    ]
    assert (offer.releases[0].mark, offer.releases[0].place, offer.releases[0].size) == (SHA, GOOD["archive"], 100)
    assert offer.channels == {"shop/product": {"stable": "1.0.0"}}
    assert (offer.mark, offer.faults) == ("m", ())


BAD_VERSIONS: dict[str, tuple[str, Any]] = {
    "version": ("1.0", GOOD),
    "huge version": ("9" * 10_000, GOOD),
    "no object": ("1.0.0", 5),
    "nothing": ("1.0.0", {}),
    "no size": ("1.0.0", {"archive": "a.zip", "sha256": SHA}),
    "text as size": ("1.0.0", {**GOOD, "size": "100"}),
    "true as size": ("1.0.0", {**GOOD, "size": True}),
    "negative": ("1.0.0", {**GOOD, "size": -1}),
    "empty": ("1.0.0", {**GOOD, "size": 0}),
    "huge": ("1.0.0", {**GOOD, "size": 10**12}),
    "beyond any number": ("1.0.0", {**GOOD, "size": 10**30}),
    "short digest": ("1.0.0", {**GOOD, "sha256": "abc"}),
    "capital digest": ("1.0.0", {**GOOD, "sha256": SHA.upper()}),
    "bad content digest": ("1.0.0", {**GOOD, "digest": "x"}),
    "path up": ("1.0.0", {**GOOD, "archive": "../a.zip"}),
    "other server": ("1.0.0", {**GOOD, "archive": "http://evil/a.zip"}),
    "list as path": ("1.0.0", {**GOOD, "archive": ["a.zip"]}),
}


@pytest.mark.parametrize("what", BAD_VERSIONS)
def test_a_bad_version_spoils_only_itself(what: str) -> None:
    version, entry = BAD_VERSIONS[what]
    offer = read({"shop/product": {"versions": {"2.0.0": GOOD, version: entry}}, "shop/other": {"versions": {}}})
    assert [release.version for release in offer.releases] == ["2.0.0"]
    (fault,) = offer.faults
    assert fault.id == "shop/product"
    assert fault.problem
    assert len(fault.problem) < 600


@pytest.mark.parametrize("entry", [None, 5, [], {}, {"versions": []}, {"versions": None}])
def test_a_bad_scraper_spoils_only_itself(entry: Any) -> None:
    offer = read({"shop/bad": entry, "shop/good": {"versions": {"1.0.0": GOOD}}})
    assert [release.id for release in offer.releases] == ["shop/good"]
    assert [fault.id for fault in offer.faults] == ["shop/bad"]


@pytest.mark.parametrize("name", ["Shop/Product", "shop", "a/b/c", "../x", "", "x" * 5000, "a/b\n", "\x1b[31m/x"])
def test_a_name_that_is_no_id(name: str) -> None:
    (fault,) = read({name: {"versions": {"1.0.0": GOOD}}}).faults
    assert fault.problem.isprintable()
    assert len(fault.id) <= 500


@pytest.mark.parametrize(
    "channels", [5, [], {"stable": "9.9.9"}, {"stable": 1}, {"Stable!": "1.0.0"}, {"x": "1.0.0"}, {"^1": "1.0.0"}]
)
def test_channels_that_point_nowhere(channels: Any) -> None:
    offer = read({"shop/product": {"versions": {"1.0.0": GOOD}, "channels": channels}})
    assert offer.channels == {}
    assert len(offer.releases) == 1
    assert [fault.id for fault in offer.faults] == (["shop/product"])


def test_faults_are_bounded() -> None:
    offer = read({f"shop/bad-{number}": 5 for number in range(5 * MAX_FAULTS)} | {"a/b": {"versions": {"1.0.0": GOOD}}})
    assert len(offer.faults) == MAX_FAULTS
    assert len(offer.releases) == 1


def test_too_many_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_VERSIONS", 5)
    versions = {f"1.{number}.0": GOOD for number in range(3)}
    assert len(read({"a/b": {"versions": versions}}).releases) == 3
    with pytest.raises(SourceUnavailable, match="versions"):
        read({"a/b": {"versions": versions}, "a/c": {"versions": versions}})


@pytest.mark.parametrize(
    "text", [b"", b"{}", b'{"schema":1,"scrapers":[]}', b'{"schema":"1","scrapers":{}}', b"\xff\xfe{}"]
)
def test_a_document_that_is_none(text: bytes) -> None:
    with pytest.raises(SourceUnavailable, match="the index: not an index"):
        read_offer(text, "", "the index")


def test_a_document_of_a_later_format() -> None:
    with pytest.raises(SourceUnavailable, match="schema 2"):
        read_offer(b'{"schema":2,"scrapers":{}}', "", "the index")


@pytest.mark.parametrize("path", ["a.zip", "a/b/c.tar.gz", "a+b@c_d-e.tgz", "1.0.0-x.tar", "..a/b...tar"])
def test_good_paths(path: str) -> None:
    assert path_fault(path) == ""


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "a.rar",
        "/a.zip",
        "a//b.zip",
        "./a.zip",
        "a/./b.zip",
        "../a.zip",
        "a/../b.zip",
        "a\\b.zip",
        "a b.zip",
        "a?b.zip",
        "a#b.zip",
        "a%2e.zip",
        "http://x/a.zip",
        "é.zip",
        "a\n.zip",
        "a.zip\n",
        "x" * 600 + ".zip",
        "a/" * 20 + "b.zip",
    ],
)
def test_bad_paths(path: str) -> None:
    assert path_fault(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["shop/product", "1.0.0", "versions", "channels", "archive", "size", "sha256", "stable"])
NEAR = st.recursive(JSON, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=8)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(KEYS | st.text(max_size=10), NEAR, max_size=4))
def test_anything_in_it_is_survived(scrapers: dict[str, Any]) -> None:
    assert isinstance(read(scrapers), Offer)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200), st.integers(0, 150), st.binary(max_size=4))
def test_any_bytes_are_survived(start: bytes, cut: int, new: bytes) -> None:
    good = json.dumps({"schema": 1, "scrapers": {"a/b": {"versions": {"1.0.0": GOOD}}}}).encode()
    for text in (start, good[:cut] + new + good[cut + 1 :], good[:cut]):
        try:
            assert isinstance(read_offer(text, "", "it"), Offer)
        except SourceUnavailable:
            continue
