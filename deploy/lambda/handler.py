"""AWS Lambda on a queue of SQS: each message is a call of a gateway. Standard library only.

A message is the body of `POST /api/scrape`: {"url": …} or {"scraper": …, "input": …}. The run is made at once and goes
on by itself (`wait` is 0), so that a function of a few seconds starts runs of minutes. The id of the message is the
Idempotency-Key: a message that SQS delivers twice makes one run.

What the gateway does not take now (429, 503, no answer) is told to SQS as a failure of this message alone, and comes
again. What it will never take (400, 422, …) goes the same way, and ends in the dead-letter queue after
`maxReceiveCount`: it is not lost silently. The mapping needs `FunctionResponseTypes: [ReportBatchItemFailures]`.

Environment: GATEWAY (https://…), KEY_FILE or KEY (a key of the role client), CA_FILE for an authority of your own.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SECONDS = float(os.environ.get("TIMEOUT_SECONDS", "10"))
"""For one call; the function's own time-out must be longer than this times the messages of a batch."""
MOST_BYTES = 262_144
"""As much as SQS takes."""


def handler(event: dict[str, Any], context: object = None) -> dict[str, list[dict[str, str]]]:
    """Call the gateway for every message. Answers which of them must come again."""
    del context
    records = event.get("Records", [])
    failed = [record["messageId"] for record in records if not _taken(record)]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}


def _taken(record: dict[str, Any]) -> bool:
    """Whether the gateway has a run for this message."""
    try:
        call = _read(record["body"])
        run = _post(call, record["messageId"])
    except urllib.error.HTTPError as refusal:
        return _failed(record, f"the gateway answers {refusal.code}: {refusal.read(500).decode('utf-8', 'replace')}")
    except Exception as error:  # noqa: BLE001  one message, whatever it does, must not bring back those that were taken
        return _failed(record, f"{type(error).__name__}: {error}")
    _log(message=record["messageId"], run=run.get("id"))
    return True


def _read(body: str) -> dict[str, Any]:
    if len(body.encode()) > MOST_BYTES:
        raise ValueError("the message is too large")
    call = json.loads(body)
    if not isinstance(call, dict):
        raise ValueError("the message is no JSON object")
    return {**call, "wait": 0}


def _post(call: dict[str, Any], key: str) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310  the operator names the gateway
        f"{os.environ['GATEWAY'].rstrip('/')}/api/scrape",
        data=json.dumps(call).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": f"sqs-{key}", **_credentials()},
    )
    with urllib.request.urlopen(request, timeout=SECONDS, context=_trust()) as answer:  # noqa: S310
        run: dict[str, Any] = json.load(answer)
    return run


def _credentials() -> dict[str, str]:
    path = os.environ.get("KEY_FILE")
    key = Path(path).read_text("utf-8").strip() if path else os.environ.get("KEY", "")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _trust() -> ssl.SSLContext | None:
    if not os.environ["GATEWAY"].startswith("https:"):
        return None
    return ssl.create_default_context(cafile=os.environ.get("CA_FILE") or None)


def _failed(record: dict[str, Any], why: str) -> bool:
    _log(message=record.get("messageId"), failed=why)
    return False


def _log(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
