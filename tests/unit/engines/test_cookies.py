"""Cookies: whose they are, where they go, when they end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapeyard.engines.http.cookies import MAX_COOKIES, Jar, MemorySessions, Sessions, parse_cookie
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.url import parse_target

NOW = 1_800_000_000.0
SITES = Sites()


def sent(header: str, at: str, to: str, later: float = 0.0) -> str:
    """The Cookie header of a request `to`, after an answer `at` set this cookie."""
    jar = Jar(SITES.of)
    jar.hear(header, parse_target(at), NOW)
    return jar.header(parse_target(to), NOW + later)


SHOP = "https://www.shop.example/a/b"


@pytest.mark.parametrize(
    ("header", "at", "to", "expected"),
    [
        ("a=1", SHOP, "https://www.shop.example/a/c", "a=1"),
        ("a=1", SHOP, "https://www.shop.example/", ""),
        ("a=1; Path=/", SHOP, "https://www.shop.example/", "a=1"),
        ("a=1; Path=/", SHOP, "https://shop.example/", ""),
        ("a=1; Path=/", SHOP, "https://x.www.shop.example/", ""),
        ("a=1; Path=/; Domain=shop.example", SHOP, "https://img.shop.example/", "a=1"),
        ("a=1; Path=/; Domain=.Shop.Example", SHOP, "https://shop.example/", "a=1"),
        ("a=1; Path=/; Domain=shop.example", SHOP, "https://notshop.example/", ""),
        ("a=1; Path=/; Domain=example", SHOP, "https://other.example/", ""),
        ("a=1; Path=/; Domain=co.uk", "https://shop.co.uk/", "https://shop.co.uk/", ""),
        ("a=1; Path=/; Domain=github.io", "https://me.github.io/", "https://you.github.io/", ""),
        ("a=1; Path=/; Domain=other.example", SHOP, "https://other.example/", ""),
        ("a=1; Path=/; Domain=img.shop.example", SHOP, "https://img.shop.example/", ""),
        ("a=1; Path=/; Domain=127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", "a=1"),
        ("a=1; Path=/; Domain=0.0.1", "http://127.0.0.1/", "http://127.0.0.1/", ""),
        ("a=1; Path=/; Domain=localhost", "http://localhost/", "http://localhost/", "a=1"),
        ("a=1; Path=/x", SHOP, "https://www.shop.example/x/y?z=1", "a=1"),
        ("a=1; Path=/x", SHOP, "https://www.shop.example/x?z=1", "a=1"),
        ("a=1; Path=/x", SHOP, "https://www.shop.example/xy", ""),
        ("a=1; Path=x", SHOP, "https://www.shop.example/a/", "a=1"),
        ("a=1; Path=/; Secure", SHOP, "http://www.shop.example/", ""),
        ("a=1; Path=/; Secure", SHOP, "https://www.shop.example/", "a=1"),
        ("a=1; Path=/; Secure", "http://www.shop.example/", "https://www.shop.example/", ""),
        ("__Host-a=1; Path=/; Secure", SHOP, SHOP, "__Host-a=1"),
        ("__Host-a=1; Path=/; Secure; Domain=shop.example", SHOP, SHOP, ""),
        ("__Secure-a=1; Path=/", SHOP, SHOP, ""),
        ("=__Host-a=1; Path=/; Secure", SHOP, SHOP, ""),
        ("__Secure-a; Path=/; Secure", SHOP, SHOP, ""),
        ("=a=1; Path=/", SHOP, SHOP, "a=1"),
        ("a=1; Path=/; Max-Age=0", SHOP, SHOP, ""),
        ("a=1; Path=/; Max-Age=-5", SHOP, SHOP, ""),
        ("a=1; Path=/; Expires=Wed, 21 Oct 2015 07:28:00 GMT", SHOP, SHOP, ""),
        ("a=1; Path=/; Expires=Wed, 21-Oct-2099 07:28:00 GMT", SHOP, SHOP, "a=1"),
        ("a=1; Path=/; Expires=nonsense", SHOP, SHOP, "a=1"),
        ("a=1; Path=/; Max-Age=60; Expires=Wed, 21 Oct 2015 07:28:00 GMT", SHOP, SHOP, "a=1"),
        ('a="b c"; Path=/', SHOP, SHOP, 'a="b c"'),
        ("=v; Path=/", SHOP, SHOP, "v"),
        ("v; Path=/", SHOP, SHOP, "v"),
        ("a=b=c; Path=/", SHOP, SHOP, "a=b=c"),
        ("", SHOP, SHOP, ""),
        ("=; Path=/", SHOP, SHOP, ""),
        ("a=\x01; Path=/", SHOP, SHOP, ""),
        ("a=" + "x" * 5000, SHOP, SHOP, ""),
    ],
)
def test_where_a_cookie_goes(header: str, at: str, to: str, expected: str) -> None:
    assert sent(header, at, to) == expected


def test_a_cookie_ends() -> None:
    assert sent("a=1; Path=/; Max-Age=60", SHOP, SHOP, later=59) == "a=1"
    assert sent("a=1; Path=/; Max-Age=60", SHOP, SHOP, later=60) == ""
    assert sent("a=1; Path=/; Max-Age=99999999999", SHOP, SHOP, later=401 * 86_400) == ""


def test_a_later_cookie_takes_the_place_of_an_earlier_one() -> None:
    jar, shop = Jar(SITES.of), parse_target(SHOP)
    for header in ("a=1; Path=/", "b=2; Path=/a/b", "a=3; Path=/"):
        jar.hear(header, shop, NOW)
    assert jar.header(shop, NOW) == "b=2; a=3"
    jar.hear("a=; Path=/; Max-Age=0", shop, NOW)
    assert jar.header(shop, NOW) == "b=2"
    assert {cookie.name for cookie in jar.changes()} == {"b"}
    assert len(jar.changed) == 2


def test_a_jar_is_bounded() -> None:
    jar, shop = Jar(SITES.of), parse_target(SHOP)
    for number in range(MAX_COOKIES + 50):
        jar.hear(f"c{number}=1; Path=/", shop, NOW)
    assert len(jar.header(shop, NOW).split("; ")) == MAX_COOKIES
    assert "c0=1" not in jar.header(shop, NOW)


@given(header=st.text(max_size=200))
def test_any_header_is_a_cookie_or_none(header: str) -> None:
    cookie = parse_cookie(header, parse_target(SHOP), "shop.example", NOW)
    if cookie is not None:
        assert cookie.domain.endswith("shop.example")
        assert ";" not in cookie.name + cookie.value
        assert "\r" not in cookie.name + cookie.value
        assert "\n" not in cookie.name + cookie.value


async def test_cookies_go_in_the_order_in_which_they_were_first_set() -> None:
    """Also where one was set again, and after a session was kept and opened."""
    names = [f"c{number}" for number in range(20)]
    store = MemorySessions()
    sessions, target = Sessions(store, 1), parse_target("https://shop.example/")
    jar = Jar(SITES.of)
    for name in (*names, names[3], names[7]):
        jar.hear(f"{name}=1", target, NOW)
    await sessions.keep("shop/a", "me", jar.changes(), jar.changed, NOW)
    again = Jar(SITES.of, await sessions.open("shop/a", "me", NOW))
    again.hear("c5=2", target, NOW)
    again.hear("c0=; Max-Age=0", target, NOW)
    await sessions.keep("shop/a", "me", again.changes(), again.changed, NOW)
    kept = Jar(SITES.of, await sessions.open("shop/a", "me", NOW))
    expected = "; ".join(f"{name}={2 if name == 'c5' else 1}" for name in names[1:])
    assert (again.header(target, NOW), kept.header(target, NOW)) == (expected, expected)
