"""Follow a run while it goes on: server-sent events, one JSON document in each `data:` line."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

from api import SERVER, SHOP, call


def events(path: str) -> Iterator[dict[str, Any]]:
    """Every event until the server ends the stream."""
    with urllib.request.urlopen(SERVER + path, timeout=120) as stream:
        for line in stream:
            if line.startswith(b"data:"):
                yield json.loads(line[5:])


_, run = call("POST", "/api/scrape", {"url": f"{SHOP}/slow?seconds=1", "wait": 0})
for event in events(f"/api/scrape/{run['id']}/events"):
    print(event["type"], event.get("status") or event.get("url") or event.get("text") or "")
    if event["type"] == "end":
        break
