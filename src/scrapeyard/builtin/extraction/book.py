"""The patterns of sites: found for a page, learned from answered pages, and counted as they are used."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from scrapeyard.builtin.extraction.confidence import NOT_IN_PAGE, FieldAnswer
from scrapeyard.builtin.extraction.fields import FieldSpec, WantedFields
from scrapeyard.builtin.extraction.reading import MOST_EXAMPLES, KnownPattern, LearnTask
from scrapeyard.builtin.pages.port import Extractor, PageUnreadable, RawPage
from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import new_id
from scrapeyard.store.ports.operations import AnsweredPage, PatternHealth, PatternStore, StoredPattern
from scrapeyard.telemetry.events import get_log
from scrapeyard_sdk.extract.patterns import Pattern, PatternInvalid
from scrapeyard_sdk.extract.patterns.template import ALIKE, likeness

log = get_log("patterns")
LEAST_EXAMPLES = 2
TEACHING = 0.7
"""Confidence from which on a value teaches: a wrong one among several is outvoted."""
FRESH_SECONDS = 5.0
"""How long what was read of the store is used again."""
_KEPT = 2000
_TRIES = 5
CHECKED_ON = 6
"""Pages without answers on which the rules of a pattern are compared."""
_HELD = 32_000_000
"""Characters of pages that are held in memory until they are of use."""


class PatternKey(Struct, frozen=True):
    """Which patterns may serve a page."""

    site: str
    client: str
    fields: str
    """As `WantedFields.key`."""


class Lesson(Struct, frozen=True, kw_only=True):
    """An answered page, to learn from."""

    page: AnsweredPage
    marks: tuple[int, ...]
    absent: tuple[str, ...] = ()
    """Fields that it is without."""


class _HeldPages:
    """Pages that may be of use soon, by what they are held for. The oldest go when there is no room."""

    def __init__(self) -> None:
        self._held: OrderedDict[Any, list[Lesson]] = OrderedDict()
        self._size = 0

    def add(self, name: Any, page: Lesson) -> int:
        """Hold a page; how many there are for that now."""
        pages = self._held.setdefault(name, [])
        pages.append(page)
        self._size += len(page.page.html)
        while self._size > _HELD:
            self.take(next(iter(self._held)))
        return len(self._held.get(name, ()))

    def get(self, name: Any) -> list[Lesson]:
        """Those that are held; they stay."""
        return list(self._held.get(name, ()))

    def take(self, name: Any) -> list[Lesson]:
        """Those that are held; they go."""
        pages = self._held.pop(name, [])
        self._size -= sum(len(each.page.html) for each in pages)
        return pages


NoteValues = Callable[[str, str, str, Mapping[str, Any], Callable[[tuple[str, ...]], Awaitable[None]]], None]
"""Takes the values of a page: pattern, version, site, values; and what to call with the fields that drift."""


class PatternBook:
    """The patterns of one worker. Without a store there are none, and nothing is learned."""

    def __init__(
        self,
        store: PatternStore | None,
        extractor: Extractor,
        clock: Callable[[], float] = time.time,
        *,
        note: NoteValues | None = None,
    ) -> None:
        """`note` watches the values that patterns read, and calls back when they drift."""
        self._note = note
        self._store = store
        self._extractor = extractor
        self._clock = clock
        self._known: OrderedDict[PatternKey, tuple[float, tuple[StoredPattern, ...]]] = OrderedDict()
        self._turns: WeakValueDictionary[PatternKey, asyncio.Lock] = WeakValueDictionary()
        self._used: dict[tuple[str, int], PatternHealth] = {}
        self._written_at = 0.0
        self._stated = _HeldPages()
        """By key: a first page that its structured data answered, until a second one comes."""
        self._unlabelled = _HeldPages()
        """By pattern: pages without answers."""
        self._checking = set[str]()

    @property
    def learns(self) -> bool:
        """Whether answers are kept."""
        return self._store is not None

    async def start(self) -> None:
        """Ready. Starts nothing."""

    async def stop(self) -> None:
        """Write what was counted. May be called twice."""
        await self._write_health()

    def turn(self, key: PatternKey) -> asyncio.Lock:
        """Held while a page teaches: others of its kind wait, and then likely find the pattern."""
        return self._turns.setdefault(key, asyncio.Lock())

    async def known(self, key: PatternKey) -> tuple[StoredPattern, ...]:
        """The patterns for these fields of the site. None while the store is away."""
        read_at, found = self._known.get(key, (0.0, ()))
        if self._store is None or self._clock() - read_at < FRESH_SECONDS:
            return found
        try:
            found = await self._store.known(key.site, key.client, key.fields)
        except StoreUnavailable as error:
            log.warning("patterns.unknown", error=error.message)
        self._keep(key, found)
        return found

    def _keep(self, key: PatternKey, found: tuple[StoredPattern, ...]) -> None:
        self._known[key] = (self._clock(), found)
        self._known.move_to_end(key)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    async def teach(self, key: PatternKey, wanted: WantedFields, lesson: Lesson) -> StoredPattern | None:
        """Learn from an answered page; the pattern as it is now. None if it could not be kept."""
        if self._store is None:
            return None
        try:
            for _ in range(_TRIES):
                before = await self._of_kind(self._store, key, lesson.marks) or self._new(key, wanted, lesson)
                after = await self._taught(before, lesson)
                written = await self._store.put(after)
                if written is not None:
                    others = [each for each in await self.known(key) if each.id != written.id]
                    self._keep(key, (*others, replace(written, examples=())))
                    return written
        except (StoreUnavailable, PageUnreadable) as error:
            log.warning("patterns.not_learned", site=key.site, error=error.message)
        return None

    async def teach_stated(self, key: PatternKey, wanted: WantedFields, lesson: Lesson) -> StoredPattern | None:
        """Learn from a page that its structured data answered. The first of a template is only held: most are the only
        one of their site, and nothing is stored of those."""
        if any(likeness(lesson.marks, each.marks) >= ALIKE for each in await self.known(key)):
            return await self.teach(key, wanted, lesson)
        held = self._stated.take(key)
        alike = [each for each in held if likeness(lesson.marks, each.marks) >= ALIKE]
        alike = [each for each in alike if each.page.url != lesson.page.url]
        if not alike:
            self._stated.add(key, lesson)
            return None
        await self.teach(key, wanted, alike[-1])
        return await self.teach(key, wanted, lesson)

    async def check(self, key: PatternKey, pattern: StoredPattern, lesson: Lesson) -> None:
        """Hold a page without answers that a pattern read. When there are enough, rules that disagree with most others
        on them give way. A pattern that cannot be checked stays as it is."""
        if self._store is None or pattern.id in self._checking:
            return
        if self._unlabelled.add(pattern.id, lesson) < CHECKED_ON:
            return
        self._checking.add(pattern.id)
        try:
            await self._check(self._store, key, pattern)
        except StoreUnavailable as error:
            log.warning("patterns.not_learned", site=key.site, error=error.message)
        finally:
            self._checking.discard(pattern.id)

    async def _check(self, store: PatternStore, key: PatternKey, pattern: StoredPattern) -> None:
        before = await store.get(pattern.id)
        if before is None or (before.version, before.status, before.edited) != (pattern.version, "ready", False):
            return
        try:
            after = await self._relearned(replace(before, changed_at=self._clock()))
        except PageUnreadable as error:
            log.warning("patterns.not_learned", site=key.site, error=error.message)
            after = before
        if await store.put(replace(after, checked=CHECKED_ON)) is not None:
            self._known.pop(key, None)

    async def _of_kind(self, store: PatternStore, key: PatternKey, marks: Sequence[int]) -> StoredPattern | None:
        """The pattern of the page's template, with its examples."""
        ranked = sorted(
            await store.known(key.site, key.client, key.fields), key=lambda each: likeness(marks, each.marks)
        )
        if not ranked or likeness(marks, ranked[-1].marks) < ALIKE:
            return None
        return await store.get(ranked[-1].id)

    def _new(self, key: PatternKey, wanted: WantedFields, lesson: Lesson) -> StoredPattern:
        now = self._clock()
        return StoredPattern(
            id=new_id("pattern"),
            site=key.site,
            client=key.client,
            key=key.fields,
            fields=tuple(field.name for field in wanted.fields),
            status="learning",
            marks=lesson.marks,
            created_at=now,
            changed_at=now,
        )

    async def _taught(self, before: StoredPattern, lesson: Lesson) -> StoredPattern:
        """The pattern with one more example; with a new version where that changes it. A stale one begins anew."""
        if before.status == "stale":
            self._unlabelled.take(before.id)
            before = replace(before, status="learning", examples=(), absent=())
        after = replace(
            before,
            examples=_with_example(before.examples, lesson.page),
            absent=tuple(sorted({*before.absent, *lesson.absent})),
            marks=lesson.marks,
            changed_at=self._clock(),
        )
        is_fixed = before.edited and before.status == "ready"
        return after if is_fixed or len(after.examples) < LEAST_EXAMPLES else await self._relearned(after)

    async def _relearned(self, before: StoredPattern) -> StoredPattern:
        """Learned from its examples and from the pages that are held of it; a new version if that changes it."""
        others = [each.page.html for each in self._unlabelled.get(before.id)]
        pattern = await self._learned(before.examples, others)
        if not pattern:
            return before
        after = replace(before, checked=len(others))
        if pattern == before.pattern and before.status == "ready":
            return after
        version = before.version + 1
        log.info("patterns.learned", site=after.site, pattern=after.id, version=version, pages=len(after.examples))
        return replace(after, pattern=pattern, version=version, status="ready", health=PatternHealth(), edited=False)

    async def _learned(self, examples: Sequence[AnsweredPage], others: Sequence[str]) -> str:
        taught = tuple((each.url, each.html, each.values) for each in examples)
        task = LearnTask(examples=taught, others=tuple(others))
        page = RawPage(url=examples[-1].url, body=b"", encoding="utf-8", task=to_builtins(task))
        return str((await self._extractor.extract(page))["pattern"])

    async def note(self, pattern: StoredPattern, answers: Mapping[str, FieldAnswer], *, asked: bool) -> None:
        """Count a page that a pattern read."""
        filled = {name: 1 for name, answer in answers.items() if answer.how == "pattern"}
        more = PatternHealth(pages=1, asked=int(asked), filled=filled, used_at=self._clock())
        place = (pattern.id, pattern.version)
        self._used[place] = self._used.get(place, PatternHealth()).plus(more)
        if self._note is not None:
            values = {name: answer.value if answer.how == "pattern" else None for name, answer in answers.items()}
            self._note(pattern.id, str(pattern.version), pattern.site, values, lambda _: self.mark_stale(pattern))
        if self._clock() - self._written_at >= FRESH_SECONDS:
            await self._write_health()

    async def mark_stale(self, pattern: StoredPattern) -> None:
        """Use this version no more, and learn anew from the next answered pages. Nothing happens if there is a newer
        one. Raises StoreUnavailable."""
        now = await self._store.get(pattern.id) if self._store is not None else None
        if self._store is None or now is None or now.version != pattern.version or now.status != "ready":
            return
        stale = replace(now, status="stale", changed_at=self._clock())
        if await self._store.put(stale) is not None:
            self._known.pop(PatternKey(now.site, now.client, now.key), None)
            log.warning("patterns.stale", site=now.site, pattern=now.id, version=now.version)

    async def _write_health(self) -> None:
        self._written_at = self._clock()
        used, self._used = self._used, {}
        for (pattern_id, version), health in used.items():
            try:
                if self._store is not None:
                    await self._store.count(pattern_id, version, health)
            except StoreUnavailable as error:
                log.warning("patterns.not_counted", error=error.message)
                return


def as_known(patterns: Sequence[StoredPattern]) -> tuple[KnownPattern, ...]:
    """As the parser process takes them. Those that are stale find nothing until they are learned anew."""
    return tuple(
        KnownPattern(
            id=each.id,
            pattern=each.pattern if each.status == "ready" else "",
            marks=each.marks,
            examples=each.taught if each.status != "stale" else 0,
            absent=each.absent,
            unchecked=each.status == "ready" and not each.edited and each.checked < CHECKED_ON,
        )
        for each in patterns
    )


def _with_example(known: Sequence[AnsweredPage], page: AnsweredPage) -> tuple[AnsweredPage, ...]:
    """The examples with one more. One of the same address is replaced, unless a person answered only that one; where
    there are too many, those of persons stay longest."""
    same = [each for each in known if page.url and each.url == page.url]
    if page.by != "person" and any(each.by == "person" for each in same):
        return tuple(known)
    every = [*(each for each in known if each not in same), page]
    while len(every) > MOST_EXAMPLES:
        every.remove(next((each for each in every if each.by != "person"), every[0]))
    return tuple(every)


def taught_values(fields: Sequence[FieldSpec], answers: Mapping[str, FieldAnswer]) -> dict[str, Any]:
    """What a page teaches: sure values, as patterns read them. A yes, a no or a date is taught as the page has it."""
    values: dict[str, Any] = {}
    for field in fields:
        answer = answers[field.name]
        if answer.value is None or answer.confidence < TEACHING or NOT_IN_PAGE in answer.flags:
            values[field.name] = None
        elif field.kind in ("bool", "date"):
            values[field.name] = answer.text
        else:
            values[field.name] = answer.value
    return values


def checked_pattern(text: str, fields: Sequence[str]) -> str:
    """A pattern that a person edited, in its one spelling. Raises PatternInvalid."""
    pattern = Pattern.from_json(text)
    if unknown := set(pattern.fields) - set(fields):
        raise PatternInvalid(f"no field {', '.join(sorted(unknown))} is wanted; there are {', '.join(fields)}")
    return pattern.to_json()
