"""Prices as people write them: `1.298,00 €`, `$ 1,298`, `35€99`, `Was $120.00 Now $60.00`."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from scrapeyard_sdk.extract import currencies
from scrapeyard_sdk.extract.numbers import NUMBER, clean_text, decimal_of

_CENTS_AFTER_SIGN = re.compile(r"(\d)(?:(?:€|£)(\d+)|\s?(?:€|£)\s(\d\d))(?![\d.,])")
_GAP = re.compile(r"[\s:.\-–]{0,3}")
_AMOUNT = re.compile(r"\d[.,]?\s?$")
_AFTER = re.compile(r"[.,]?\s?[-–—]{0,2}\s?")
_UNIT = re.compile(
    r"\s?(?:ft|kg|g|mg|ml|cl|litres?|liters?|cm|mm|inch|in|oz|lbs?|mois|months?|monate|x)\b", re.IGNORECASE
)
_PERCENT = re.compile(r"\s?%")
_OLD = re.compile(r"\b(?:was|rrp|msrp|list price|uvp|statt|avant|antes|old price)\W*\S?\W*$", re.IGNORECASE)
_FREE = re.compile(
    r"\b(?:free|gratis|kostenlos|gratuit|бесплатно)\b(?!\s*(?:shipping|delivery|versand))", re.IGNORECASE
)
_FREE_ABOVE = re.compile(r"free\s+(?:shipping|delivery)", re.IGNORECASE)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(rf"\b(?:{_MONTHS})[a-z]*\.?,?\s+\d{{4}}\b|^\d\d?-\d\d?$|^\d\d?\.\d\d?\.\d{{4}}$", re.IGNORECASE)
_RANGE = re.compile(r"\s?(?:-|–|to|bis|à|a|до)\s?\d", re.IGNORECASE)
_DOLLAR = re.compile(r"(?<![^\W\d_])[A-Z]{2}D(?![^\W\d_])")


@dataclass(frozen=True, kw_only=True)
class Price:
    """An amount and its currency; each is None if the text does not give it."""

    amount: Decimal | None
    sign: str | None
    """The currency as it is written there."""

    @property
    def currency(self) -> str | None:
        """The currency's ISO code; None if the sign is ambiguous or unknown."""
        return currencies.iso_code(self.sign) if self.sign else None


def parse_price(text: str | None, hint: str | None = None) -> Price:
    """The price in a short text. `hint` is another text that may name the currency. Never raises."""
    text, hint = clean_text(text), clean_text(hint)
    found = _numbers(text)
    best = max(found, key=lambda number: number.weight, default=None)
    sign = (best.sign if best else None) or _sign_in(text) or _sign_in(hint) or (best.letter if best else None)
    if sign == "$":
        sign = _dollar_in(text) or (_dollar_in(hint) if "$" in hint else None) or sign
    if best is None:
        return Price(amount=Decimal(0) if _FREE.search(text) else None, sign=sign)
    if _DATE.search(text) or (_FREE_ABOVE.search(text) and len(found) == 1):
        return Price(amount=None, sign=sign)
    return Price(amount=amount_in(best.text, sign), sign=sign)


def amount_in(digits: str, sign: str | None = None) -> Decimal | None:
    """Digits with any separators as an amount. `sign` is the currency: some have three decimals."""
    code = currencies.iso_code(sign) if sign else None
    return decimal_of(digits, currencies.has_three_decimals(code))


class _Number:
    """A number in a text, and how much it looks like the price."""

    def __init__(self, text: str, match: re.Match[str]) -> None:
        self.text = match.group().rstrip(".,'’")
        before, after = text[: match.start()], text[match.start() + len(self.text) :]
        self._follows = _after(after, currencies.signs())
        self.sign = _before(before, currencies.signs()) or self._follows
        self.letter = (
            None if self.sign else _before(before, currencies.letters()) or _after(after, currencies.letters())
        )
        self._is_measure = self.sign is None and bool(_UNIT.match(after))
        self._is_old = bool(_OLD.search(before))
        self._leads_on = bool(_RANGE.match(after))

    @property
    def weight(self) -> tuple[int, bool, bool]:
        """More is better."""
        beside = 2 if self.sign else 1 if self.letter else -1 if self._is_measure else 0
        return (beside, bool(self.text.strip("0., ")), not self._is_old)

    def join(self, upper: "_Number") -> None:
        """`26 to 50 €` is a range in one currency."""
        if self._leads_on and not self.sign and upper.sign and upper.sign == upper._follows:
            self.sign = upper.sign


def _numbers(text: str) -> list[_Number]:
    joined = text
    if text.count("€") + text.count("£") == 1:
        joined = _CENTS_AFTER_SIGN.sub(lambda m: f"{m[1]}.{m[2] or m[3]}", text)
    if joined != text:
        return [number for number in _numbers(joined)[:1] if number]
    found = (match for match in NUMBER.finditer(text) if not _PERCENT.match(text, match.end()))
    numbers = [_Number(text, match) for match in found]
    for number, upper in pairwise(numbers):
        number.join(upper)
    return numbers


def _after(text: str, pattern: re.Pattern[str]) -> str | None:
    gap = _AFTER.match(text)
    found = pattern.match(text, gap.end() if gap else 0) or pattern.match(text)
    return found.group() if found else None


def _before(text: str, pattern: re.Pattern[str]) -> str | None:
    """The currency sign before a number, unless it belongs to the previous number."""
    for match in pattern.finditer(text, max(0, len(text) - 12)):
        if _GAP.fullmatch(text, match.end()):
            return None if _AMOUNT.search(text, 0, match.start()) else match.group()
    return None


def _sign_in(text: str) -> str | None:
    match = currencies.signs().search(text)
    return match.group() if match else None


def _dollar_in(text: str) -> str | None:
    """The code of a dollar, which says more than its sign: `NZD $100`."""
    found = (match.group() for match in _DOLLAR.finditer(text))
    return next((code for code in found if code in currencies.codes()), None)
