"""Forms: what a browser would send, and what a script changes of it."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from scrapeyard_sdk import Page
from scrapeyard_sdk.forms import Form

CONTROLS = """
<input type=hidden name=token value="a b"><input name=q value=old><input name=empty>
<input type=checkbox name=box value=yes checked><input type=checkbox name=box value=no><input type=checkbox name=bare>
<input type=radio name=size value=s><input type=radio name=size value=m checked>
<select name=one><option>first<option value=2>second</select>
<select name=many multiple><option selected>x<option>y<option selected value=Z>z</select>
<textarea name=note>
line 1
line 2</textarea>
<input name=off value=1 disabled><fieldset disabled><input name=shut value=1></fieldset>
<input type=file name=upload><input value=nameless><input type=reset name=reset value=r>
<button name=go value=search>Search</button><input type=submit name=save value=Save>
"""
SENT = [
    *(("token", "a b"), ("q", "old"), ("empty", ""), ("box", "yes"), ("size", "m"), ("one", "first")),
    *(("many", "x"), ("many", "Z"), ("note", "line 1\r\nline 2"), ("far", "away")),
]


def form_of(attributes: str, encoding: str = "utf-8", more: str = "") -> Form:
    html = (
        f"<form id=f {attributes}>{CONTROLS}{more}</form><input form=f name=far value=away><input name=alone value=1>"
    )
    page = Page(
        url="https://shop.example/dir/page?x=1",
        status=200,
        body=html.encode(encoding),
        encoding=encoding,
        fetch=lambda url, **options: (url, options),
    )
    return page.forms()[0]


def sent(answer: Any) -> list[tuple[str, str]]:
    url, options = answer
    return parse_qsl(options.get("body", b"").decode() or urlsplit(url).query, keep_blank_values=True)


def test_a_form_sends_what_a_browser_sends() -> None:
    form = form_of('action="../find?old=1"')
    assert form.fields == SENT
    url, options = answer = form.submit()
    assert url.startswith("https://shop.example/find?token=a+b&q=old")
    assert sent(answer) == [*SENT, ("go", "search")]
    assert options == {"method": "GET"}


def test_values_replace_the_forms_own() -> None:
    form = form_of("method=post")
    url, options = answer = form.submit(
        {"q": "new", "many": ["a", "b"], "box": False, "bare": True, "note": None, "extra": 3}, button="save", timeout=9
    )
    assert url == "https://shop.example/dir/page?x=1"
    assert (options["method"], options["timeout"]) == ("POST", 9)
    assert options["headers"] == {"content-type": "application/x-www-form-urlencoded"}
    fields = sent(answer)
    changed = [("q", "new"), ("many", "a"), ("many", "b"), ("bare", "on"), ("extra", "3"), ("save", "Save")]
    assert [pair for pair in fields if pair not in SENT] == changed
    assert ("token", "a b") in fields
    assert not {"box", "note"} & {name for name, _ in fields}


def test_a_form_with_files_is_multipart() -> None:
    _, options = form_of("method=post enctype=multipart/form-data").submit(
        {"upload": ("a.txt", b"hello", "text/plain")}
    )
    assert options["headers"]["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="upload"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello' in options["body"]
    assert b'name="token"\r\n\r\na b\r\n' in options["body"]
    with pytest.raises(ValueError, match="cannot send files"):
        form_of("").submit({"upload": b"x"})


def test_fields_are_sent_in_the_encoding_of_the_page() -> None:
    url, _ = form_of("", "euc-kr").submit({"q": "가격"})
    assert "q=%B0%A1%B0%DD" in url
    _, options = form_of("method=post enctype=multipart/form-data", "euc-kr").submit({"q": "가격"})
    assert "가격".encode("euc-kr") in options["body"]


def test_headers_of_the_caller_are_kept_and_buttons_must_exist() -> None:
    _, options = form_of("method=post").submit(headers={"x-test": "1"})
    assert options["headers"] == {"content-type": "application/x-www-form-urlencoded", "x-test": "1"}
    with pytest.raises(ValueError, match="no button 'buy'"):
        form_of("").submit(button="buy")


def test_the_pressed_button_says_where_and_how_the_form_goes() -> None:
    more = """<button name=go value=remove formaction="../remove" formmethod=POST formenctype=multipart/form-data>X
    </button><input type=submit value=Find formmethod=get><button value=Here formaction="">Here</button>"""
    form = form_of('method=post action="/save"', more=more)
    url, options = form.submit(button="remove")
    assert (url, options["method"]) == ("https://shop.example/remove", "POST")
    assert options["headers"]["content-type"].startswith("multipart/form-data")
    url, options = answer = form.submit(button="Find")
    assert (urlsplit(url).path, options["method"], sent(answer)) == ("/save", "GET", SENT)
    assert form.submit(button="Here")[0] == "https://shop.example/dir/page?x=1"
    assert (form.submit()[0], form.method, form.is_multipart) == ("https://shop.example/save", "POST", False)


def test_a_plain_button_overrides_a_multipart_form() -> None:
    form = form_of("method=post enctype=multipart/form-data", more="<button value=Plain formenctype=''>Plain</button>")
    assert form.submit(button="Plain")[1]["headers"] == {"content-type": "application/x-www-form-urlencoded"}


def test_an_image_is_a_button_that_sends_the_place_of_the_click() -> None:
    form = form_of("", more="<input type=image name=map value=Map formaction=/map>")
    url, _ = answer = form.submit(button="map")
    assert urlsplit(url).path == "/map"
    assert sent(answer) == [*SENT, ("map.x", "0"), ("map.y", "0")]
