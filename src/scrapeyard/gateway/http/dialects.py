"""Answers in the words of other APIs, for clients that were written for them.

A client asks for a dialect with `Prefer: dialect=site`; `gateway.dialect` sets the one of clients that do not ask. In
every dialect the paths, the fields and what is done are the same. A dialect changes the words of `status`, whether a
listing is a bare list, how long a call waits and how often it is retried that does not say, and a few whole answers.
"""

from collections.abc import Mapping
from contextvars import ContextVar, Token
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BeforeValidator

from scrapeyard.model import RunStatus
from scrapeyard.model.job import ItemStatus, JobStatus

Words = Mapping[type[StrEnum], Mapping[str, str]]


class Dialect(Struct, frozen=True, kw_only=True):
    """The words of another API."""

    name: str
    words: Words = {}
    """By the kind of status: ours, and the word for it. A status without a word keeps ours."""
    bare_lists: bool = True
    """Whether a listing is a list; the cursor of its next page is then the header Next-Cursor."""
    waits: bool = True
    """Whether a call that does not say waits for its answer."""
    retries: int | None = None
    """How often a call is tried again that does not say; None: as its scraper or the operator set it."""
    answers: Mapping[str, tuple[int, Any]] = {}
    """Operations whose answer is always the same if they succeed: status and document."""

    def shown(self, answer: Any) -> Any:
        """The answer in the words of this dialect."""
        if not isinstance(answer, Struct):
            return answer
        listed = answer.__struct_fields__[0]
        if listed in LISTS:
            shown = [self.shown(each) for each in getattr(answer, listed)]
            return shown if self.bare_lists else replace(answer, **{listed: shown})
        status = getattr(answer, "status", None)
        if not isinstance(status, StrEnum):
            return answer
        word = self.words.get(type(status), {}).get(status)
        return answer if word is None else replace(answer, status=word)


LISTS: Final = frozenset({"runs", "jobs", "exports", "schedules"})
OWN = Dialect(name="own", bare_lists=False)
DIALECTS = {
    dialect.name: dialect
    for dialect in (
        OWN,
        Dialect(
            name="tasks",
            words={RunStatus: {"queued": "pending", "succeeded": "completed"}},
            waits=False,
            retries=3,
        ),
        Dialect(
            name="site",
            words={
                JobStatus: {
                    "creating": "queued",
                    "paused": "running",
                    "cancelling": "running",
                    "finishing": "running",
                    "completed": "succeeded",
                }
            },
            answers={"cancel_job": (202, {"ok": True})},
        ),
    )
}
"""The table of words that docs/documents.md shows."""

FILTERS: Words = {
    RunStatus: {
        "pending": "queued",
        "in_progress": "running",
        "completed": "succeeded",
        "success": "succeeded",
        "error": "failed",
    },
    JobStatus: {
        "pending": "creating",
        "queued": "creating",
        "in_progress": "running",
        "succeeded": "completed",
        "success": "completed",
        "error": "failed",
    },
    ItemStatus: {"running": "in_progress", "succeeded": "success", "completed": "success", "failed": "error"},
}
"""Words that filters take in every dialect, beside ours, which keep their meaning."""


def status_word(kind: type[StrEnum]) -> BeforeValidator:
    """Reads another word of a status as ours."""
    return BeforeValidator(lambda given: FILTERS[kind].get(given, given) if isinstance(given, str) else given)


_spoken: ContextVar[tuple[Dialect, bool]] = ContextVar("dialect", default=(OWN, False))
"""The dialect, and whether the request named it."""


def speak(dialect: Dialect, is_asked: bool = True) -> Token[tuple[Dialect, bool]]:
    """Choose the dialect of the answer to this request. `stop` undoes it."""
    return _spoken.set((dialect, is_asked))


stop = _spoken.reset


def adopt(name: str) -> None:
    """Answer in this dialect, unless the request or the operator named one. Empty: change nothing."""
    if name and _spoken.get() == (OWN, False):
        speak(DIALECTS[name])


def current() -> Dialect:
    """The dialect of the request that is being answered."""
    return _spoken.get()[0]


def preferred(header: bytes) -> Dialect | None:
    """The dialect that a Prefer header asks for; None if it names none that we know."""
    if b"dialect" not in header:
        return None
    for token in header.decode("latin-1").split(","):
        key, _, word = token.partition("=")
        if key.strip().lower() == "dialect":
            return DIALECTS.get(word.strip().strip('"').lower())
    return None
