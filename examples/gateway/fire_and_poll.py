"""Start a run, go on with other work, and ask for the result later. The key makes the call safe to repeat."""

import uuid

from api import SHOP, call

key = {"Idempotency-Key": str(uuid.uuid4())}
wanted = {"url": f"{SHOP}/slow?seconds=1", "wait": 0}

status, handle = call("POST", "/api/scrape", wanted, key)
print(status, handle["status"])

_, again = call("POST", "/api/scrape", wanted, key)  # as after a lost connection: no second run
print("same run:", again["id"] == handle["id"])

run = handle
while run["status"] not in ("succeeded", "failed", "cancelled"):
    _, run = call("GET", f"/api/scrape/{handle['id']}?wait=10")  # returns at the end, or after 10 seconds
print(run["status"], run["result"]["h1"])
