"""`builtin/actions` and `builtin/replay`: which inputs are taken, and what is said of those that are not."""

import json
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.builtin.actions.interpreter import ACTIONS_INPUT, run_actions
from scrapeyard.builtin.actions.variables import Variables, compare
from scrapeyard.builtin.replay.recording import REPLAY_INPUT, read_recording
from scrapeyard.builtin.services import Services
from scrapeyard.errors import FetchFailed, InputInvalid
from scrapeyard.repository.manifest.json_schemas import InputChecker, check_schema
from scrapeyard.wiring.builtins import all_builtins

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
ACTIONS = all_builtins()["builtin/actions"].scraper
REPLAY = all_builtins()["builtin/replay"].scraper
CLICK = {"do": "click", "selector": "a"}


def faults(scraper: Any, given: dict[str, Any]) -> list[str]:
    return [fault["path"] for fault in InputChecker().errors(scraper, given)]


async def refusal(given: dict[str, Any]) -> str:
    """Why an input is refused that fits the schema. No browser is there to be opened."""
    assert faults(ACTIONS, given) == []
    unused: Any = None
    with pytest.raises(InputInvalid) as refused:
        await run_actions(Services(fetch=unused), given)
    return refused.value.message


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"steps": [{"do": "clik", "selector": "a"}]}, "/steps/0/do"),
        ({"steps": [{"selector": "a"}]}, "/steps/0"),
        ({"steps": [CLICK, {"do": "click"}]}, "/steps/1"),
        ({"steps": [{**CLICK, "colour": "red"}]}, "/steps/0"),
        ({"steps": [{**CLICK, "timeout": 0}]}, "/steps/0/timeout"),
        ({"steps": [{"do": "if", "condition": {"element": "a"}, "then": [{"do": "fill"}]}]}, "/steps/0/then/0"),
        ({"steps": [{"do": "while", "condition": {}, "steps": []}]}, "/steps/0/steps"),
        ({"steps": [{"do": "extract", "name": "a b", "selector": "a"}]}, "/steps/0/name"),
        ({"steps": [CLICK] * 1001}, "/steps"),
        ({"steps": [CLICK], "browser": {"widht": 3}}, "/browser"),
        ({"steps": [CLICK], "screenshots": "all"}, "/screenshots"),
    ],
)
def test_a_wrong_input_is_refused_with_its_place(given: dict[str, Any], path: str) -> None:
    assert path in faults(ACTIONS, given)


def test_the_place_is_told_in_a_long_and_deep_input() -> None:
    deep: dict[str, Any] = {"do": "click", "selector": 5}
    for _ in range(8):
        deep = {"do": "if", "condition": {"element": "a"}, "else": [deep]}
    assert faults(ACTIONS, {"steps": [*[CLICK] * 500, deep]}) == ["/steps/500" + "/else/0" * 8 + "/selector"]


async def test_what_the_schema_cannot_say_is_refused_before_a_browser_is_opened() -> None:
    deep: dict[str, Any] = CLICK
    for _ in range(10):
        deep = {"do": "if", "condition": {"element": "a"}, "then": [deep]}
    assert "nested deeper than 10" in await refusal({"steps": [deep]})
    many = {"do": "if", "condition": {"element": "a"}, "then": [CLICK] * 999, "else": [CLICK]}
    assert "1001 steps" in await refusal({"steps": [many]})
    assert await refusal({"steps": [CLICK, {"do": "wait_for"}]}) == (
        "steps[1]: give one of selector, text, url, response, load, expression, seconds; there is none"
    )
    both = {"do": "if", "condition": {"text": "a", "url": "b"}, "then": [CLICK]}
    assert "there is text and url" in await refusal({"steps": [both]})
    assert "steps[0]: there is no variable nmae" in await refusal(
        {"steps": [{"do": "fill", "selector": "a", "text": "{{nmae}}"}], "variables": {"name": "x"}}
    )
    assert "nothing to do" in await refusal({})


async def test_without_a_browser_the_run_says_so() -> None:
    unused: Any = None
    with pytest.raises(FetchFailed) as failed:
        await run_actions(Services(fetch=unused), {"steps": [CLICK]})
    assert failed.value.reason == "browser_unavailable"


@pytest.mark.parametrize("schema", [ACTIONS_INPUT, REPLAY_INPUT], ids=["actions", "replay"])
def test_every_property_of_the_schemas_is_described(schema: dict[str, Any]) -> None:
    check_schema(schema)
    for part in (schema, *schema["$defs"].values()):
        for name, field in part.get("properties", {}).items():
            assert field.get("description") or name in ("do", "type"), (part.get("description"), name)


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("real/*.json")), ids=lambda path: path.stem)
def test_recordings_of_people_are_taken(path: Path) -> None:
    given = json.loads(path.read_text("utf-8"))
    assert faults(REPLAY, given) == []
    assert read_recording(given).steps


def test_all_flows_of_puppeteer_are_taken() -> None:
    flows = [each["flow"] for each in json.loads((RECORDINGS / "flows.json").read_text("utf-8"))]
    assert [faults(REPLAY, flow) for flow in flows] == [[]] * 34
    assert [len(read_recording(flow).steps) for flow in flows] == [len(flow["steps"]) for flow in flows]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"title": "x"}, ""),
        ({"type": "navigate"}, ""),
        ({"title": "x", "steps": [{"type": "clik"}]}, "/steps/0/type"),
        ({"title": "x", "steps": [{"type": "click", "selectors": []}]}, "/steps/0/selectors"),
        ({"title": "x", "steps": [{"type": "click", "selectors": ["a"], "frame": ["a"]}]}, "/steps/0/frame/0"),
        (
            {"title": "x", "steps": [{"type": "navigate", "url": "u", "assertedEvents": [{}]}]},
            "/steps/0/assertedEvents/0",
        ),
    ],
)
def test_what_is_no_recording_is_refused_with_its_place(given: dict[str, Any], path: str) -> None:
    assert path in faults(REPLAY, given)


def test_what_newer_recorders_add_is_ignored() -> None:
    step = {"type": "click", "selectors": ["a"], "offsetX": 1, "offsetY": 2, "metrics": {"lcp": 3}}
    assert faults(REPLAY, {"title": "x", "steps": [step], "exporter": "new"}) == []


def test_variables_fill_texts() -> None:
    variables = Variables({"name": "Ada", "n": 3, "list": ["a", {"b": "deep"}]})
    assert variables.text("{{name}} has {{ n }} of {{list.1.b}}{{list.9}}") == "Ada has 3 of deep"
    assert variables.render({"all": "{{list}}", "n": "{{n}}"}) == {"all": ["a", {"b": "deep"}], "n": 3}
    with pytest.raises(FetchFailed, match="no variable other"):
        variables.text("{{other}}")


@pytest.mark.parametrize(
    ("left", "how", "right", "result"),
    [
        (3, "<", 10, True),
        ("3", "<", "10", True),
        ("b", ">", "a", True),
        ("12.50", "==", 12.5, True),
        (True, "==", 1, True),
        ("a", "!=", "b", True),
        (None, "set", None, False),
        ([], "set", None, False),
        (0, "set", None, True),
        ("in stock", "contains", "stock", True),
        (["a"], "contains", "b", False),
        (5, ">=", 5, True),
    ],
)
def test_variables_are_compared(left: Any, how: str, right: Any, result: bool) -> None:
    assert compare(left, how, right) is result


def test_steps_are_not_repeated_unless_the_call_asks_for_it() -> None:
    assert (ACTIONS.policy.retries, REPLAY.policy.retries) == (0, 0)
