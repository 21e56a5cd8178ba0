"""`[policy]` of a manifest: each key with what it may be, once for the reader and once as a JSON Schema."""

import math
import re
from collections.abc import Mapping
from typing import Any, Protocol, get_args

from msgspec import Struct, convert

from scrapeyard.model import Defaults, FetchPolicy, Priority
from scrapeyard.model.fetching import (
    CITY,
    COUNTRY,
    POOL,
    PROFILES,
    STATE,
    BackoffKind,
    CacheMode,
    RobotsMode,
)
from scrapeyard.repository.manifest.values import Place, meant

MAX_RETRIES = 20
MAX_TIMEOUT = 86_400
MOST = 10**12
"""Of any number that has no smaller bound of its own."""


class Rule(Protocol):
    """What the value of one key may be."""

    @property
    def remedy(self) -> str:
        """What to write instead of a wrong value."""

    @property
    def schema(self) -> dict[str, Any]:
        """The same as a JSON Schema."""

    def allows(self, value: Any) -> bool:
        """Whether this value is good."""


class Number(Struct, frozen=True, kw_only=True):
    """A number from `least` to `most`; a whole one, or any. `above`: more than `least`."""

    least: float = 0
    most: float = MOST
    whole: bool = False
    above: bool = False

    @property
    def remedy(self) -> str:
        """In words."""
        kind = "a whole number" if self.whole else "a number"
        return f"must be {kind} {'above' if self.above else 'from'} {self.least:g} {'up ' * self.above}to {self.most:g}"

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        least = "exclusiveMinimum" if self.above else "minimum"
        return {"type": "integer" if self.whole else "number", least: self.least, "maximum": self.most}

    def allows(self, value: Any) -> bool:
        """In Python, true is 1; here it is not."""
        if isinstance(value, bool) or not isinstance(value, int if self.whole else (int, float)):
            return False
        return math.isfinite(value) and self.least <= value <= self.most and not (self.above and value == self.least)


class Choice(Struct, frozen=True):
    """One of a few texts."""

    values: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """In words."""
        quoted = [f'"{value}"' for value in self.values]
        return f"must be {', '.join(quoted[:-1])} or {quoted[-1]}"

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"enum": list(self.values)}

    def allows(self, value: Any) -> bool:
        """Only a text can be one of them."""
        return isinstance(value, str) and value in self.values


class Text(Struct, frozen=True):
    """A text of a fixed form."""

    pattern: str
    remedy: str

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "string", "pattern": self.pattern}

    def allows(self, value: Any) -> bool:
        """The whole of it."""
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None


class Flag(Struct, frozen=True):
    """true or false."""

    remedy: str = "must be true or false"

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        return {"type": "boolean"}

    def allows(self, value: Any) -> bool:
        """Nothing that merely counts as one."""
        return isinstance(value, bool)


RULES: Mapping[str, Rule | Mapping[str, Rule]] = {
    "retries": Number(most=MAX_RETRIES, whole=True),
    "timeout_seconds": Number(most=MAX_TIMEOUT, above=True),
    "priority": Choice(tuple(priority.value for priority in Priority)),
    "robots": Choice(get_args(RobotsMode)),
    "cache": Choice(get_args(CacheMode)),
    "max_age_seconds": Number(),
    "profile": Choice(PROFILES),
    "proxy": Text(POOL, 'must be the name of a pool, or "none"'),
    "country": Text(COUNTRY, 'must be two letters, e.g. "us"'),
    "state": Text(STATE, 'must be a state\'s two letters, e.g. "ny"'),
    "city": Text(CITY, 'must be letters, digits and spaces, at most 60, e.g. "new york"'),
    "escalate": Flag(),
    "budget": {
        "requests": Number(least=1, whole=True),
        "megabytes": Number(above=True),
        "residential_megabytes": Number(),
        "seconds": Number(above=True),
    },
    "backoff": {
        "kind": Choice(get_args(BackoffKind)),
        "first_seconds": Number(most=MAX_TIMEOUT),
        "cap_seconds": Number(most=MAX_TIMEOUT),
    },
}
"""Keys of `[policy]`; a mapping stands for a table."""

_OWN = ("retries", "timeout_seconds", "priority")


def read_policy(value: Any, place: Place) -> Defaults:
    """Raises ScraperInvalid naming the key and the remedy."""
    _check(value, RULES, place)
    fetching = convert({name: wish for name, wish in value.items() if name not in _OWN}, FetchPolicy)
    return Defaults(fetching=fetching, **{name: value[name] for name in _OWN if name in value})


def policy_schema() -> dict[str, Any]:
    """The table as a JSON Schema."""
    return _schema(RULES) | {"description": "What a call that does not say gets."}


def _check(value: Any, rules: Mapping[str, Rule | Mapping[str, Rule]], place: Place) -> None:
    if not isinstance(value, dict):
        raise place.fault(f"must be a table: write [{place.key}] and the keys below it")
    for name, wish in value.items():
        here = Place(place.where, f"{place.key}.{name[:100]}")
        rule = rules.get(name)
        if rule is None:
            raise here.fault(f"no such key{meant(name, rules)}")
        if isinstance(rule, Mapping):
            _check(wish, rule, here)
        elif not rule.allows(wish):
            raise here.fault(rule.remedy)


def _schema(rules: Mapping[str, Rule | Mapping[str, Rule]]) -> dict[str, Any]:
    properties = {name: _schema(rule) if isinstance(rule, Mapping) else rule.schema for name, rule in rules.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}
