"""`[policy]` of a manifest: read by the rules of the model's fields, which are also exported as a JSON Schema."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from msgspec import convert

from scrapeyard.model import Backoff, BudgetLimits, Defaults, FetchPolicy, Priority
from scrapeyard.model.fetching import RETRIES, TIMEOUT_SECONDS, RetentionPolicy, Rule, rules_of
from scrapeyard.repository.manifest.values import Place, meant

Rules = Mapping[str, "Rule | Rules"]

_OWN = {
    "retries": RETRIES,
    "timeout_seconds": TIMEOUT_SECONDS,
    "priority": Rule("Which runs a worker takes first.", Priority),
}
RULES: Rules = {
    **_OWN,
    **rules_of(FetchPolicy),
    "budget": rules_of(BudgetLimits),
    "backoff": rules_of(Backoff),
    "retention": rules_of(RetentionPolicy),
}
"""Keys of `[policy]`; a mapping stands for a table."""
_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}
_KEYWORDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "pattern": "pattern"}


def read_policy(value: Any, place: Place) -> Defaults:
    """Raises ScraperInvalid naming the key and the remedy."""
    _check(value, RULES, place)
    fetching = convert({name: wish for name, wish in value.items() if name not in _OWN}, FetchPolicy)
    return Defaults(fetching=fetching, **{name: value[name] for name in _OWN if name in value})


def policy_schema() -> dict[str, Any]:
    """The table as a JSON Schema."""
    return _schema(RULES) | {"description": "What a call that does not say gets."}


def _schema(rule: Rule | Rules) -> dict[str, Any]:
    if isinstance(rule, Mapping):
        properties = {name: _schema(below) for name, below in rule.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties}
    if rule.kind not in _TYPES:
        return {"enum": _choices(rule)}
    bounds = {keyword: getattr(rule, name) for name, keyword in _KEYWORDS.items()}
    return {"type": _TYPES[rule.kind], **{keyword: bound for keyword, bound in bounds.items() if bound is not None}}


def _check(value: Any, rules: Rules, place: Place) -> None:
    if not isinstance(value, dict):
        raise place.fault(f"must be a table: write [{place.key}] and the keys below it")
    for name, wish in value.items():
        here = Place(place.where, f"{place.key}.{name[:100]}")
        rule = rules.get(name)
        if rule is None:
            raise here.fault(f"no such key{meant(name, rules)}")
        if isinstance(rule, Mapping):
            _check(wish, rule, here)
        elif not _allows(rule, wish):
            raise here.fault(f"must be {_remedy(rule)}")


def _allows(rule: Rule, value: Any) -> bool:
    """Compares types strictly: unlike in Python, true is not 1."""
    if rule.kind not in _TYPES:
        return isinstance(value, str) and value in _choices(rule)
    if type(value) is not rule.kind and (type(value), rule.kind) != (int, float):
        return False
    if rule.pattern is not None:
        return re.fullmatch(rule.pattern, value) is not None
    above = (rule.ge is None or value >= rule.ge) and (rule.gt is None or value > rule.gt)
    return above and (rule.le is None or value <= rule.le)


def _remedy(rule: Rule) -> str:
    if rule.kind is bool:
        return "true or false"
    if rule.kind not in _TYPES:
        *others, last = (f'"{choice}"' for choice in _choices(rule))
        return f"{', '.join(others)} or {last}"
    if rule.kind is str:
        return rule.form
    least = f"from {rule.ge:g}" if rule.gt is None else f"above {rule.gt:g} up"
    return f"a {'whole ' if rule.kind is int else ''}number {least} to {rule.le:g}"


def _choices(rule: Rule) -> list[str]:
    return [str(choice) for choice in get_args(rule.kind) or rule.kind]
