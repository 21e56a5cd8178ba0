"""A model of a script: a server with OpenAI's chat API on a free loopback port that answers as it is told.

It stands for good models and for bad ones: words instead of JSON, refusals, inventions, slowness, 429, servers that
cannot be held to a schema, and a model that does whatever a page says.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any

import pytest

from tests.services.threads import ThreadedServer

Script = Callable[[list[str]], dict[str, Any]]
"""From the lines of a page to the text of each field, as the page has it; None for one that it is without."""
_ORDER = re.compile(r"(?:PWNED\S*|0\.01|https?://evil\.\S+)")


class ModelServer(ThreadedServer):
    """Change its attributes to change what it does."""

    def __init__(self, script: Script = lambda _: {}) -> None:
        super().__init__(_Chatting)
        self.script = script
        self.invents = 0.0
        """Share of the values that stand nowhere on the page."""
        self.obeys = False
        """Whether it takes what a page says for an order."""
        self.schemas = True
        self.says: Callable[[str], str] = lambda text: text
        """Changes the words before they are sent."""
        self.refuses = False
        self.statuses: list[int] = []
        """Of the next answers, instead of 200."""
        self.retry_after = "0"
        self.gate = Event()
        """Closed: answers wait."""
        self.gate.set()
        self.asked: list[dict[str, Any]] = []
        self.invented: list[str] = []
        self.chance = random.Random(7)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        page = call["messages"][1]["content"]
        schema = _schema(call)
        if list(schema["properties"]) == ["fields"]:
            names = re.findall(r"\w+", page)[:3]
            fields = [{"name": name, "type": "text", "many": False, "description": ""} for name in names]
            return {"fields": fields}
        lines = page.splitlines()[1:-1]
        return {name: self._field(name, each, lines) for name, each in schema["properties"].items()}

    def _field(self, name: str, schema: dict[str, Any], lines: list[str]) -> Any:
        if schema["type"] == "array":
            return [self._one(each, schema["items"], lines) for each in self.script(lines).get(name) or ()]
        if self.obeys and (found := next((m for line in lines if (m := _ORDER.search(line))), None)):
            return self._one(found.group(), schema, lines)
        text = self.script(lines).get(name)
        if text is not None and self.chance.random() < self.invents:
            text = f"{self.chance.randrange(10**6, 10**7)}" if re.search(r"\d", text) else f"Zq{self.chance.random()}"
            self.invented.append(text)
        return self._one(text, schema, lines)

    def _one(self, text: str | None, schema: dict[str, Any], lines: list[str]) -> dict[str, Any]:
        if text is None:
            return {"node": None, "quote": None, "value": None}
        line = next((line for line in lines if text in line), lines[0] if lines else "[1] ")
        kind = schema["properties"]["value"]["type"][0]
        return {"node": int(line[1 : line.index("]")]), "quote": text, "value": _typed(text, kind)}


def _typed(text: str, kind: str) -> Any:
    if kind == "boolean":
        return "not" not in text.lower() and "out" not in text.lower()
    if kind in ("number", "integer"):
        digits = re.sub(r"[^\d.]", "", text.replace(",", ""))
        return float(digits) if "." in digits else int(digits or 0)
    return text


def _schema(call: dict[str, Any]) -> dict[str, Any]:
    if "response_format" in call:
        return dict(call["response_format"]["json_schema"]["schema"])
    return dict(json.loads(call["messages"][0]["content"].rpartition("\n")[2]))


class _Chatting(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        server.asked.append({"path": self.path, "key": self.headers.get("authorization"), **call})
        server.gate.wait(60)
        if server.statuses and (status := server.statuses.pop(0)) != 200:
            self._send(status, {"error": {"message": "not now"}})
        elif "response_format" in call and not server.schemas:
            self._send(400, {"error": {"message": "response_format is not supported"}})
        elif "inputs" in call:
            schema = json.loads(re.findall(r"^\{.*\}$", call["inputs"], re.MULTILINE)[0])
            given = {"messages": [{"content": json.dumps(schema)}, {"content": _page_in(call["inputs"])}]}
            self._send(200, [{"generated_text": server.says(json.dumps(server.answer(given)))}])
        elif server.refuses:
            self._send(200, {"choices": [{"message": {"content": None, "refusal": "I cannot help"}}]})
        else:
            words = server.says(json.dumps(server.answer(call)))
            usage = {"prompt_tokens": len(call["messages"][1]["content"]) // 4, "completion_tokens": len(words) // 4}
            self._send(200, {"choices": [{"message": {"content": words}, "finish_reason": "stop"}], "usage": usage})

    def _send(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status == 429:
            self.send_header("retry-after", self.server.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def _page_in(inputs: str) -> str:
    start = inputs.index("=== ")
    return inputs[start : inputs.rindex("=== ") + 20]


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.gate.set()
        server.shutdown()
        thread.join()
