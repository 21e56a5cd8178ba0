"""Telling refusals from pages."""

import re
import time
from dataclasses import dataclass, field

import pytest

from scrapeyard.engines.blocks import Block, recognise
from scrapeyard.engines.blocks.rules import ADDRESSES, HEADERS, MARKUP, TITLES
from scrapeyard.engines.blocks.words import turns, visible_text
from scrapeyard.engines.port import FetchResponse

PROSE = "A lamp for the desk, made of oak and brass, with a long arm and a warm light. " * 40


@dataclass(frozen=True, kw_only=True)
class Case:
    """An answer, and what it is."""

    body: str
    status: int = 200
    kind: str | None = None
    vendor: str = ""
    url: str = "https://shop.test/lamps"
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/html; charset=utf-8"})


def page(text: str, *, title: str = "", head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{text}</body></html>"


def answer(case: Case, encoding: str = "utf-8") -> FetchResponse:
    return FetchResponse(
        url=case.url,
        status=case.status,
        headers=tuple(case.headers.items()),
        body=case.body.encode(encoding),
        encoding=encoding,
        elapsed_ms=1,
    )


HTML = {"content-type": "text/html"}
JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain"}

REFUSALS = {
    "cloudflare by header": Case(
        body=page("<p>wait</p>"),
        status=403,
        headers={**HTML, "CF-Mitigated": "challenge"},
        kind="challenge",
        vendor="cloudflare",
    ),
    "cloudflare challenge": Case(
        body=page("<noscript>Enable JavaScript</noscript><script>window._cf_chl_opt={a:1}</script>", title="Site"),
        status=503,
        kind="challenge",
        vendor="cloudflare",
    ),
    "cloudflare title, in another case": Case(
        body=page("<div></div>", title="Just A Moment..."), status=403, kind="challenge", vendor="cloudflare"
    ),
    "cloudflare turnstile and nothing else": Case(
        body=page('<div class="cf-turnstile" data-sitekey="0x4"></div>'), kind="captcha", vendor="cloudflare"
    ),
    "cloudflare 1020": Case(
        body=page('<h1>Error <span class="cf-error-code">1020</span></h1><p>The owner set rules.</p>'),
        status=403,
        kind="blocked",
        vendor="cloudflare",
    ),
    "cloudflare 1020 as text": Case(
        body="error code: 1020", status=403, headers=TEXT, kind="blocked", vendor="cloudflare"
    ),
    "cloudflare 1015": Case(
        body=page("<h1>Error 1015</h1><p>You are being rate limited</p><span class='cf-footer-item'></span>"),
        status=429,
        kind="rate_limited",
        vendor="cloudflare",
    ),
    "akamai reference": Case(
        body=page("<h1>Access Denied</h1>Reference&#32;&#35;18.5f2e1602.1700000000.3a9f10b"),
        status=403,
        kind="blocked",
        vendor="akamai",
    ),
    "akamai with 200": Case(
        body=page('<script src="/x"></script><div id="sec-if-cpt-container"></div>'), kind="challenge", vendor="akamai"
    ),
    "akamai's server": Case(
        body="", status=403, headers={"server": "AkamaiGHost"}, kind="blocked", vendor="akamai"
    ),
    "human": Case(
        body=page('<div id="px-captcha"></div>', title="Access to this page has been denied"),
        status=403,
        kind="captcha",
        vendor="human",
    ),
    "human as json": Case(
        body='{"appId":"PX1","jsClientSrc":"/1/init.js","blockScript":"/1/captcha.js"}',
        status=403,
        headers=JSON,
        kind="captcha",
        vendor="human",
    ),
    "datadome": Case(
        body="<html><body><script>var dd={'host':'geo.captcha-delivery.com'}</script></body></html>",
        status=403,
        kind="captcha",
        vendor="datadome",
    ),
    "datadome as json": Case(
        body='{"url":"https://geo.captcha-delivery.com/captcha/?cid=1"}',
        status=403,
        headers={**JSON, "set-cookie": "datadome=abc; Path=/"},
        kind="captcha",
        vendor="datadome",
    ),
    "imperva frame with 200": Case(
        body='<html><body><iframe src="/_Incapsula_Resource?CWUDNSAI=1&incident_id=9"></iframe></body></html>',
        kind="challenge",
        vendor="imperva",
    ),
    "aws by header": Case(
        body="", status=202, headers={"x-amzn-waf-action": "challenge"}, kind="challenge", vendor="aws"
    ),
    "aws captcha": Case(
        body="", status=405, headers={"x-amzn-waf-action": "captcha"}, kind="captcha", vendor="aws"
    ),
    "aws script": Case(
        body=page("<script>window.gokuProps={key:1}</script>"), status=202, kind="challenge", vendor="aws"
    ),
    "sucuri": Case(
        body=page("<h1>Access Denied</h1>", title="Sucuri WebSite Firewall - Access Denied"),
        status=403,
        kind="blocked",
        vendor="sucuri",
    ),
    "kasada": Case(
        body="<html><script>window.KPSDK={}</script><script src='/ips.js?a=1'></script></html>",
        status=429,
        kind="challenge",
        vendor="kasada",
    ),
    "f5": Case(
        body=page("The requested URL was rejected. Please consult your administrator.<br>Your support ID is: 42"),
        kind="blocked",
    ),
    "f5 script": Case(
        body='<html><head><script>window["bobcmn"]="10111"</script></head></html>', kind="challenge", vendor="f5"
    ),
    "vercel": Case(
        body=page("<p>We are verifying your browser</p>", title="Vercel Security Checkpoint"),
        status=429,
        headers={**HTML, "x-vercel-mitigated": "challenge"},
        kind="challenge",
        vendor="vercel",
    ),
    "fastly": Case(
        body=page("<noscript>x</noscript><script src='/_fs-ch-1T1/script.js'></script>", title="Client Challenge"),
        kind="challenge",
        vendor="fastly",
    ),
    "recaptcha interstitial": Case(
        body=page('<form method="post"><div class="g-recaptcha" data-sitekey="k"></div><button>Go</button></form>'),
        kind="captcha",
        vendor="recaptcha",
    ),
    "hcaptcha interstitial": Case(
        body=page('<p>One more step</p><div class="h-captcha"></div>'), status=403, kind="captcha", vendor="hcaptcha"
    ),
    "sent to a captcha": Case(
        body=page(PROSE), url="https://www.google.com/sorry/index?continue=x", kind="captcha", vendor="google"
    ),
    "a script that sets a cookie and reloads": Case(
        body="<html><body><script>document.cookie='k='+f();location.reload()</script></body></html>", kind="challenge"
    ),
    "a script and nothing else": Case(
        body="<html><body><script>" + "var a=[1,2,3];for(var i in a){a[i]^=7}" * 9 + "</script></body></html>",
        kind="challenge",
    ),
    "said in English under 200": Case(
        body=page("<h2>Sorry</h2><p>Your IP address 192.0.2.7 was blocked because of unusual traffic.</p>"),
        kind="blocked",
    ),
    "said in English to a robot": Case(
        body=page("<p>Before you go on, please confirm that you are not a robot.</p>"), kind="captcha"
    ),
    "said in Spanish": Case(
        body=page("<h1>Acceso denegado</h1><p>Su actividad es sospechosa y fue bloqueada.</p>"), kind="blocked"
    ),
    "said in German": Case(
        body=page("<h1>Zugriff verweigert</h1><p>Aus Sicherheitsgründen wurden Sie gesperrt.</p>"), kind="blocked"
    ),
    "said in French": Case(
        body=page("<h1>Accès refusé</h1><p>Un système de sécurité a bloqué votre visite.</p>"), kind="blocked"
    ),
    "said in Russian": Case(
        body=page("<h1>Доступ запрещён</h1><p>Ваш адрес заблокирован службой безопасности.</p>"), kind="blocked"
    ),
    "said in Korean": Case(
        body=page("<p>비정상적인 접근이 감지되어 접속이 차단되었습니다. 보안팀에 문의하세요.</p>"), kind="blocked"
    ),
    "said in Japanese": Case(
        body=page("<p>アクセスが拒否されました。セキュリティ上の理由によりブロックされています。</p>"), kind="blocked"
    ),
    "said in Chinese": Case(body=page("<p>您的访问被拦截 请完成人机验证。安全防护</p>"), kind="blocked"),
    "too often, in Turkish": Case(
        body=page("<p>Çok fazla istek gönderdiniz.</p>"), status=429, kind="rate_limited"
    ),
    "a long page with a short refusal behind its styles": Case(
        body=page("<style>" + "a{b:c}" * 20_000 + "</style><p>You have been blocked by our defence system.</p>"),
        kind="blocked",
    ),
    "nginx": Case(
        body="<html><center><h1>403 Forbidden</h1></center><hr><center>nginx</center></html>",
        status=403,
        kind="blocked",
    ),
    "a bare 429": Case(body="", status=429, kind="rate_limited"),
    "999": Case(body="", status=999, kind="blocked"),
    "nothing at all": Case(body="  \n ", kind="blocked"),
    "distil in a site's own words": Case(
        body=page(f"<h1>Sorry</h1><p>Something about your browser made us think you were a bot.</p>{PROSE[:600]}"),
        kind="challenge",
        vendor="imperva",
    ),
    "jiasule": Case(
        body='<script>go({"bts":["1",""],"chars":"ab","tn":"__jsl_clearance_s","vt":"3600"})</script>',
        status=521,
        kind="challenge",
        vendor="jiasule",
    ),
}  # fmt: skip

PAGES = {
    "an ordinary page": Case(body=page(f"<p>{PROSE}</p>", title="Lamps")),
    "a small page": Case(body=page("<p>Thank you. Your order was placed.</p>", title="Done")),
    "a login form with a captcha": Case(
        body=page(
            '<form><input name="user"><input type="password" name="p"><div class="g-recaptcha"></div>'
            "<p>Please confirm that you are not a robot.</p></form>",
            title="Sign in",
        )
    ),
    "a sign-up form with Turnstile": Case(
        body=page('<form><input type="email"><div class="cf-turnstile"></div><button>Join</button></form>')
    ),
    "an article on blocks": Case(
        body=page(f"<h1>What Cloudflare is</h1><p>It may say: you have been blocked. Access denied. {PROSE}</p>")
    ),
    "an article whose title speaks of one": Case(
        body=page(f"<p>{PROSE}</p>", title="DDoS-Guard, captchas and how to pass them: a robot check explained")
    ),
    "a customer's page with the vendor's sensors": Case(
        body=page(
            f"<p>{PROSE}</p>",
            head='<script src="/_Incapsula_Resource?SWJIYLWA=7"></script><script>window._pxAppId="PX1"</script>'
            '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>',
        ),
        headers={**HTML, "server": "cloudflare", "set-cookie": "datadome=x", "x-iinfo": "1-2-3"},
    ),
    "robots.txt": Case(body="User-agent: *\nDisallow: /private\n", headers=TEXT, url="https://shop.test/robots.txt"),
    "robots.txt without a type": Case(body="User-agent: *\nDisallow:", headers={}, url="https://shop.test/robots.txt"),
    "a small JSON answer": Case(body='{"ok":true}', headers=JSON),
    "JSON said to be HTML": Case(body='{"blocked": false, "items": []}'),
    "an API that wants a key": Case(
        body='{"error": "Forbidden", "message": "Missing API key"}', status=403, headers=JSON
    ),
    "an API that wants a login": Case(body='{"message": "Unauthorized"}', status=401, headers=JSON),
    "a page that wants a login": Case(
        body=page('<h1>Please log in</h1><form><input type="password"></form>'), status=403
    ),
    "not found": Case(body=page("<h1>404</h1><p>The page is gone.</p>"), status=404),
    "not found, with a captcha in its form": Case(
        body=page('<h1>Not found</h1><form><input name="search"><div class="h-captcha"></div></form>'), status=404
    ),
    "a fault of the server": Case(body=page("<h1>500 Internal Server Error</h1>"), status=500),
    "a bad gateway of Cloudflare's customer": Case(
        body=page('<div id="cf-error-details"><h1>Bad gateway <span>Error code 502</span></h1></div>'),
        status=502,
        headers={**HTML, "server": "cloudflare"},
    ),
    "an application's shell": Case(
        body=page(
            '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>'
            '<script src="/static/main.js"></script>',
            title="App",
        )
    ),
    "a page that sends us on": Case(
        body='<html><head><meta http-equiv="refresh" content="0;url=/en"></head><body></body></html>'
    ),
    "a script that sends us on": Case(body="<html><script>location.href='/en'</script></html>"),
    "the answer to HEAD": Case(body="", headers={**HTML, "content-length": "5120"}),
    "an empty answer that says so": Case(body="", status=204, headers={}),
    "not modified": Case(body="", status=304, headers={}),
    "a picture": Case(body="\x89PNG you have been blocked", headers={"content-type": "image/png"}),
    "a sitemap": Case(body="<?xml version='1.0'?><urlset></urlset>", headers={"content-type": "application/xml"}),
    "a shop that sells locks": Case(
        body=page("<h1>Door locks</h1><p>Restricted key profile. Blocked bolts open with the spare key.</p>")
    ),
    "a game about robots": Case(body=page("<h1>Robots</h1><p>Build a robot and play. Are bots fun? Yes.</p>")),
    "a status page of a guard": Case(
        body=page("<h1>Status</h1><p>Firewall: operational. DDoS protection: operational.</p>")
    ),
    "a privacy note in a footer": Case(
        body=page("<h1>News</h1><p>Rain in the north.</p><footer>This site is protected by reCAPTCHA.</footer>")
    ),
    "an article about Distil": Case(
        body=page(f"<p>{PROSE}</p><p>It said: something about your browser made us think you were a bot.</p>{PROSE}")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_recognised(name: str) -> None:
    case = REFUSALS[name]
    block = recognise(answer(case))
    assert block is not None
    assert (block.kind, block.vendor or case.vendor) == (case.kind, case.vendor or block.vendor)
    assert block.reason
    assert 0 < block.confidence <= 1


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_let_through(name: str) -> None:
    assert recognise(answer(PAGES[name])) is None


def test_a_refusal_is_read_in_its_own_charset() -> None:
    case = REFUSALS["said in Korean"]
    for encoding in ("cp949", "utf-16", "utf-8"):
        assert recognise(answer(case, encoding)) is not None
    assert recognise(answer(REFUSALS["cloudflare challenge"], "utf-16-le")) is not None


def test_doubt_and_certainty() -> None:
    plain, empty = recognise(answer(REFUSALS["nginx"])), recognise(answer(REFUSALS["nothing at all"]))
    down = recognise(answer(Case(body=page("<h1>Maintenance</h1>"), status=503)))
    sure = recognise(answer(REFUSALS["cloudflare challenge"]))
    limited = recognise(answer(REFUSALS["a bare 429"]))
    assert plain is not None
    assert empty is not None
    assert down is not None
    assert sure is not None
    assert limited is not None
    assert [block.worth_trying for block in (plain, empty, down, sure, limited)] == [True, False, False, True, False]
    assert [block.certain for block in (empty, down, sure)] == [False, False, True]


def test_a_429_from_a_vendor_without_a_word_of_robots_is_a_rate_limit() -> None:
    block = recognise(answer(Case(body="slow down", status=429, headers={"server": "cloudflare"})))
    assert block is not None
    assert block.kind == "rate_limited"


@pytest.mark.parametrize("shift", range(0, 120, 7))
def test_words_and_tags_are_read_whole_wherever_the_page_is_cut(shift: int) -> None:
    block = f'<p class="{"x" * 90}" title="not shown">enamelled kettles</p><script>let a = "<p>unseen</p>"</script>'
    plain = "kettles " * 900
    body = f'<div data-x="{"y" * shift}">{block * 40}<pre>{plain}</pre><i data-y="{"z " * 3000}">enamelled</i>'.encode()
    for limit in (50, 1200, 9000):
        seen = visible_text(body, "utf-8", limit)
        assert set(seen.text.split()) <= {"enamelled", "kettles"}
        assert len(seen.text) >= min(limit, 7000)


def test_an_ordinary_page_costs_little() -> None:
    link = '<p>Some words of an ordinary page, a <a href="/x">link</a> and a picture <img src="/p.png"></p>\n'
    scripts = "<script>" + "var a=1;" * 1500 + "</script><style>" + "a{b:c}" * 1000 + "</style>"
    response = answer(Case(body=page(link * 800, title="Shop", head=scripts)))
    assert len(response.body) > 90_000
    recognise(response)
    best = min(_seconds(response) for _ in range(50))
    assert best < 0.0002


@pytest.mark.parametrize(
    "piece",
    [b"<", b"<a ", b"<script>", b"<SCRIPT></script>", b"<!--", b"<title>", b" ", b"a", b"&amp;", b"<input ", b"\xff",
     b"you have been ", b"your ip address ", b"access request ", b"reference ", b"request is was ", b"verify you "],
)  # fmt: skip
@pytest.mark.parametrize("status", [200, 403])
def test_no_body_makes_it_slow(piece: bytes, status: int) -> None:
    body = piece * (3_000_000 // len(piece))
    response = FetchResponse(
        url="https://shop.test/", status=status, headers=(), body=body, encoding="utf-8", elapsed_ms=1
    )
    assert min(_seconds(response) for _ in range(3)) < 0.25


def test_odd_answers_do_not_break_it() -> None:
    for encoding in ("utf-8", "no-such-codec", "utf-16", "cp949"):
        for body in (b"", b"\x00" * 100, b"\xff\xfe", b"<" * 50, b"<title>\xff", bytes(range(256)) * 10):
            response = FetchResponse(
                url="", status=403, headers=(("", ""), ("X", "\xff")), body=body, encoding=encoding, elapsed_ms=1
            )
            assert isinstance(recognise(response), Block)


def test_every_rule_has_a_reason_and_can_match() -> None:
    marks = (*ADDRESSES, *MARKUP, *TITLES)
    assert all(mark.why and mark.needle == mark.needle.lower() and 0 < mark.confidence <= 1 for mark in marks)
    assert all(mark.why and mark.needle == mark.needle.lower() for mark in HEADERS)
    assert all(turn.why and 0 < turn.weight <= 1 for turn in turns())


def test_no_turn_of_phrase_has_an_unbounded_gap() -> None:
    assert [turn.pattern.pattern for turn in turns() if re.search(r"(?:\.|\])[*+]", turn.pattern.pattern)] == []


def _seconds(response: FetchResponse) -> float:
    began = time.thread_time()
    recognise(response)
    return time.thread_time() - began
