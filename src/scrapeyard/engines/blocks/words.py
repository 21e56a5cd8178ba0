"""What refusals say, weighed. The turns of phrase stand in `words.toml`."""

import re
import tomllib
from importlib.resources import files
from typing import Literal

from msgspec import Struct, convert

from scrapeyard.engines.blocks.block import BlockKind

Feature = Literal["refused", "robot", "check", "guard", "number", "plea", "place", "limit"]
_TO_US = 0.7


class _Written(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    feature: Feature
    weight: float
    kind: BlockKind
    why: str
    patterns: list[str]


class _Sheet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    done: str
    turn: list[_Written]


class Turn(Struct, frozen=True, kw_only=True):
    """A turn of phrase."""

    pattern: re.Pattern[str]
    weight: float
    feature: Feature
    """Each feature counts once, by its heaviest turn."""
    kind: BlockKind
    why: str

    @property
    def to_us(self) -> bool:
        """Whether it is said to the visitor rather than about the world."""
        return self.weight >= _TO_US and self.feature in ("refused", "check")


def _read() -> tuple[Turn, ...]:
    text = files(__package__).joinpath("words.toml").read_text("utf-8")
    sheet = convert(tomllib.loads(text), _Sheet)
    by_weight = sorted(sheet.turn, key=lambda written: -written.weight)
    return tuple(_turn(written, f"(?:{sheet.done})") for written in by_weight)


def _turn(written: _Written, done: str) -> Turn:
    pattern = re.compile("|".join(written.patterns).replace("<done>", done))
    return Turn(pattern=pattern, weight=written.weight, feature=written.feature, kind=written.kind, why=written.why)


TURNS = _read()
"""The heaviest first, so that a feature that is found needs no second look."""


def weigh(text: str) -> tuple[float, Turn | None]:
    """The sum of what a text says, and its heaviest turn; None: it says nothing of the kind. Expects lower case."""
    text = text.replace("\u2019", "'")
    found: dict[Feature, Turn] = {}
    for turn in TURNS:
        if turn.feature not in found and turn.pattern.search(text):
            found[turn.feature] = turn
    heaviest = max(found.values(), key=_importance, default=None)
    return sum(turn.weight for turn in found.values()), heaviest


def _importance(turn: Turn) -> tuple[bool, float]:
    """Pleas and numbers give weight but do not say what happened."""
    return turn.feature not in ("number", "plea", "guard"), turn.weight
