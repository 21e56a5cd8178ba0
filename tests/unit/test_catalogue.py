"""Every event has words in both languages, and the words use only fields that the event carries."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import scrapeyard
from scrapeyard.telemetry import catalogue
from scrapeyard.telemetry.catalogue import WORDS
from scrapeyard.telemetry.rendering import words

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
LANGUAGES = {"en", "ko"}
SOURCE = Path(scrapeyard.__file__).parent


class Call(NamedTuple):
    """One place that logs an event."""

    where: str
    event: str
    fields: set[str] | None
    """None when some come by `**`, so that they cannot be read from the source."""


def calls(path: Path) -> Iterator[Call]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and _logs(node):
            where = f"{path.relative_to(SOURCE)}:{node.lineno}"
            for event in _names(node.args[0]):
                fields = {keyword.arg for keyword in node.keywords if keyword.arg}
                yield Call(where, event, None if None in {keyword.arg for keyword in node.keywords} else fields)


def _logs(node: ast.Call) -> bool:
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in LEVELS or not node.args:
        return False
    owner = function.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name.lstrip("_").endswith("log") or _is_get_log(owner)


def _is_get_log(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "get_log"


def _names(argument: ast.expr) -> Iterator[str]:
    """An event's name is written out, or chosen between two that are."""
    if isinstance(argument, ast.IfExp):
        yield from _names(argument.body)
        yield from _names(argument.orelse)
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    else:
        yield f"(not written out: {ast.unparse(argument)})"


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.fixture(scope="module")
def logged() -> list[Call]:
    """Every place in the source."""
    return [call for path in sorted(SOURCE.rglob("*.py")) for call in calls(path)]


def test_events_are_found_in_the_source(logged: list[Call]) -> None:
    found = {call.event for call in logged}
    assert {"queue.away", "queue.back", "traces.dropped"} <= found


def test_every_event_has_words(logged: list[Call]) -> None:
    assert [f"{call.where} {call.event}" for call in logged if call.event not in WORDS] == []


def test_no_words_without_an_event(logged: list[Call]) -> None:
    assert sorted(set(WORDS) - {call.event for call in logged}) == []


def test_words_use_only_fields_that_the_event_carries(logged: list[Call]) -> None:
    bound = {"part", "level", "timestamp"}
    wrong = [
        f"{call.where} {call.event}: {sorted(missing)}"
        for call in logged
        if call.event in WORDS
        and call.fields is not None
        and (missing := placeholders(WORDS[call.event]["en"]) - call.fields - bound)
    ]
    assert wrong == []


@pytest.mark.parametrize("event", WORDS)
def test_both_languages_say_the_same(event: str) -> None:
    assert set(WORDS[event]) == LANGUAGES
    english, korean = WORDS[event]["en"], WORDS[event]["ko"]
    assert placeholders(english) == placeholders(korean)
    assert all(name.isidentifier() for name in placeholders(english))
    assert any("\uac00" <= letter <= "\ud7a3" for letter in korean)
    assert english.strip()


def test_the_words_for_one_part_of_the_program_stand_in_one_module_of_the_catalogue() -> None:
    parts = [part for page in catalogue.PAGES for part in {event.partition(".")[0] for event in page}]
    assert sorted(parts) == sorted(set(parts))


def test_no_module_of_the_catalogue_is_forgotten() -> None:
    folder = Path(catalogue.__file__).parent
    assert len(catalogue.PAGES) == len([path for path in folder.glob("*.py") if path.stem != "__init__"])


def test_the_catalogue_is_sorted_and_its_names_have_one_form() -> None:
    assert all(list(page) == sorted(page) for page in catalogue.PAGES)
    parts = [event.split(".") for event in WORDS]
    assert all(len(part) == 2 and all(_is_plain(word) for word in part) for part in parts)


def _is_plain(word: str) -> bool:
    return bool(word) and set(word) <= set(string.ascii_lowercase + string.digits + "_")


def test_a_missing_field_and_an_unknown_event_still_read() -> None:
    assert words("queue.back", "en", {"away_seconds": 3}) == "The queue answers again after 3 s"
    assert words("queue.back", "en", {}) == "The queue answers again after ? s"
    assert words("queue.back", "ko", {"away_seconds": 3}) == "큐가 3초 만에 다시 응답합니다"
    assert words("no.such_event", "ko", {}) == "no.such_event"
