"""Where an exit is wanted."""

import re

from msgspec import Struct

_OTHER = re.compile(r"[^a-z0-9]")


class Place(Struct, frozen=True, kw_only=True):
    """Parts are lower case and hold nothing but letters and digits, so that none can say more than a place."""

    country: str = ""
    state: str = ""
    city: str = ""

    @classmethod
    def of(cls, country: str = "", state: str = "", city: str = "") -> "Place":
        """From what a policy writes: `US`, `NY`, `New York`."""
        return cls(country=_plain(country), state=_plain(state), city=_plain(city))


def _plain(text: str) -> str:
    return _OTHER.sub("", text.lower())
