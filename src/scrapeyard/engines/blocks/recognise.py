"""Whether an answer is a page or a refusal.

The order is that of certainty: what the vendors write into headers and addresses, what only their pages contain, and
last what the words say. A page with plenty of text and a good status is let go after a look at its headers and title,
so an ordinary page costs next to nothing.

Limits: a page that refuses in long sentences under a good status is taken for a page; so is a picture of a captcha
without a word or a script that we know. An empty page is noted with little confidence, as some pages are empty.
"""

import re

from scrapeyard.engines.blocks.answer import SHORT, Answer, has_many_links, is_wide
from scrapeyard.engines.blocks.rules import (
    ADDRESSES,
    CLOUDFLARE_CODES,
    HEADERS,
    MARKUP,
    TITLES,
    Block,
    BlockKind,
    HeaderMark,
    Mark,
)
from scrapeyard.engines.blocks.shell import recognise_shell
from scrapeyard.engines.blocks.words import Turn, title_of, weigh
from scrapeyard.engines.headers import AnswerHeaders, has_any
from scrapeyard.engines.port import FetchResponse

_AKAMAI = re.compile(
    rb"reference\s{0,3}(?:#|&#35;|&#x23;)\s{0,3}[0-9a-f]{1,4}(?:\.|&#46;)[0-9a-f]{6,10}(?:\.|&#46;)[0-9]{8,}"
)
_CF_CODE = re.compile(rb"(?:cf-error-code\"?>|error code:?|error)\s{0,3}(1[01][0-9]{2})\b")
_RELOADS = re.compile(rb"location\s{0,3}(?:\.(?:reload|replace|assign|href)|=)|http-equiv=\"?refresh")
_ENOUGH = 1.0
_ENOUGH_IN_A_LINE = 0.85
_ENOUGH_IN_LONG = 1.6
_ENOUGH_WHEN_REFUSED = 0.5
_SURE = 1.6
_DOUBTFUL = 0.6
_SERVERS_OWN = frozenset({401, 403, 405, 406, 451})
"""Statuses whose plain pages web servers and applications have ready."""
_OPENING = 700
"""Characters in which a refusal that stands under a good status has come to its point."""
_WITHIN = 16 * 1024
"""Bytes in which a mark counts on a page that has something to read."""
_PLAIN_MARKS = tuple(mark for mark in MARKUP if mark.holds == "always")

_VENDORS_OWN = 0.9
_MARKED = {name: tuple(mark for mark in HEADERS if mark.name == name) for name in {mark.name for mark in HEADERS}}
_MARKED_ANYWAY = {name: marks for name, marks in _MARKED.items() if any(mark.holds != "refused" for mark in marks)}
"""Headers that may tell a refusal under any status. Few answers have one; nearly all have one of the others."""
_SUSPECT_NAMES = tuple(_MARKED_ANYWAY)
_SUSPECT_ADDRESSES = tuple(mark.needle for mark in ADDRESSES)
_SUSPECT_TITLES = tuple(mark.needle for mark in TITLES)

Found = Block | None


def recognise(response: FetchResponse) -> Block | None:
    """The refusal that an answer is; None: it is a page, or a fault of another kind (404, 500, a missing key)."""
    answer = glance(response)
    return None if answer is None else _recognise(answer)


def recognise_any(response: FetchResponse) -> Block | None:
    """As `recognise`; also a page that is an empty shell."""
    answer = glance(response)
    return None if answer is None else recognise_closely(answer, shells=True)


def recognise_closely(answer: Answer, *, shells: bool) -> Block | None:
    """What `glance` left open. `shells`: whether an empty shell counts; most pages have links enough to be none."""
    found = _recognise(answer)
    return found if found is not None or not shells or answer.has_links else recognise_shell(answer.response)


def glance(response: FetchResponse) -> Answer | None:
    """The answer, to be looked at closely. None: it is a whole page at a glance, as most are: a good status, many links
    and no mark in headers, address and title. Plain loops, since every page comes by here."""
    body, encoding, headers = response.body, response.encoding, response.headers
    if response.status != 200:
        return Answer(response)
    if headers.has_any(_SUSPECT_NAMES) if type(headers) is AnswerHeaders else has_any(headers, _SUSPECT_NAMES):
        return Answer(response)
    if encoding != "utf-8" and is_wide(encoding):
        return Answer(response)
    has_links = has_many_links(body)
    if not has_links or len(body) < SHORT:
        return Answer(response, has_links=has_links)
    url = response.url.lower()
    for needle in _SUSPECT_ADDRESSES:
        if needle in url:
            return Answer(response, has_links=has_links)
    title = title_of(body, encoding)
    for needle in _SUSPECT_TITLES:
        if needle in title:
            return Answer(response, has_links=has_links)
    return None


def _recognise(answer: Answer) -> Found:
    found = _by_header(answer)
    if found is not None and found.certain:
        return found
    if found is None and answer.is_ordinary and _by_address(answer) is None and _by_title(answer) is None:
        return None
    for look in (_by_address, _by_title, _by_markup, _by_number, _by_words, _by_script):
        better = _soften(answer, look(answer))
        if better is not None and (found is None or better.confidence > found.confidence):
            found = better
        if found is not None and found.certain:
            return found
    return found or _by_status(answer)


def _by_header(answer: Answer) -> Found:
    best: HeaderMark | None = None
    marked = _MARKED if answer.refuses else _MARKED_ANYWAY
    if not answer.names_any(marked):
        return None
    for name in answer.headers.keys() & marked.keys():
        for mark in marked[name]:
            if mark.needle in answer.headers[name] and answer.fits(mark.holds):
                best = mark if best is None or mark.confidence > best.confidence else best
    if best is None:
        return None
    # A limit on the rate is not a verdict on us, whoever enforces it.
    kind: BlockKind = "rate_limited" if answer.status == 429 and best.confidence < _VENDORS_OWN else best.kind
    return Block(kind=kind, vendor=best.vendor, reason=best.why, confidence=best.confidence)


def _by_address(answer: Answer) -> Found:
    return _first(ADDRESSES, answer, answer.url)


def _by_title(answer: Answer) -> Found:
    found = _first(TITLES, answer, answer.heading) if answer.heading else None
    if found is None or answer.is_data:
        return None
    # A long page with such a title writes about refusals, unless the title is nothing else.
    if answer.refuses or not answer.is_plenty or any(mark.needle == answer.title for mark in TITLES):
        return found
    return None


def _by_markup(answer: Answer) -> Found:
    if answer.is_plenty and not answer.refuses:
        return None
    suspect = answer.refuses or answer.is_bare
    within = len(answer.markup) if suspect else _WITHIN
    for mark in MARKUP if suspect else _PLAIN_MARKS:
        if answer.markup.find(mark.needle.encode(), 0, within) >= 0 and answer.fits(mark.holds):
            return _block(mark)
    return None


def _by_number(answer: Answer) -> Found:
    """Akamai and Cloudflare number their refusals."""
    if answer.is_plenty and not answer.refuses:
        return None
    if _AKAMAI.search(answer.markup):
        return Block(kind="blocked", vendor="akamai", reason="Akamai gives a reference number", confidence=0.95)
    code = _CF_CODE.search(answer.markup)
    kind = CLOUDFLARE_CODES.get(code[1].decode()) if code else None
    if code is None or kind is None or not (answer.refuses or b"cf-" in answer.markup or answer.is_tiny):
        return None
    return Block(kind=kind, vendor="cloudflare", reason=f"Cloudflare's error {code[1].decode()}", confidence=0.95)


def _by_words(answer: Answer) -> Found:
    if answer.is_plenty and not answer.refuses and not answer.is_short:
        return None
    weight, turn = _weigh(answer)
    if turn is None or weight < _needed(answer) or (answer.is_plenty and not answer.refuses and not turn.to_us):
        return None
    # A form to fill in is a page of its own, and a captcha in it is a part of the form.
    if answer.has_form and (not answer.refuses or turn.kind == "captcha"):
        return None
    confidence = 0.9 if weight >= _SURE else 0.75
    return Block(kind=turn.kind, reason=turn.why, confidence=confidence)


def _weigh(answer: Answer) -> tuple[float, Turn | None]:
    return weigh(f"{answer.title} {answer.text}"[: answer.WORDS if answer.refuses else _OPENING])


def _needed(answer: Answer) -> float:
    if answer.status in (401, 404, 410) or answer.is_data:
        return _SURE
    if answer.refuses:
        return _ENOUGH_WHEN_REFUSED
    if answer.is_plenty:
        return _ENOUGH_IN_LONG
    return _ENOUGH_IN_A_LINE if answer.is_bare else _ENOUGH


def _by_script(answer: Answer) -> Found:
    """A page without words that sets a cookie and loads itself again: the oldest challenge of all."""
    if not answer.is_bare or not answer.is_page or b"document.cookie" not in answer.markup:
        return None
    if not _RELOADS.search(answer.markup):
        return None
    return Block(kind="challenge", reason="the page only sets a cookie and loads itself again", confidence=0.75)


def _by_status(answer: Answer) -> Found:
    """What the status alone says, when nothing else spoke."""
    status = answer.status
    if status == 429:
        return Block(kind="rate_limited", reason="the site answered 429", confidence=0.9)
    if status == 999:
        return Block(kind="blocked", vendor="linkedin", reason="the site answered 999", confidence=0.95)
    if status in (403, 406, 451) and not answer.is_data and not answer.has_form:
        return Block(kind="blocked", reason=f"the site answered {status} and gave no reason", confidence=0.5)
    if status == 503 and not answer.is_data:
        return Block(kind="blocked", reason="the site answered 503; it may only be down", confidence=0.3)
    if status == 200 and answer.is_page and answer.is_empty:
        return Block(kind="blocked", reason="the page is empty", confidence=0.3)
    if status == 200 and answer.is_page and answer.is_only_script:
        return Block(kind="challenge", reason="the page is nothing but a script", confidence=0.35)
    return None


def _first(marks: tuple[Mark, ...], answer: Answer, where: str) -> Found:
    best = None
    for mark in marks:
        if mark.needle in where and answer.fits(mark.holds) and (best is None or mark.confidence > best.confidence):
            best = mark
    return _block(best) if best else None


def _block(mark: Mark) -> Block:
    return Block(kind=mark.kind, vendor=mark.vendor, reason=mark.why, confidence=mark.confidence)


def _soften(answer: Answer, block: Found) -> Found:
    """A 429 that names no bot asks for patience, whatever else its page says. A plain refusal under a status that says
    the same is what every web server writes on its own pages: it may be meant for everybody."""
    if block is None or not block.certain or block.vendor or block.kind in ("captcha", "challenge"):
        return block
    if answer.status == 429:
        return Block(kind="rate_limited", reason=block.reason, confidence=block.confidence)
    if answer.status in _SERVERS_OWN and _weigh(answer)[0] < _ENOUGH:
        return Block(kind=block.kind, reason=block.reason, confidence=_DOUBTFUL)
    return block
