"""How sure a value is: what each way to it is worth, and what it means that ways agree or not.

Each way has a reliability: the share of its values that are right, as the benchmark `ladder` measures it.
Ways that agree count as independent witnesses: their odds multiply. Witnesses for another value divide them. One way
alone is as sure as its reliability.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from scrapeyard.builtin.extraction.fields import same

How = Literal["structured", "pattern", "model", "fallback"]
NOT_IN_PAGE = "not_in_page"
"""Flag of a value that a model gave and the page does not have."""
DISPUTED = "disputed"
"""Flag of a value that another way contradicts."""

STRUCTURED = {
    "json-ld": 0.96,
    "microdata": 0.95,
    "rdfa": 0.94,
    "opengraph": 0.85,
    "script": 0.8,
    "attributes": 0.7,
    "page": 0.8,
    "meta": 0.65,
    "url": 0.6,
    "assumed": 0.6,
}
"""By the source that the readers tell."""
DESCRIBED = 0.75
"""At most, for a field with a description: the reader does not know what it says."""
QUOTED, ELSEWHERE, INVENTED = 0.93, 0.75, 0.08
"""A model's value: in the piece that it names, in another one, nowhere."""
SELECTED = 0.8
"""By the user's own selector."""
_LEAST, _MOST = 0.01, 0.995


class Candidate(Struct, frozen=True, kw_only=True):
    """One value of a field, and how it was found."""

    value: Any
    how: How
    reliability: float
    text: str = ""
    """As it stands in the page."""
    selector: str = ""
    """CSS or XPath of a node that has the text; empty: none is known."""
    json_path: str = ""
    """Where the text stands in the node's JSON."""
    flags: tuple[str, ...] = ()


class FieldAnswer(Struct, frozen=True, kw_only=True):
    """The value of a field that is given, with how sure it is."""

    value: Any = None
    confidence: float = 0.0
    how: How | None = None
    text: str = ""
    selector: str = ""
    json_path: str = ""
    flags: tuple[str, ...] = ()

    def shown(self) -> dict[str, Any]:
        """As results have it."""
        evidence = {"text": self.text[:500], "selector": self.selector, "json_path": self.json_path or None}
        return {
            "value": self.value,
            "confidence": self.confidence,
            "evidence": evidence if self.selector else None,
            "how": self.how,
            "flags": list(self.flags),
        }


def pattern_reliability(share: float, examples: int) -> float:
    """Of a learned pattern: by the share of its rules that agree, and by how many pages taught it."""
    taught = 0.93 if examples < 2 else 0.96 if examples < 3 else 0.97
    return 0.3 + (taught - 0.3) * share


def weigh(candidates: Sequence[Candidate]) -> FieldAnswer:
    """The value that most speaks for, and how sure it is; without candidates, none."""
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        group = next((each for each in groups if same(each[0].value, candidate.value)), None)
        if group is None:
            groups.append([candidate])
        else:
            group.append(candidate)
    if not groups:
        return FieldAnswer()
    ranked = sorted(groups, key=_odds, reverse=True)
    against = max((_odds(group) for group in ranked[1:]), default=-math.inf)
    best = max(ranked[0], key=lambda each: each.reliability)
    share = 1 / (1 + math.exp(max(0.0, against) - _odds(ranked[0])))
    flags = dict.fromkeys(flag for each in ranked[0] for flag in each.flags)
    if against > 0:
        flags[DISPUTED] = None
    return FieldAnswer(
        value=best.value,
        confidence=round(min(_MOST, max(_LEAST, share)), 3),
        how=best.how,
        text=best.text,
        selector=best.selector,
        json_path=best.json_path,
        flags=tuple(flags),
    )


def _odds(group: Iterable[Candidate]) -> float:
    """The logarithm. Each way counts once, at its best."""
    best: dict[str, float] = {}
    for each in group:
        best[each.how] = max(best.get(each.how, 0.0), each.reliability)
    return sum(math.log(share / (1 - share)) for share in (min(_MOST, max(_LEAST, each)) for each in best.values()))
