"""Conditions and changes in DynamoDB's language. Names and values always stand aside of the text, never in it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from scrapeyard.store.dynamo.table.values import Item, Key, Wire, to_wire

MOST_VALUES: Final = 100
"""Of one comparison."""


class Expression:
    """The names and values of one request."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Wire] = {}

    def name(self, attribute: str) -> str:
        """Stands for an attribute."""
        return self._names.setdefault(attribute, f"#n{len(self._names)}")

    def value(self, value: Any) -> str:
        """Stands for a value."""
        place = f":v{len(self._values)}"
        self._values[place] = to_wire(value)
        return place

    def given(self) -> dict[str, Any]:
        """The arguments of the request that carry them."""
        found: dict[str, Any] = {}
        if self._names:
            found["ExpressionAttributeNames"] = {place: name for name, place in self._names.items()}
        if self._values:
            found["ExpressionAttributeValues"] = self._values
        return found


Where = Callable[[Expression], str]
"""A condition on one row."""


def exists(name: str = "pk") -> Where:
    """The attribute is there; without a name, the row."""
    return lambda to: f"attribute_exists({to.name(name)})"


def absent(name: str = "pk") -> Where:
    """The attribute is not there; without a name, the row."""
    return lambda to: f"attribute_not_exists({to.name(name)})"


def equals(name: str, value: Any) -> Where:
    """None: the attribute is not there."""
    return absent(name) if value is None else _compared(name, "=", value)


def below(name: str, value: Any) -> Where:
    """Less."""
    return _compared(name, "<", value)


def at_most(name: str, value: Any) -> Where:
    """Less or equal."""
    return _compared(name, "<=", value)


def above(name: str, value: Any) -> Where:
    """Greater."""
    return _compared(name, ">", value)


def at_least(name: str, value: Any) -> Where:
    """Greater or equal."""
    return _compared(name, ">=", value)


def between(name: str, low: Any, high: Any) -> Where:
    """Both ends included."""
    return lambda to: f"{to.name(name)} BETWEEN {to.value(low)} AND {to.value(high)}"


def begins(name: str, text: str) -> Where:
    """The attribute begins so."""
    return lambda to: f"begins_with({to.name(name)}, {to.value(text)})"


def one_of(name: str, values: Sequence[Any]) -> Where:
    """At most 100 values."""
    return lambda to: f"{to.name(name)} IN ({', '.join(to.value(value) for value in values)})"


def not_one_of(name: str, values: Sequence[Any]) -> Where:
    """None of these, however many."""
    some = [values[start : start + MOST_VALUES] for start in range(0, len(values), MOST_VALUES)]
    return lambda to: " AND ".join(f"NOT ({one_of(name, part)(to)})" for part in some)


def all_of(*conditions: Where) -> Where:
    """Every one."""
    return lambda to: " AND ".join(condition(to) for condition in conditions)


def any_of(*conditions: Where) -> Where:
    """At least one."""
    return lambda to: f"({' OR '.join(condition(to) for condition in conditions)})"


def _compared(name: str, sign: str, value: Any) -> Where:
    return lambda to: f"{to.name(name)} {sign} {to.value(value)}"


class Put(Struct, frozen=True):
    """Write a whole row."""

    item: Item
    when: Where | None = None


class Update(Struct, frozen=True):
    """Change attributes of a row, which is made if it is missing. None in `to` removes an attribute. `add` counts up:
    only in a transaction, which is done once however often it is sent."""

    key: Key
    to: Mapping[str, Any] = {}
    add: Mapping[str, int | float] = {}
    when: Where | None = None


class Delete(Struct, frozen=True):
    """Remove a row."""

    key: Key
    when: Where | None = None


class ConditionCheck(Struct, frozen=True):
    """Change nothing; the transaction is refused unless the condition holds."""

    key: Key
    when: Where


Write = Put | Update | Delete | ConditionCheck


def update_text(update: Update, to: Expression) -> str:
    """The UpdateExpression."""
    kept = [f"{to.name(name)} = {to.value(value)}" for name, value in update.to.items() if value is not None]
    gone = [to.name(name) for name, value in update.to.items() if value is None]
    added = [f"{to.name(name)} {to.value(value)}" for name, value in update.add.items()]
    parts = (("SET", kept), ("REMOVE", gone), ("ADD", added))
    return " ".join(f"{word} {', '.join(some)}" for word, some in parts if some)
