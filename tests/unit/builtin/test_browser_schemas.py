"""The schemas of actions and recordings, written down so that no command need make them as it starts. Write them anew
by `.venv/bin/python -m tests.unit.builtin.test_browser_schemas` after a change of the steps."""

import json
from pathlib import Path

from scrapeyard.builtin import ACTIONS, REPLAY, registry
from scrapeyard.builtin.actions.interpreter import ACTIONS_INPUT, ACTIONS_OUTPUT
from scrapeyard.builtin.replay.player import REPLAY_OUTPUT
from scrapeyard.builtin.replay.recording import REPLAY_INPUT
from scrapeyard.wiring.builtins import all_builtins

FILE = Path(registry.__file__).with_name("browser_schemas.json")
MADE = {
    ACTIONS: {"input": ACTIONS_INPUT, "output": ACTIONS_OUTPUT},
    REPLAY: {"input": REPLAY_INPUT, "output": REPLAY_OUTPUT},
}


def test_what_is_written_is_what_the_steps_make() -> None:
    made = json.loads(json.dumps(MADE))
    assert json.loads(FILE.read_text("utf-8")) == made
    for name, schemas in made.items():
        scraper = all_builtins()[name].scraper
        assert (scraper.input_schema, scraper.output_schema) == (schemas["input"], schemas["output"])


if __name__ == "__main__":
    FILE.write_text(json.dumps(MADE, ensure_ascii=False, indent=1) + "\n", "utf-8")
