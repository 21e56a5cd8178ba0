"""`scrapeyard replay`: a recording in a real browser, by the command."""

import functools
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli_stand import PROGRAM
from tests.leaks import PATIENCE
from tests.services.browser import found_browser
from tests.services.threads import ThreadedServer

pytestmark = pytest.mark.browser
PAGES = Path(__file__).parents[2] / "data" / "recordings" / "pages"


class QuietPages(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def main_page() -> Iterator[str]:
    server = ThreadedServer(functools.partial(QuietPages, directory=str(PAGES)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/main.html"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def replay(recording: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "replay", str(recording), "--allow-private", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_replay_tells_each_step_and_shows_where_it_failed(main_page: str, tmp_path: Path) -> None:
    found_browser()
    steps: list[dict[str, Any]] = [
        {"type": "navigate", "url": main_page},
        {"type": "hover", "selectors": [["#hover-button"]]},
    ]
    recording = tmp_path / "recording.json"
    recording.write_text(json.dumps({"title": "Hover", "steps": steps}))
    done = replay(recording)
    assert done.returncode == 0, done.stderr
    assert [step["do"] for step in json.loads(done.stdout)["steps"]] == ["navigate", "hover"]
    assert "2 of 2 steps[1] hover" in done.stderr

    steps.append({"type": "waitForElement", "selectors": ["#none"], "timeout": 500})
    recording.write_text(json.dumps({"title": "Hover", "steps": steps}))
    failed = replay(recording, "--json", "--artifacts", str(tmp_path / "kept"))
    assert failed.returncode == 1
    run = json.loads(failed.stdout)
    assert run["exit_reason"] == "browser_timeout"
    assert run["error"]["details"]["step"] == "steps[2]"
    assert (tmp_path / "kept" / "failure.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    recording.write_text(json.dumps({"title": "x", "steps": [{"type": "clik"}]}))
    done = replay(recording)
    assert done.returncode == 2
    assert "/steps/0/type" in done.stderr
