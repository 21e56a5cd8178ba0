"""What a robots.txt says to one product name."""

import pytest

from scrapeyard.engines.robots.copies import MAX_BYTES, RobotsRules

BASE = "http://shop.example"


def rules(text: str, agent: str = "scrapeyard") -> RobotsRules:
    return RobotsRules(text.encode(), agent)


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/", True),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow: /private", "/private/1", False),
        ("User-agent: *\nDisallow: /private", "/public", True),
        ("User-agent: *\nDisallow: /p\nAllow: /private/page", "/private/page", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: other\nDisallow: /", "/", True),
        ("User-agent: ScrapeYard\nDisallow: /\nUser-agent: *\nAllow: /", "/", False),
        ("User-agent: scrapeyard the great\nDisallow: /\nUser-agent: *\nAllow: /", "/", False),
        ("\ufeffUser-agent: *\nDisallow: /x", "/x", False),
        ("User-agent: *\r\nDisallow: /x # because\r\n", "/x", False),
        ("User-agent: *\nDisallow: /%ED%95%9C", "/%ed%95%9c/1", False),
        ("Disallow: /", "/", True),
    ],
)
def test_what_is_allowed(text: str, path: str, allowed: bool) -> None:
    assert rules(text).allows(BASE + path) is allowed


def test_the_rule_that_forbids_is_named() -> None:
    text = "User-agent: other\nDisallow: /a/b/c\n\nUser-agent: *\nDisallow: /a\nDisallow: /a/b # why\nAllow: /a/z\n"
    assert rules(text).forbidding(f"{BASE}/a/b/c") == "Disallow: /a/b"
    assert rules(text).forbidding(f"{BASE}/a/x") == "Disallow: /a"
    assert rules(text, "other").forbidding(f"{BASE}/a/b/c") == "Disallow: /a/b/c"
    assert rules(text).forbidding(f"{BASE}/free") == ""


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("User-agent: *\nDisallow: /x", 0),
        ("User-agent: *\nCrawl-delay: 4", 0.25),
        ("User-agent: *\nCrawl-delay: 0.5", 2),
        ("User-agent: *\nCrawl-delay: 0", 0),
        ("User-agent: *\nCrawl-delay: soon", 0),
        ("User-agent: *\nRequest-rate: 1/10s", 0.1),
        ("User-agent: *\nRequest-rate: 1/2\nCrawl-delay: 10", 0.1),
        ("User-agent: other\nCrawl-delay: 4", 0),
        ("User-agent: scrapeyard\nCrawl-delay: 2\nUser-agent: *\nCrawl-delay: 9", 0.5),
    ],
)
def test_the_delay_becomes_a_rate(text: str, rate: float) -> None:
    assert rules(text).rate == pytest.approx(rate)


def test_only_the_first_half_megabyte_is_read() -> None:
    filler = "# " + "x" * 1000 + "\n"
    text = "User-agent: *\nDisallow: /first\n" + filler * (MAX_BYTES // len(filler) + 1) + "Disallow: /last\n"
    assert not rules(text).allows(f"{BASE}/first")
    assert rules(text).allows(f"{BASE}/last")


def test_bytes_that_are_no_text_are_read_over() -> None:
    assert not RobotsRules(b"\xff\xfe\x00junk\nUser-agent: *\nDisallow: /x\xff\n\x00\nDisallow: /y", "a").allows(
        f"{BASE}/y"
    )
