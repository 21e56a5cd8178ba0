"""A JSON call with the standard library, for the programs beside it: `PROGRAM [SERVER [SHOP]]`."""

import json
import sys
import urllib.error
import urllib.request
from typing import Any

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
SHOP = sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8800"


def call(method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status and document of the answer. A problem of the server is a document as well, not an exception."""
    data = None if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(SERVER + path, data, given, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, json.load(problem)
