"""The Lambda handler in AWS's own runtime client, fed with events of SQS, on a running gateway."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest

from tests.leaks import PATIENCE, killed_after
from tests.programs import Embedded
from tests.services.ports import free_port

FOLDER = Path(__file__).parents[3] / "deploy" / "lambda"
_ARN = "arn:aws:lambda:eu-central-1:123456789012:function:scrapeyard"


class RuntimeApi(ThreadingHTTPServer):
    """The side of AWS: hands out events, and takes the answers in (`2018-06-01/runtime`)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Runtime)
        self.events: Queue[dict[str, Any]] = Queue()
        self.answers: Queue[tuple[str, Any]] = Queue()
        self.over = Event()

    def invoke(self, event: dict[str, Any]) -> Any:
        """What the function answers."""
        self.events.put(event)
        kind, answer = self.answers.get(timeout=PATIENCE)
        assert kind == "response", answer
        return answer


class _Runtime(BaseHTTPRequestHandler):
    server: RuntimeApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The next event; the client waits for it as long as it takes."""
        while not self.server.over.is_set():
            try:
                event = self.server.events.get(timeout=0.05)
            except Empty:
                continue
            headers = {
                "Lambda-Runtime-Aws-Request-Id": str(uuid4()),
                "Lambda-Runtime-Deadline-Ms": "99999999999999",
                "Lambda-Runtime-Invoked-Function-Arn": _ARN,
                "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
                "Lambda-Runtime-Invocation-Id": str(uuid4()),
                "Content-Type": "application/json",
            }
            return self._send(200, json.dumps(event).encode(), headers)
        return self._send(500, b"", {})

    def do_POST(self) -> None:
        """An answer, or why there is none."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.answers.put((self.path.rpartition("/")[2], json.loads(body)))
        self._send(202, b"{}", {})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Embedded]:
    with Embedded() as yard:
        yield yard


@pytest.fixture
def runtime(request: pytest.FixtureRequest, yard: Embedded) -> Iterator[RuntimeApi]:
    """The function as Lambda starts it. Its parameter is the gateway's address."""
    with RuntimeApi() as api:
        serving = Thread(target=api.serve_forever, args=(0.02,))
        serving.start()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_address[1]}",
            "LAMBDA_TASK_ROOT": str(FOLDER),
            "GATEWAY": getattr(request, "param", "") or yard.urls[0],
        }
        command = [sys.executable, "-m", "awslambdaric", "handler.handler"]
        try:
            with killed_after(subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=subprocess.DEVNULL)):
                yield api
        finally:
            api.over.set()
            api.shutdown()
            serving.join()


def _event(*bodies: object) -> dict[str, Any]:
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": f"handle-{number}",
                "body": text,
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:calls",
                "awsRegion": "eu-central-1",
            }
            for number, text in enumerate(texts)
        ]
    }


def _failed(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_only_what_failed_comes_again_and_nothing_runs_twice(yard: Embedded, runtime: RuntimeApi) -> None:
    good = [{"scraper": "lab/nap", "input": {"seconds": 0.01, "tag": f"sqs-{number}"}} for number in range(2)]
    event = _event(good[0], "no JSON", good[1], {"scraper": "lab/none"}, ["a list"], "[" * 100_000)
    for _ in range(2):  # SQS delivers at least once
        assert _failed(runtime.invoke(event)) == ["message-1", "message-3", "message-4", "message-5"]
    assert runtime.invoke({}) == {"batchItemFailures": []}
    with yard.client() as api:
        runs = api.get("/api/scrape", params={"scraper": "lab/nap"}).json()["runs"]
    assert sorted(run["input"]["tag"] for run in runs) == ["sqs-0", "sqs-1"]


@pytest.mark.parametrize("runtime", [f"http://127.0.0.1:{free_port()}"], indirect=True, ids=["away"])
def test_a_gateway_that_is_away_loses_no_message(runtime: RuntimeApi) -> None:
    assert _failed(runtime.invoke(_event({"url": "http://shop.example/"}))) == ["message-0"]
