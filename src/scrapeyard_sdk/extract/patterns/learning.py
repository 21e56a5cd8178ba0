"""Learn a pattern from answered pages, and check it on pages that nobody answered.

For each field: every rule that leads to the value on one of the answered pages is tried on all of them. Rules that find
the right values, and agree with each other on the other pages, stay. A wrong answer among several is outvoted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scrapeyard_sdk.extract.patterns.candidates import candidates
from scrapeyard_sdk.extract.patterns.pattern import MAX_XPATH, FoundField, Pattern, PatternField, PatternRule
from scrapeyard_sdk.extract.patterns.readings import Kind, ValueReading, ValueShape, kind_of, part_of, value_of
from scrapeyard_sdk.extract.patterns.tree import PageTree, TextPlace, fold

MAX_EXAMPLES, MAX_OTHERS = 20, 12
"""Pages that are looked at."""
KEPT_RULES = 8
_PLACES = 4
"""Places of one value on one page that rules are made for."""
_POOL = 60
"""Rules that are tried on pages without answers."""
_CONSTANT_SHARE = 0.3
"""A text on so many of the pages may be a label."""
_TEMPLATE_SHARE = 0.8
"""A text on so many of the pages belongs to the template: as an answer it is likely wrong."""
_WRONG, _UNASKED = 0.6, 0.2
"""What a page counts against a rule that finds another value there, or one where no answer was given: answers may be
wrong, and are more often missing."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A page and its answer."""

    html: str | bytes
    values: Mapping[str, Any]
    """Field to value, list of values, or None if the page has none."""
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class _Page:
    tree: PageTree
    url: str
    wanted: frozenset[Any]


@dataclass(kw_only=True)
class _Scored:
    xpath: str
    cost: float
    right: int
    """Answered pages where it finds only right values."""
    whole: int
    """Of these, pages where it finds all of them."""
    wrong: int
    unasked: int
    """Pages without an answer where it finds something."""

    @property
    def fit(self) -> float:
        return self.right - _WRONG * self.wrong - _UNASKED * self.unasked


def learn(examples: Sequence[Example], others: Sequence[str | bytes] = ()) -> Pattern:
    """A pattern for the fields of the examples. `others`: more pages of the same kind, without answers.

    Two examples are enough for most pages, three to five are better. A field is left out if no rule finds the values of
    at least half of the examples that have it.
    """
    examples = examples[:MAX_EXAMPLES]
    trees = [PageTree(example.html) for example in examples]
    more = [PageTree(html) for html in others[:MAX_OTHERS]]
    texts = _Texts([*trees, *more])
    names = dict.fromkeys(name for example in examples for name in example.values)
    learned = {name: _learn_field(name, examples, trees, more, texts) for name in names}
    return Pattern(fields={name: each for name, each in learned.items() if each is not None})


class _Texts:
    """On how many pages each text stands."""

    def __init__(self, trees: Sequence[PageTree]) -> None:
        self._seen = Counter(text for tree in trees for text in tree.counts)
        self._pages = len(trees)
        self.constants = self._on(_CONSTANT_SHARE)
        self._template = self._on(_TEMPLATE_SHARE)

    def _on(self, share: float) -> frozenset[str]:
        least = max(2.0, share * self._pages)
        return frozenset(text for text, pages in self._seen.items() if pages >= least)

    def believable(self, given: Sequence[list[Any]]) -> list[list[Any]]:
        """The answers without those that are texts of the template, unless all are."""
        kept = [[value for value in values if fold(str(value)) not in self._template] for values in given]
        return kept if any(kept) else list(given)


def _learn_field(
    name: str,
    examples: Sequence[Example],
    trees: Sequence[PageTree],
    more: Sequence[PageTree],
    texts: _Texts,
) -> PatternField | None:
    given = texts.believable([_listed(example.values.get(name)) for example in examples])
    kind = kind_of(value for values in given for value in values)
    pages = [
        _Page(tree=tree, url=example.url, wanted=frozenset(value_of(value, kind, example.url) for value in values))
        for tree, example, values in zip(trees, examples, given, strict=True)
    ]
    reading, places = _reading(kind, pages)
    shape = ValueShape.of(value for page in pages for value in page.wanted)
    costs: dict[str, float] = {}
    for page, found in zip(pages, places, strict=True):
        for number, place in found:
            for xpath, cost in candidates(page.tree, number, place, texts.constants).items():
                costs[xpath] = min(cost, costs.get(xpath, cost))
    many = any(len(page.wanted) > 1 for page in pages)
    trial = PatternField(rules=(), many=many, reading=reading, shape=shape)
    rules = _choose(trial, costs, pages, more)
    return PatternField(rules=rules, many=many, reading=reading, shape=shape) if rules else None


def _listed(given: Any) -> list[Any]:
    values = given if isinstance(given, (list, tuple)) else [given]
    return [value for value in values if value is not None and str(value).strip()]


Numbered = tuple[int | None, TextPlace]


def _reading(kind: Kind, pages: Sequence[_Page]) -> tuple[ValueReading, list[list[Numbered]]]:
    """How values are read from texts, and where those stand on each page. Whole texts go before parts of texts."""
    whole = ValueReading(kind=kind)
    places = [list(_places(page, whole)) for page in pages]
    answered = sum(1 for page in pages if page.wanted)
    if kind == "text" and sum(map(bool, places)) < 0.5 * answered:
        part = part_of([pair for page in pages for pair in _pairs(page)][:MAX_EXAMPLES])
        if part:
            reading = ValueReading(part=part)
            return reading, [list(_places(page, reading)) for page in pages]
    return whole, places


def _places(page: _Page, reading: ValueReading) -> Iterator[Numbered]:
    """Places of a page whose text reads as a wanted value: texts first, then attributes and whole elements."""
    if not page.wanted:
        return
    left = dict.fromkeys(page.wanted, _PLACES)
    for number, place in _everywhere(page.tree):
        if reading.kind == "number" and len(place.text) > 40:
            continue
        value = reading.read(place.text, page.url)
        if left.get(value, 0) > 0 and (number is not None or reading.kind == "url" or left[value] == _PLACES):
            left[value] -= 1
            yield number, place


def _everywhere(tree: PageTree) -> Iterator[Numbered]:
    yield from enumerate(tree.texts)
    for place in tree.others():
        yield None, place


def _pairs(page: _Page) -> Iterator[tuple[str, str]]:
    """For each value the shortest text that contains it."""
    for value in page.wanted:
        holding = [place.text for place in page.tree.texts if value in place.text]
        if holding:
            yield min(holding, key=len), value


def _choose(
    trial: PatternField, costs: Mapping[str, float], pages: Sequence[_Page], more: Sequence[PageTree]
) -> tuple[PatternRule, ...]:
    answered = sum(1 for page in pages if page.wanted)
    scored = [_score(trial, xpath, cost, pages) for xpath, cost in costs.items() if len(xpath) <= MAX_XPATH]
    good = [each for each in scored if each.right >= max(1, 0.5 * answered) and each.fit > 0]
    best = max((each.fit for each in good), default=0)
    whole = [each for each in good if each.whole == each.right]
    pool = whole if any(each.fit == best for each in whole) else good
    pool = sorted(pool, key=lambda each: (-each.fit, -each.whole, each.cost))[:_POOL]
    shares = _agreement(trial, pool, more)
    weights = {
        each.xpath: 2 * each.fit / answered + 0.5 * each.whole / answered + 2 * share - 0.15 * each.cost
        for each, share in zip(pool, shares, strict=True)
    }
    chosen = sorted((xpath for xpath in weights if weights[xpath] > 0), key=lambda xpath: -weights[xpath])
    return tuple(PatternRule(xpath=xpath, weight=round(weights[xpath], 3)) for xpath in chosen[:KEPT_RULES])


def _score(trial: PatternField, xpath: str, cost: float, pages: Sequence[_Page]) -> _Scored:
    scored = _Scored(xpath=xpath, cost=cost, right=0, whole=0, wrong=0, unasked=0)
    for page in pages:
        values = set(trial.values(page.tree, xpath, page.url))
        if values and values <= page.wanted:
            scored.right += 1
            scored.whole += values == page.wanted
        elif values and page.wanted:
            scored.wrong += 1
        elif values:
            scored.unasked += 1
    return scored


def _agreement(trial: PatternField, pool: Sequence[_Scored], more: Sequence[PageTree]) -> list[float]:
    """For each rule: on how many pages it agrees with most of the others, less those where it does not, as a share."""
    found = [[trial.values(tree, each.xpath) for tree in more] for each in pool]
    winners = [_winner(pool, [answers[page] for answers in found]) for page in range(len(more))]
    return [
        sum((1.0 if values == winner else -1.5) for values, winner in zip(answers, winners, strict=True) if values)
        / max(1, len(more))
        for answers in found
    ]


def _winner(pool: Sequence[_Scored], answers: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    votes: Counter[tuple[Any, ...]] = Counter()
    for each, values in zip(pool, answers, strict=True):
        if values:
            votes[values] += each.fit / (1 + each.cost)  # type: ignore[assignment]
    return max(votes, key=lambda values: votes[values]) if votes else ()


def agrees(
    field: PatternField | None, found: FoundField | None, given: Any, url: str
) -> Literal["right", "wrong", "missing"]:
    """Compare what was found of a field with the value of an example."""
    if field is None or found is None:
        return "missing" if _listed(given) else "right"
    wanted = {value_of(value, field.reading.kind, url) for value in _listed(given)}
    values = set(_listed(found.value))
    if values == wanted:
        return "right"
    return "wrong" if values else "missing"
