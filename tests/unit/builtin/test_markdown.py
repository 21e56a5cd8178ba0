"""Markdown is the main part of a page, without what surrounds and interrupts it."""

import pytest

from scrapeyard.builtin.pages.page import extract_page

URL = "https://news.example/a/story"
WORDS = "The kiln was lit at dawn, and the pots were glazed by noon, as they had been for many years. "
STORY = "".join(f"<p>{WORDS * 3}</p>" for _ in range(6))
TEASERS = "".join(
    f'<div class="card"><a href="/s/{n}">Another story with a long headline {n}</a></div>' for n in range(30)
)


def markdown(html: str, *, main_only: bool = True) -> str:
    found: str = extract_page(html, URL, include=["markdown"], main_only=main_only)["markdown"]
    return found


NEWS = f"""<div id=top><a href=/>Home</a> <a href=/world>World</a></div><h1>Kilns</h1>
<div class=columns><div class=left><div class="story">{STORY}
<div class="share-tools"><a href="https://share.example">Share this</a></div><h2>Later</h2><p>{WORDS}</p>
<table><tr><th>Year</th><th>Pots</th></tr><tr><td>1901</td><td>12</td></tr></table><pre><code class=language-py>x = 1
y = 2</code></pre></div>
<div id="comments"><p>{"I read this twice, and I do not agree with a word of it. " * 3}</p></div></div>
<div class=right>{TEASERS}</div></div><div class=legal>© News, all rights reserved</div>"""


def test_a_story_that_nothing_marks_is_found() -> None:
    found = markdown(NEWS)
    assert found.startswith("# Kilns")
    assert found.count("lit at dawn") == 19
    for kept in ("## Later", "| 1901 | 12   |", "```py\nx = 1\ny = 2\n```"):
        assert kept in found
    for noise in ("Home", "Share this", "I read this twice", "Another story", "all rights reserved"):
        assert noise not in found


def test_the_whole_page_on_request() -> None:
    found = markdown(NEWS, main_only=False)
    for text in ("Home", "Share this", "I read this twice", "Another story", "all rights reserved", "lit at dawn"):
        assert text in found


def test_a_small_article_does_not_win_over_the_rest() -> None:
    found = markdown(f"<div><article>Available from 5 to 12 December</article></div><div>{STORY}</div>")
    assert found.count("lit at dawn") == 18


def test_a_list_of_links_is_a_page_too() -> None:
    found = markdown(f"<nav><a href=/>Home</a></nav><div>{TEASERS}</div><footer>imprint</footer>")
    assert found.count("Another story") == 30
    assert "Home" not in found
    assert "imprint" not in found


SHOP = '<h1>Pots</h1><p><a href="/p/1">Blue pot</a> 12 €</p><p><a href="/p/2">Red pot</a> 14 €</p>'


@pytest.mark.parametrize(
    "head",
    [
        '<header><div><a href="/">Pot<b>Shop</b></a></div><p>Pots since 1901</p></header>',
        '<header><a href="/"><img src="/logo.png" alt="PotShop"></a></header>',
        '<div class="top"><div><a href="/">PotShop</a></div></div>',
        '<ul><li><a href="/pots">All pots</a></li><li><a href="/kilns">All kilns</a></li></ul>',
    ],
)
def test_the_head_of_the_site_is_not_the_page(head: str) -> None:
    assert markdown(f"{head}<main>{SHOP}</main>").startswith("# Pots\n\n[Blue pot]")
    assert "Blue pot" in markdown(head + SHOP.replace("h1", "h2"))


@pytest.mark.parametrize(
    "body",
    [
        f"<main><header><p>Kilns and more</p></header>{SHOP}</main>",
        f"<header><p>Kilns and more</p>{SHOP}</header>",
        f"<main><div><p>Kilns and more</p></div>{SHOP}</main>",
        f'<main><div><a href="/b">Kilns and more</a></div>{SHOP}</main>',
        f"<header>Kilns and more. {WORDS * 3}</header>{TEASERS}",
    ],
)
def test_what_belongs_to_the_heading_stays(body: str) -> None:
    assert "Kilns and more" in markdown(body)


def test_a_page_inside_a_form_or_an_unlucky_name_is_kept() -> None:
    for start, end in (("<form>", "</form>"), ("<div class=sidebar>", "</div>"), ("<footer>", "</footer>")):
        assert markdown(f"{start}<h1>Kilns</h1>{STORY}{end}").count("lit at dawn") == 18


def test_the_heading_of_a_dialog_is_not_the_page_s() -> None:
    account = '<h1><a href="/me"> </a>My account</h1>'
    assert markdown(f"<div class=modal>{account}</div><h1>Kilns</h1><div>{STORY}</div>").startswith("# Kilns\n")
    assert markdown(f"<div class=modal>{account}</div><div>{STORY}</div>").startswith("# My account\n")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<p>One <a href="javascript:void(0)">two</a> three</p>', "One two three"),
        ('<p>One <a href="#">two</a> three</p>', "One two three"),
        ('<p>One <a href="/x"> <i class=icon></i></a> three</p>', "One three"),
        ("<ul><li>One</li><li><a href=/x></a></li><li><ul><li> </li></ul></li><li>two</li></ul>", "- One\n- two"),
        ('<p>One <img src="data:image/gif;base64,R0"> two</p>', "One two"),
        ('<p><img src="data:image/gif;base64,R0" data-src=/i.png alt=Pot></p>', "![Pot](https://news.example/i.png)"),
        ("<p>10<sup>6</sup> H<sub>2</sub>O</p>", "10<sup>6</sup> H<sub>2</sub>O"),
        ("<p>One</p><button>Buy</button><select><option>red</select><textarea>x</textarea>", "One"),
    ],
)
def test_no_empty_links_items_and_images(html: str, expected: str) -> None:
    assert markdown(html) == expected
