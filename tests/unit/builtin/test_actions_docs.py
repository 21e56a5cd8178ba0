"""docs/actions.md tells every step. Run as a program, this writes its table."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.builtin.actions.check import read_actions
from scrapeyard.builtin.actions.interpreter import ACTIONS_INPUT
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.wiring.builtins import all_builtins

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "actions.md"
_COMMON = ("do", "timeout", "optional", "frame")
_ELEMENT = "The element: CSS, `text=…`, `xpath=…`, `role=…`, `a >> b`."
"""Of a selector that a step needs: said once, above the table."""
_TABLE = re.compile(r"(?<=<!-- steps -->\n).*(?=<!-- end of steps -->)", re.DOTALL)


def table() -> str:
    """A row for each step and one for each of its fields, as the schema has them."""
    rows = ["| step, field | meaning |", "|---|---|"]
    for kind in ACTIONS_INPUT["$defs"]["Steps"]["items"]["allOf"]:
        name = kind["if"]["properties"]["do"]["const"]
        step = ACTIONS_INPUT["$defs"][kind["then"]["$ref"].rpartition("/")[2]]
        needs_element = step["properties"].get("selector", {}).get("description") == _ELEMENT
        rows.append(f"| **`{name}`**{' (`selector`)' if needs_element else ''} | {step['description']} |")
        for field, schema in step["properties"].items():
            if field not in _COMMON and schema["description"] != _ELEMENT:
                needed = " (required)" if field in step["required"] else ""
                rows.append(f"| `{field}` | {schema['description'].replace('|', chr(92) + '|')}{needed} |")
    return "\n".join(rows) + "\n"


def test_the_page_has_every_step_as_the_schema_has_it() -> None:
    found = _TABLE.search(PAGE.read_text("utf-8"))
    assert found is not None
    assert found[0] == table(), "run: .venv/bin/python -m tests.unit.builtin.test_actions_docs"


def steps_of_the_page() -> list[Any]:
    blocks = re.findall(r"```json\n(\[.*?\])\n```", PAGE.read_text("utf-8"), re.DOTALL)
    return [json.loads(block) for block in blocks]


@pytest.mark.parametrize("steps", steps_of_the_page(), ids=lambda steps: steps[0]["do"])
def test_the_steps_of_the_page_are_taken(steps: list[Any]) -> None:
    given = {"steps": steps, "variables": {"user": "me", "password": "x"}}
    assert InputChecker().errors(all_builtins()["builtin/actions"].scraper, given) == []
    assert read_actions(given).steps


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table(), text), "utf-8")
