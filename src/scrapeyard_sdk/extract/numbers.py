"""Numbers as people write them: `1.234,5`, `1 234`, `-3 °C`, `1.2k`, `3,4 Mio.`, `1.5만`."""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from decimal import Decimal, InvalidOperation

MAX_TEXT = 500
"""Maximum characters read; what is looked for is near the beginning of the text."""
_MAX_DIGITS = 30
MARKS = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:\s\d{3})+(?!\d)(?:[.,]\s?\d+)?|[.,]?\d(?:[\d.,'’]|(?<=[.,])\s(?=\d\d(?!\d)))*")
_MINUS = re.compile(r"(?:^|[\s(:=$€£¥₩])[-−]$")
_ARABIC = str.maketrans({"٫": ".", "٬": "'"})
_FACTORS = {
    3: "thousand Tsd тыс",
    4: "만 万 萬",
    6: "mn million millions Million Millionen Mio millones млн",
    8: "억 億 亿",
    9: "bn billion billions Mrd млрд",
}
_POWERS = {word: power for power, words in _FACTORS.items() for word in words.split()}
_LETTERS = {"k": 3, "K": 3, "M": 6, "B": 9}
"""Only right behind the number: `3 M` may be metres, `1.2M` is not."""
_END = r"(?![^\W_])"
_WORDS = "|".join(word + (_END if word[0] < "⺀" else "") for word in sorted(_POWERS, reverse=True))
_SUFFIX = re.compile(rf"[kKMB]{_END}|\s?(?:{_WORDS})")


def clean_text(text: str | None) -> str:
    """The beginning of a text on one line, without invisible marks."""
    return " ".join(MARKS.sub("", (text or "")[:MAX_TEXT]).split())


def parse_number(text: str | None, *, decimal: str | None = None) -> Decimal | None:
    """The first number in a short text; None if it has none. Never raises for text.

    Separators of thousands are dropped: `1.234,5` and `1,234.5` are the same number. One separator before three digits
    stands for thousands (`1.234` is 1234), except after a zero; `decimal` (`.` or `,`) says which one is the decimal
    sign, and the other is then for thousands. `k`, `M`, `Mio.`, `만` and their like multiply.
    """
    if decimal not in (None, ".", ","):
        raise ValueError("decimal is '.' or ','")
    line = clean_text(text).translate(_ARABIC)
    match = NUMBER.search(line)
    if match is None:
        return None
    written = match.group().rstrip(".,'’")
    after = line[match.start() + len(written) :]
    if decimal is not None:
        written = written.replace("," if decimal == "." else ".", "").replace(",", ".")
        number = _as_decimal(re.sub(r"[\s'’]", "", written))
    else:
        number = decimal_of(written)
    if number is None:
        return None
    number *= Decimal(10) ** _power(after)
    return -number if _MINUS.search(line, 0, match.start()) else number


def decimal_of(text: str, three_decimals: bool = False) -> Decimal | None:
    """Digits with any separators as a number; None if they are not one.

    `three_decimals`: a separator before three digits is the decimal sign, as in dinars.
    """
    digits = re.sub(r"[\s'’]", "", text)
    lead = digits.lstrip(".,")
    is_plain = len(digits) - len(lead) > 1 or len(re.split(r"[.,]", lead)) > 1
    return _as_decimal(_joined(lead if is_plain else digits, three_decimals))


def _as_decimal(digits: str) -> Decimal | None:
    try:
        return Decimal(digits) if len(digits) <= _MAX_DIGITS else None
    except InvalidOperation:
        return None


def _power(after: str) -> int:
    """The power of ten that the word after a number stands for; 0 if it is none."""
    found = _SUFFIX.match(after)
    return (_LETTERS | _POWERS)[found.group().strip()] if found else 0


def _joined(digits: str, three_decimals: bool) -> str:
    """The digits without thousands separators and with a dot before the decimals."""
    parts = re.split(r"[.,]", digits)
    separators = re.findall(r"[.,]", digits)
    if not separators:
        return digits
    if _ends_in_decimals(parts, separators, three_decimals):
        return "".join(parts[:-1]) + "." + parts[-1]
    return "".join(parts)


def _ends_in_decimals(parts: list[str], separators: list[str], three_decimals: bool) -> bool:
    last = len(parts[-1])
    if len(set(separators)) > 1:
        return last != 3 or separators.count(separators[-1]) == 1
    if len(separators) > 1:
        return last != 3
    if last != 3:
        return True
    return parts[0].strip("0") == "" or three_decimals
