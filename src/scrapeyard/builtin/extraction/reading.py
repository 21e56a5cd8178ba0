"""What is done with a page where it can do no harm: in the process that parses pages."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from scrapeyard.builtin.extraction.confidence import SELECTED, Candidate, FieldAnswer, pattern_reliability, weigh
from scrapeyard.builtin.extraction.fields import FieldSpec, read_text
from scrapeyard.builtin.extraction.readers import read_stated
from scrapeyard.builtin.extraction.reduced import MAX_PIECES, PagePiece, pieces_of, shown
from scrapeyard.builtin.pages.port import RawPage
from scrapeyard_sdk.extract.patterns import Example, FoundField, Pattern, PatternField, PatternInvalid, learn
from scrapeyard_sdk.extract.patterns.template import ALIKE, likeness, marks
from scrapeyard_sdk.extract.patterns.tree import PageTree

MOST_EXAMPLES = 5
"""Answered pages of one pattern."""
SETTLED = 4
"""Answered pages that must be without a field before the pattern takes it that pages of this kind are."""
MAX_EXAMPLE = 1_000_000
"""Characters of a page that is kept as an example."""


class KnownPattern(Struct, frozen=True, kw_only=True):
    """A learned pattern of the site."""

    id: str
    pattern: str
    """As JSON; empty while it is being learned."""
    marks: tuple[int, ...]
    examples: int
    absent: tuple[str, ...] = ()
    """Fields that pages of this kind may be without."""
    unchecked: bool = False
    """Whether pages that it reads are kept to compare its rules on, and what they state is read as well."""


class ReadTask(Struct, frozen=True, kw_only=True, tag="read"):
    """What to find on a page."""

    fields: tuple[FieldSpec, ...]
    patterns: tuple[KnownPattern, ...] = ()
    sure: float = 0.85
    room: int = 0
    """Characters for the page as a model gets it; 0: no model will be asked."""
    selectors: dict[str, Any] = {}
    """Of the user, by field: the last step."""
    learn: bool = False
    """Whether a page of a template without a pattern is kept as an example."""


class LearnTask(Struct, frozen=True, kw_only=True, tag="learn"):
    """Answered pages to learn from."""

    examples: tuple[tuple[str, str, dict[str, Any]], ...]
    """URL, HTML and values of each."""
    others: tuple[str, ...] = ()
    """HTML of pages of the same kind without answers."""


Task = ReadTask | LearnTask


class PageReading(Struct, frozen=True, kw_only=True):
    """What was found."""

    candidates: dict[str, list[Candidate]]
    pattern: str = ""
    """Id of the pattern whose template the page has; empty: none."""
    absent: tuple[str, ...] = ()
    """Fields that the page is without, as other pages of its kind."""
    marks: tuple[int, ...] = ()
    selected: dict[str, list[Candidate]] = {}
    """What the user's selectors find: the last step."""
    pieces: tuple[PagePiece, ...] = ()
    shown: str = ""
    left_out: int = 0
    """Pieces of its content that `shown` has no room for; of a page with very many, at least that."""
    html: str = ""
    """The page as an example; empty if it is too long, or no example is needed."""
    warnings: list[str] = []
    """What was not read of the page."""
    unsettled: bool = False
    """Whether a model is asked because no example has some field yet."""

    def answers(self, fields: Sequence[FieldSpec]) -> dict[str, FieldAnswer]:
        """The best value of each field."""
        return {field.name: weigh(self.candidates.get(field.name, ())) for field in fields}


def read_task(source: str, page: RawPage) -> dict[str, Any]:
    """Do the task of a page; as the parser process answers it."""
    task = msgspec.convert(page.task, Task)
    if isinstance(task, LearnTask):
        return {"pattern": _learned(task)}
    return msgspec.to_builtins(read(source, page.url, task))  # type: ignore[no-any-return]


def read(source: str, url: str, task: ReadTask) -> PageReading:
    """What the site's pattern finds, what the page states, and the page for a model if that is not enough."""
    tree = PageTree(source)
    template = marks(tree)
    known = _pattern_for(template, task.patterns)
    found = _by_pattern(tree, url, known, task.fields) if known is not None else {}
    needed = [field for field in task.fields if field.required]
    if known is None or known.unchecked or not _reads_all(known, found, task):
        for name, stated in read_stated(source, url, task.fields, tree).items():
            found.setdefault(name, []).extend(stated)
    told = PageReading(
        candidates=found,
        pattern=known.id if known is not None else "",
        absent=_absent(found, task, known),
        marks=template,
    )
    html = tree.html() if task.learn and _is_of_use(known) else ""
    told = replace(told, html=html if len(html) <= MAX_EXAMPLE else "")
    unsettled = _unsettled(found, task, known)
    if _are_sure(needed, found, task, known) and not unsettled:
        return told
    found_pieces = pieces_of(tree) if task.room else []
    pieces = found_pieces[:MAX_PIECES]
    html = html or (tree.html() if task.room else "")
    page, left_out = shown(pieces, task.room, links=any(field.kind == "url" for field in task.fields))
    return replace(
        told,
        selected=_by_selectors(source, url, task),
        pieces=tuple(pieces),
        shown=page,
        left_out=left_out + len(found_pieces) - len(pieces),
        unsettled=unsettled,
        html=html if len(html) <= MAX_EXAMPLE else "",
    )


def _pattern_for(template: Sequence[int], patterns: Sequence[KnownPattern]) -> KnownPattern | None:
    ranked = sorted(patterns, key=lambda each: likeness(template, each.marks), reverse=True)
    return ranked[0] if ranked and likeness(template, ranked[0].marks) >= ALIKE else None


def _by_pattern(
    tree: PageTree, url: str, known: KnownPattern, fields: Sequence[FieldSpec]
) -> dict[str, list[Candidate]]:
    pattern = _parsed(known.pattern) if known.pattern else None
    found: dict[str, list[Candidate]] = {}
    for field in fields:
        rules = pattern.fields.get(field.name) if pattern is not None else None
        if rules is None:
            continue
        each = rules.find(tree, url)
        value = _typed(each, field, url)
        if value not in (None, []):
            worth = pattern_reliability(each.confidence, known.examples)
            text = _as_written(tree, rules, each, url)
            found[field.name] = [
                Candidate(value=value, how="pattern", reliability=worth, text=text, selector=each.xpath)
            ]
    return found


def _as_written(tree: PageTree, rules: PatternField, found: FoundField, url: str) -> str:
    """The text that a value was read from; the value itself where that stands in it. Of a list, that of the first."""
    first = found.value[0] if isinstance(found.value, list) else found.value
    texts = tree.find(found.xpath)
    text = next((each for each in texts if rules.reading.read(each, url) == first), "")
    return str(first) if str(first) in text else text


@lru_cache(maxsize=256)
def _parsed(text: str) -> Pattern | None:
    try:
        return Pattern.from_json(text)
    except PatternInvalid:
        return None


def _typed(found: FoundField, field: FieldSpec, url: str) -> Any:
    """What a pattern found, as the field's kind. Patterns keep numbers as such, everything else as text."""
    listed = found.value if isinstance(found.value, list) else [found.value]
    read = [_value(each, field, url) for each in listed if each is not None]
    kept = [each for each in read if each is not None]
    return kept if field.many else (kept[0] if len(kept) == 1 else None)


def _value(each: Any, field: FieldSpec, url: str) -> Any:
    if isinstance(each, (int, float)) and field.kind in ("number", "integer"):
        return each if field.kind == "number" or each == int(each) else None
    return read_text(str(each), field.kind, url)


def _are_sure(
    fields: Sequence[FieldSpec], found: dict[str, list[Candidate]], task: ReadTask, known: KnownPattern | None
) -> bool:
    absent = _absent(found, task, known)
    return all(field.name in absent or weigh(found.get(field.name, ())).confidence >= task.sure for field in fields)


def _is_of_use(known: KnownPattern | None) -> bool:
    """Whether the pattern of a page's template can still learn from it."""
    return known is None or known.unchecked or (not known.pattern and known.examples < MOST_EXAMPLES)


def _reads_all(known: KnownPattern, found: dict[str, list[Candidate]], task: ReadTask) -> bool:
    """Whether the pattern is enough: its required fields are sure, and it knows the others or that pages lack them."""
    pattern = _parsed(known.pattern) if known.pattern else None
    if pattern is None or not found:
        return False
    needed = [field for field in task.fields if field.required]
    others = {field.name for field in task.fields if not field.required}
    return others <= {*pattern.fields, *known.absent} and _are_sure(needed, found, task, known)


def _absent(found: dict[str, list[Candidate]], task: ReadTask, known: KnownPattern | None) -> tuple[str, ...]:
    """Fields that nothing finds on a page whose other fields the pattern finds, if pages of its kind may lack them."""
    if known is None or not known.pattern:
        return ()
    there = sum(weigh(found.get(field.name, ())).confidence >= task.sure for field in task.fields)
    missing = [field for field in task.fields if not found.get(field.name)]
    if not there or there < len(task.fields) - len(missing):
        return ()
    never = _never_seen(known)
    return tuple(field.name for field in missing if field.name in known.absent and field.name not in never)


def _never_seen(known: KnownPattern) -> tuple[str, ...]:
    """Fields that the few examples so far are all without: other pages may have them."""
    pattern = _parsed(known.pattern) if known.pattern and known.examples < SETTLED else None
    return tuple(name for name in known.absent if name not in pattern.fields) if pattern is not None else ()


def _unsettled(found: dict[str, list[Candidate]], task: ReadTask, known: KnownPattern | None) -> bool:
    wanted = {field.name for field in task.fields}
    return known is not None and any(name in wanted and not found.get(name) for name in _never_seen(known))


def _by_selectors(source: str, url: str, task: ReadTask) -> dict[str, list[Candidate]]:
    rules = {name: rule for name, rule in task.selectors.items() if any(field.name == name for field in task.fields)}
    if not rules:
        return {}
    from scrapeyard.builtin.pages.select import read_fields  # noqa: PLC0415 - few pages need it

    page = RawPage(url=url, body=b"", encoding="utf-8", fields={name: _as_text(rule) for name, rule in rules.items()})
    values = read_fields(source, page)["fields"] or {}
    return dict(_selected(values, rules, task.fields, url))


def _as_text(rule: Any) -> dict[str, Any]:
    said = {"css": rule} if isinstance(rule, str) and not rule.startswith(("/", "(")) else rule
    said = {"xpath": said} if isinstance(said, str) else dict(said)
    return {name: value for name, value in said.items() if name not in ("required", "default")}


def _selected(
    values: dict[str, Any], rules: dict[str, Any], fields: Sequence[FieldSpec], url: str
) -> Iterator[tuple[str, list[Candidate]]]:
    for field in fields:
        value = values.get(field.name)
        listed = value if isinstance(value, list) else [value]
        read = [_value(each, field, url) for each in listed if isinstance(each, (str, int, float))]
        kept = [each for each in read if each is not None]
        if not kept or (len(kept) > 1 and not field.many):
            continue
        rule = rules[field.name]
        selector = rule if isinstance(rule, str) else str(rule.get("css") or rule.get("xpath") or "")
        text = next(str(each) for each in listed if isinstance(each, (str, int, float)))[:2000]
        chosen = kept if field.many else kept[0]
        yield (
            field.name,
            [Candidate(value=chosen, how="fallback", reliability=SELECTED, text=text, selector=selector)],
        )


def _learned(task: LearnTask) -> str:
    """A pattern as JSON; empty if nothing can be learned."""
    examples = [Example(html=html, values=values, url=url) for url, html, values in task.examples]
    pattern = learn(examples, task.others)
    return pattern.to_json() if pattern.fields else ""
