"""What a selector found, as a value of the type that was asked for."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from scrapeyard_sdk.extract import parse_date, parse_number, parse_price
from scrapeyard_sdk.extract.lenient_json import Budget, clean, read_json
from scrapeyard_sdk.extract.numbers import NUMBER, clean_text
from scrapeyard_sdk.text import lines

Found = LexborNode | str
_TRUE = frozenset({"true", "yes", "y", "on", "1", "ja", "oui", "si", "sí"})
_FALSE = frozenset({"false", "no", "n", "off", "0", "nein", "non"})
_ADDRESSES = ("href", "src", "data-src", "content", "action")
_COMMA_LANGUAGES = frozenset(
    {"bg", "ca", "cs", "da", "de", "el", "es", "et", "fi", "fr", "gl", "hr", "hu", "id", "is", "it", "lt", "lv", "nb"}
    | {"nl", "nn", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr", "sv", "tr", "uk", "vi"}
)
"""Languages that write 1,5 for one and a half."""
_MAX_SHOWN = 60


class PageFacts(Struct, frozen=True, kw_only=True):
    """What the page says of itself that decides how its values are read."""

    base: str
    """What links are relative to."""
    language: str = ""
    """As its `lang` attribute says."""

    @property
    def decimal(self) -> str | None:
        """The decimal sign of the page's language; None if it does not say one."""
        code = self.language.lower().replace("_", "-").partition("-")[0].strip()
        if self.language.lower() in ("es-mx", "de-ch", "de-li", "it-ch"):
            return "."
        return None if not code else "," if code in _COMMA_LANGUAGES else "."


class NotOfThatType(Exception):
    """Why it is not a value of the type that was asked for."""


Convert = Callable[[Found, Mapping[str, Any], PageFacts], Any]


def _text(found: Found) -> str:
    return found if isinstance(found, str) else clean(" ".join(lines(found)))


def _refused(found: Found, kind: str) -> NotOfThatType:
    return NotOfThatType(f"{_text(found)[:_MAX_SHOWN]!r} is not a {kind}")


def _as_text(found: Found, _rule: Mapping[str, Any], _context: PageFacts) -> str:
    text = _text(found)
    if not text:
        raise NotOfThatType("found, but without text")
    return text


def _as_number(found: Found, rule: Mapping[str, Any], context: PageFacts) -> int | float:
    """The first number. Where one separator before three digits may mean two things, the page's language decides."""
    text = clean_text(_text(found))
    decimal = rule.get("decimal")
    match = NUMBER.search(text)
    if decimal is None and match is not None and _is_ambiguous(match.group().rstrip(".,")):
        decimal = context.decimal
        if decimal is None and "." in match.group():
            raise NotOfThatType(f'{text[:_MAX_SHOWN]!r} may be two numbers; give "decimal": "." or ","')
    number = parse_number(text, decimal=decimal)
    if number is None:
        raise _refused(found, "number")
    return int(number) if number == number.to_integral_value() else float(number)


def _is_ambiguous(written: str) -> bool:
    whole, separator, rest = written.replace(",", ".").partition(".")
    return bool(separator) and len(rest) == 3 and rest.isdecimal() and 1 <= len(whole) <= 3 and whole.strip("0") != ""


def _as_price(found: Found, _rule: Mapping[str, Any], _context: PageFacts) -> dict[str, Any]:
    price = parse_price(_text(found))
    if price.amount is None:
        raise _refused(found, "price")
    return {"amount": float(price.amount), "currency": price.currency}


def _as_date(found: Found, rule: Mapping[str, Any], _context: PageFacts) -> str:
    """ISO 8601. A `<time>` element says the date itself."""
    said = None if isinstance(found, str) else found.attributes.get("datetime")
    day = parse_date(said or _text(found), order=rule.get("order"))
    if day is None:
        hint = "" if rule.get("order") else '; if day and month are in doubt, give "order": "dmy" or "mdy"'
        raise NotOfThatType(f"{_text(found)[:_MAX_SHOWN]!r} is not a date{hint}")
    return day.isoformat()


def _as_url(found: Found, _rule: Mapping[str, Any], context: PageFacts) -> str:
    """Absolute. Of an element, where it leads."""
    if isinstance(found, str):
        written = found
    else:
        written = next((value for name in _ADDRESSES if (value := found.attributes.get(name))), "")
    try:
        link = clean(urljoin(context.base, written.strip())) if written.strip() else ""
    except ValueError:
        link = ""
    if not link.startswith(("http://", "https://")):
        raise NotOfThatType(f"{(written or _text(found))[:_MAX_SHOWN]!r} is not a URL")
    return link


def _as_bool(found: Found, rule: Mapping[str, Any], _context: PageFacts) -> bool:
    """By words such as yes and no. An attribute without a value, such as `checked`, is true by being there."""
    word = _text(found).strip().lower()
    if word in _FALSE:
        return False
    if word in _TRUE or (isinstance(found, str) and word in ("", str(rule.get("attr") or "").lower())):
        return True
    raise _refused(found, "boolean")


def _as_html(found: Found, _rule: Mapping[str, Any], _context: PageFacts) -> str:
    return found if isinstance(found, str) else clean(found.html or "")


def _as_markdown(found: Found, _rule: Mapping[str, Any], context: PageFacts) -> str:
    if isinstance(found, str):
        return found
    from scrapeyard_sdk.extract.markdown import to_markdown  # noqa: PLC0415 - a server that reads no pages needs none

    return clean(to_markdown(LexborHTMLParser(found.html or ""), context.base, whole=True))


def _as_json(found: Found, _rule: Mapping[str, Any], _context: PageFacts) -> Any:
    """Of a script element, what is in it."""
    text = found if isinstance(found, str) else found.text()
    budget = Budget()
    documents = read_json(text, budget)
    if budget.left <= 0:
        raise NotOfThatType("the JSON document has too many values")
    if len(documents) != 1:
        raise _refused(text, "JSON document")
    return documents[0]


CONVERTERS: dict[str, Convert] = {
    "text": _as_text,
    "number": _as_number,
    "price": _as_price,
    "date": _as_date,
    "url": _as_url,
    "bool": _as_bool,
    "html": _as_html,
    "markdown": _as_markdown,
    "json": _as_json,
}
"""By the rule's `as`. Each raises NotOfThatType."""
