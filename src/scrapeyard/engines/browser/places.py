"""Language, time zone and position that go with the country of an exit, so that a page sees one place."""

from functools import lru_cache
from importlib.resources import files

from msgspec import Struct

LANGUAGES = {
    "AE": "ar", "AR": "es", "AT": "de", "AU": "en", "BE": "nl", "BG": "bg", "BR": "pt", "CA": "en", "CH": "de",
    "CL": "es", "CN": "zh", "CO": "es", "CZ": "cs", "DE": "de", "DK": "da", "EE": "et", "EG": "ar", "ES": "es",
    "FI": "fi", "FR": "fr", "GB": "en", "GR": "el", "HK": "zh", "HR": "hr", "HU": "hu", "ID": "id", "IE": "en",
    "IL": "he", "IN": "en", "IT": "it", "JP": "ja", "KR": "ko", "LT": "lt", "LV": "lv", "MX": "es", "MY": "ms",
    "NL": "nl", "NO": "nb", "NZ": "en", "PE": "es", "PH": "en", "PK": "en", "PL": "pl", "PT": "pt", "RO": "ro",
    "RS": "sr", "RU": "ru", "SA": "ar", "SE": "sv", "SG": "en", "SI": "sl", "SK": "sk", "TH": "th", "TR": "tr",
    "TW": "zh", "UA": "uk", "US": "en", "VN": "vi", "ZA": "en",
}  # fmt: skip
"""By country, the language that most pages there are read in."""
_LARGEST = {"US": "America/New_York", "RU": "Europe/Moscow", "BR": "America/Sao_Paulo", "CA": "America/Toronto",
            "AU": "Australia/Sydney", "CN": "Asia/Shanghai", "MX": "America/Mexico_City", "ID": "Asia/Jakarta",
            "ES": "Europe/Madrid", "PT": "Europe/Lisbon", "CL": "America/Santiago", "UA": "Europe/Kyiv",
            "AR": "America/Argentina/Buenos_Aires", "DE": "Europe/Berlin", "NZ": "Pacific/Auckland",
            "MY": "Asia/Kuala_Lumpur"}  # fmt: skip
"""Of a country with several zones, the one where most people live."""


class CountryPlace(Struct, frozen=True, kw_only=True):
    """What a page is told."""

    locale: str
    timezone: str
    latitude: float
    longitude: float


@lru_cache(maxsize=256)
def place_of(country: str) -> CountryPlace | None:
    """Of a country by its two letters; None: none is known."""
    country = country.upper()
    zones = _zones().get(country)
    if not zones:
        return None
    name = _LARGEST.get(country, next(iter(zones)))
    latitude, longitude = zones.get(name) or next(iter(zones.values()))
    language = LANGUAGES.get(country, "en")
    return CountryPlace(locale=f"{language}-{country}", timezone=name, latitude=latitude, longitude=longitude)


@lru_cache(maxsize=1)
def _zones() -> dict[str, dict[str, tuple[float, float]]]:
    """By country: its zones, each with the position of its largest town."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    text = (files("tzdata") / "zoneinfo" / "zone.tab").read_text()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        country, position, name = line.split("\t")[:3]
        found.setdefault(country, {})[name] = _position(position)
    return found


def _position(text: str) -> tuple[float, float]:
    """`+4043-07401` (degrees and minutes) or `+404251-0740023` (and seconds)."""
    middle = max(text.rfind("+"), text.rfind("-"))
    return _degrees(text[:middle], 2), _degrees(text[middle:], 3)


def _degrees(text: str, digits: int) -> float:
    sign = -1 if text[0] == "-" else 1
    numbers = text[1:]
    degrees, minutes, seconds = numbers[:digits], numbers[digits : digits + 2], numbers[digits + 2 :]
    return round(sign * (int(degrees) + int(minutes) / 60 + int(seconds or 0) / 3600), 4)
