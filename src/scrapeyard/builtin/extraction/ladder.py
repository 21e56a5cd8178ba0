"""The ladder: what the page states and the site's pattern finds, then a model, then the user's selectors.

It stops when every required field is sure enough. What a model answers teaches the pattern, so that after a few pages
of a site no model is needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from scrapeyard.builtin.extraction.asking import candidates_in, fields_in, question_for, question_for_prompt
from scrapeyard.builtin.extraction.book import Lesson, PatternBook, PatternKey, as_known, taught_values
from scrapeyard.builtin.extraction.confidence import NOT_IN_PAGE, Candidate, FieldAnswer, weigh
from scrapeyard.builtin.extraction.fields import FieldSpec, WantedFields, read_text, same, wanted_of
from scrapeyard.builtin.extraction.reading import PageReading, ReadTask
from scrapeyard.builtin.pages.port import Extractor, RawPage
from scrapeyard.builtin.services import Services
from scrapeyard.engines.models.port import ModelAnswer, ModelFailed
from scrapeyard.errors import BadRequest
from scrapeyard.settings import AiSettings
from scrapeyard.store.ports.operations import AnsweredPage, StoredPattern

STATED_EXAMPLES = 3
"""Pages that structured data answered teach until a pattern has so many examples."""
_AGREED = 0.02
"""What it adds to a reliability that all of several samples agree."""


class LadderOptions(Struct, frozen=True, kw_only=True):
    """How one page is read."""

    sure: float
    least: float
    invented: Literal["flag", "refuse"]
    learn: bool
    provider: str = ""
    model: str = ""
    samples: int = 1
    selectors: dict[str, Any] = field(default_factory=dict)


class PageSource(Struct, frozen=True, kw_only=True):
    """A page as it came."""

    url: str
    body: bytes
    encoding: str = "utf-8"
    site: str = ""


class Extracted(Struct, kw_only=True):
    """What came of a page."""

    answers: dict[str, FieldAnswer]
    warnings: list[str] = field(default_factory=list)
    pattern: StoredPattern | None = None
    models: list[ModelAnswer] = field(default_factory=list)
    failure: ModelFailed | None = None
    """Why no model answered, though one was wanted."""


class Ladder:
    """Reads pages."""

    def __init__(self, extractor: Extractor, book: PatternBook, settings: AiSettings) -> None:
        self._extractor = extractor
        self._book = book
        self._settings = settings

    def options(self, given: Mapping[str, Any]) -> LadderOptions:
        """Of an input; what it does not say is as the settings say."""
        said, ai = self._settings, given.get("ai") or {}
        return LadderOptions(
            sure=given.get("sure", said.sure),
            least=given.get("least", said.least),
            invented=given.get("invented", said.invented),
            learn=said.learn and given.get("learn", True),
            provider=ai.get("provider", ""),
            model=ai.get("model", ""),
            samples=ai.get("samples", 1),
            selectors=given.get("fallback") or {},
        )

    async def wanted(self, given: Mapping[str, Any], services: Services, options: LadderOptions) -> WantedFields:
        """The fields of an input; a sentence is read by a model. Raises BadRequest or ModelFailed."""
        if "prompt" not in given:
            return wanted_of(given)
        question = question_for_prompt(given["prompt"], provider=options.provider, model=options.model)
        fields = fields_in((await services.ask(question)).value)
        if not fields:
            raise BadRequest("prompt: the model named no fields; write which you want, or give `fields`")
        return wanted_of({"fields": fields})

    async def read(
        self, page: PageSource, wanted: WantedFields, options: LadderOptions, services: Services
    ) -> Extracted:
        """Climb as far as needed. Raises PageUnreadable."""
        return await _Climb(self._extractor, self._book, page, wanted, (options, services)).climb()

    async def teach(
        self, page: PageSource, wanted: WantedFields, values: Mapping[str, Any], services: Services
    ) -> tuple[bool, list[str]]:
        """Learn from a page that a person answered or corrected: whether the pattern keeps it, and warnings if all of
        it, or some, is of no use. Fields that they did not name are as the pattern and structured data have them.
        Raises PageUnreadable."""
        key = PatternKey(page.site, services.client, wanted.key)
        task = ReadTask(fields=wanted.fields, patterns=as_known(await self._book.known(key)), sure=1.0, room=1)
        reading = await read_page(self._extractor, page, task)
        absent = tuple(name for name, value in values.items() if value is None)
        known = taught_values(wanted.fields, reading.answers(wanted.fields))
        given = {each.name: _as_taught(values[each.name], each) for each in wanted.fields if each.name in values}
        example = AnsweredPage(url=page.url, html=reading.html, values={**known, **given}, by="person")
        lesson = Lesson(page=example, marks=reading.marks, absent=absent)
        if not reading.html or await self._book.teach(key, wanted, lesson) is None:
            return False, [*reading.warnings, "it was not kept: the page is too large, or there is no store"]
        return True, reading.warnings


async def read_page(extractor: Extractor, page: PageSource, task: ReadTask) -> PageReading:
    """Do a task with a page, where it can do no harm. Raises PageUnreadable."""
    raw = RawPage(url=page.url, body=page.body, encoding=page.encoding, task=to_builtins(task))
    return convert(await extractor.extract(raw), PageReading)


class _Climb:
    """One page on its way up."""

    def __init__(
        self,
        extractor: Extractor,
        book: PatternBook,
        page: PageSource,
        wanted: WantedFields,
        how: tuple[LadderOptions, Services],
    ) -> None:
        self._extractor = extractor
        self._book = book
        self._page = page
        self._wanted = wanted
        self._options, self._services = how
        self._key = PatternKey(page.site, self._services.client, wanted.key)

    async def climb(self) -> Extracted:
        """All steps that are needed. While a page teaches, others of its kind wait for what it teaches."""
        patterns = await self._book.known(self._key)
        reading = await self._look(patterns)
        if not reading.shown:
            return await self._unasked(reading)
        is_known = _is_ready(reading, patterns) and not reading.unsettled
        if not (self._options.learn and self._book.learns) or is_known:
            return await self._ask(reading)
        async with self._book.turn(self._key):
            if (now := await self._book.known(self._key)) != patterns:
                reading = await self._look(now)
            return await (self._ask(reading) if reading.shown else self._unasked(reading))

    async def _unasked(self, reading: PageReading) -> Extracted:
        """Answers that needed no model. What structured data answered teaches the pattern; a pattern that is new is
        compared on what it read."""
        settled = await self._settled(reading)
        if not (self._options.learn and self._book.learns and reading.html):
            return settled
        pattern = settled.pattern
        if pattern is None or pattern.taught < STATED_EXAMPLES or pattern.status == "stale":
            taught = await self._teach_stated(reading)
            if taught is not None:
                settled.pattern = taught
                return settled
        if pattern is not None and pattern.status == "ready":
            page = AnsweredPage(url=self._page.url, html=reading.html, values={})
            await self._book.check(self._key, pattern, Lesson(page=page, marks=reading.marks))
        return settled

    async def _teach_stated(self, reading: PageReading) -> StoredPattern | None:
        """Only a page whose structured data answer every required field teaches anything."""
        stated = {name: [c for c in each if c.how == "structured"] for name, each in reading.candidates.items()}
        answers = {each.name: weigh(stated.get(each.name, ())) for each in self._wanted.fields}
        if any(each.required and answers[each.name].confidence < self._options.sure for each in self._wanted.fields):
            return None
        values = taught_values(self._wanted.fields, answers)
        example = AnsweredPage(url=self._page.url, html=reading.html, values=values, by="structured")
        return await self._book.teach_stated(self._key, self._wanted, Lesson(page=example, marks=reading.marks))

    async def _look(self, patterns: Sequence[StoredPattern]) -> PageReading:
        """The steps without a model."""
        options = self._options
        task = ReadTask(
            fields=self._wanted.fields,
            patterns=as_known(patterns),
            sure=options.sure,
            room=self._services.room(options.provider, options.model),
            selectors=options.selectors,
            learn=options.learn and self._book.learns,
        )
        return await read_page(self._extractor, self._page, task)

    async def _ask(self, reading: PageReading) -> Extracted:
        """A model, and what it teaches."""
        options, fields = self._options, self._wanted.fields
        question = question_for(
            reading.shown, fields, provider=options.provider, model=options.model, site=self._page.site
        )
        try:
            models = [await self._services.ask(replace(question, sample=each)) for each in range(options.samples)]
        except ModelFailed as failure:
            settled = await self._settled(reading)
            settled.failure = failure
            settled.warnings.append(f"no model answered: {failure.message}")
            return settled
        found = _agreed([candidates_in(each.value, reading.pieces, fields, self._page.url) for each in models])
        said = {name: [*reading.candidates.get(name, ()), each] for name, each in found.items()}
        settled = await self._settled(replace(reading, candidates={**reading.candidates, **said}), asked=True)
        settled.models = models
        if reading.left_out:
            settled.warnings.append(
                f"the page is too long for the model: it did not see {reading.left_out:,} or more pieces of its text"
            )
        settled.warnings += [
            f"{name}: the model gave a value that does not stand in the page"
            for name, each in found.items()
            if NOT_IN_PAGE in each.flags
        ]
        if options.learn and reading.html:
            settled.pattern = await self._teach(reading, settled.answers) or settled.pattern
        return settled

    async def _teach(self, reading: PageReading, answers: Mapping[str, FieldAnswer]) -> StoredPattern | None:
        """Only a page that has at least half of its fields for sure teaches anything."""
        values = taught_values(self._wanted.fields, answers)
        there = sum(value is not None for value in values.values())
        if not there or 2 * there < len(values):
            return None
        absent = tuple(name for name, answer in answers.items() if answer.how is None)
        example = AnsweredPage(url=self._page.url, html=reading.html, values=values)
        lesson = Lesson(page=example, marks=reading.marks, absent=absent)
        return await self._book.teach(self._key, self._wanted, lesson)

    async def _settled(self, reading: PageReading, *, asked: bool = False) -> Extracted:
        """The answers, with the user's selectors as the last step."""
        candidates = dict(reading.candidates)
        for name, selected in reading.selected.items():
            if weigh(candidates.get(name, ())).confidence < self._options.sure:
                candidates[name] = [*candidates.get(name, ()), *selected]
        answers = {each.name: weigh(candidates.get(each.name, ())) for each in self._wanted.fields}
        if self._options.invented == "refuse":
            invented = [name for name, answer in answers.items() if NOT_IN_PAGE in answer.flags]
            answers |= {name: FieldAnswer(flags=answers[name].flags) for name in invented}
        patterns = await self._book.known(self._key)
        pattern = next((each for each in patterns if each.id == reading.pattern), None)
        if pattern is not None and pattern.status == "ready":
            await self._book.note(pattern, answers, asked=asked)
        return Extracted(answers=answers, pattern=pattern, warnings=list(reading.warnings))


def _as_taught(value: Any, field: FieldSpec) -> Any:
    """A person's value as models give it: a number is one, however it is written."""
    if field.kind not in ("number", "integer") or not isinstance(value, str):
        return value
    read = read_text(value, field.kind)
    return value if read is None else read


def _is_ready(reading: PageReading, patterns: Sequence[StoredPattern]) -> bool:
    return any(each.id == reading.pattern and each.status == "ready" for each in patterns)


def _agreed(samples: Sequence[Mapping[str, Candidate]]) -> dict[str, Candidate]:
    """One candidate for each field: what most samples say, less sure if not all do."""
    if len(samples) == 1:
        return dict(samples[0])
    found: dict[str, Candidate] = {}
    for name in dict.fromkeys(name for sample in samples for name in sample):
        said = [sample[name] for sample in samples if name in sample]
        votes = [sum(same(each.value, other.value) for other in said) for each in said]
        best = max(range(len(said)), key=lambda number: (votes[number], said[number].reliability))
        share = votes[best] / len(samples)
        worth = said[best].reliability * share + (_AGREED if share == 1 else 0)
        found[name] = replace(said[best], reliability=worth)
    return found
