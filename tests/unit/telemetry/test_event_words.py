"""Every event has words in both languages, and the words use only fields that the event carries."""

import ast
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import scrapeyard
from scrapeyard.telemetry.rendering import read_words, words

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
SOURCE = Path(scrapeyard.__file__).parent
ENGLISH, KOREAN = (read_words(SOURCE / "telemetry" / f"words.{lang}.toml") for lang in ("en", "ko"))
WORDS = {event: template for area in ENGLISH.values() for event, template in area.items()}


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
        and (missing := placeholders(WORDS[call.event]) - call.fields - bound)
    ]
    assert wrong == []


@pytest.mark.parametrize(("area", "event"), [(area, event) for area, page in ENGLISH.items() for event in page])
def test_both_languages_say_the_same(area: str, event: str) -> None:
    english, korean = ENGLISH[area][event], KOREAN[area][event]
    assert placeholders(english) == placeholders(korean)
    assert all(name.isidentifier() for name in placeholders(english))
    assert any("\uac00" <= letter <= "\ud7a3" for letter in korean)
    assert english.strip()


def test_both_languages_have_the_same_events_in_the_same_order() -> None:
    assert [(area, list(page)) for area, page in ENGLISH.items()] == [
        (area, list(page)) for area, page in KOREAN.items()
    ]


def test_the_words_for_one_part_of_the_program_stand_in_one_area() -> None:
    parts = [part for page in ENGLISH.values() for part in {event.partition(".")[0] for event in page}]
    assert sorted(parts) == sorted(set(parts))


def test_the_words_are_sorted_and_their_names_have_one_form() -> None:
    assert all(list(page) == sorted(page) for page in ENGLISH.values())
    parts = [event.split(".") for event in WORDS]
    assert all(len(part) == 2 and all(_is_plain(word) for word in part) for part in parts)


def _is_plain(word: str) -> bool:
    return bool(word) and set(word) <= set(string.ascii_lowercase + string.digits + "_")


def test_a_missing_field_and_an_unknown_event_still_read() -> None:
    assert words("queue.back", "en", {"away_seconds": 3}) == "The queue answers again after 3 s"
    assert words("queue.back", "en", {}) == "The queue answers again after ? s"
    assert words("queue.back", "ko", {"away_seconds": 3}) == "큐가 3초 만에 다시 응답합니다"
    assert words("no.such_event", "ko", {}) == "no.such_event"


def test_a_language_without_a_file_fails_with_its_name() -> None:
    with pytest.raises(RuntimeError, match=r"words\.xx\.toml.*install scrapeyard again"):
        words("queue.back", "xx", {})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'[queue]\n"queue.back" = \n', "line 2"),
        (b'[queue]\n"queue.back" = 3', "Expected `str`, got `int`"),
        (b'"queue.back" = "The queue answers"', "Expected `object`, got `str`"),
        (b'[queue]\n"queue.back" = "\xff"', "utf-8"),
    ],
)
def test_a_malformed_file_fails_with_its_path_and_the_fault(tmp_path: Path, content: bytes, fault: str) -> None:
    file = tmp_path / "words.en.toml"
    file.write_bytes(content)
    with pytest.raises(RuntimeError) as raised:
        read_words(file)
    assert str(file) in str(raised.value)
    assert fault in str(raised.value)


def test_only_the_language_in_force_is_read_and_only_for_the_first_event() -> None:
    program = """
import pathlib, sys
from scrapeyard.settings import LogSettings
from scrapeyard.telemetry.events import configure, get_log
read = []
sys.addaudithook(lambda name, args: read.append(str(args[0])) if name == "open" else None)
configure(LogSettings(lang="ko"))
before = [path for path in read if "/words." in path]
get_log("queue").info("queue.back", away_seconds=3)
get_log("queue").info("queue.back", away_seconds=4)
print(before, [pathlib.Path(path).name for path in read if "/words." in path])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[] ['words.ko.toml']"
