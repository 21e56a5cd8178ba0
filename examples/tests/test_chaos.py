"""Chaos: a server that dies in the middle of a run loses nothing. Another attempt finishes it."""

from examples.tests.server import Server, until


def test_a_run_outlives_a_power_cut(server: Server, shop: str) -> None:
    with server.start() as client:
        run = client.post("/api/scrape", json={"url": f"{shop}/slow?seconds=3", "wait": 0}).json()
        until(lambda: client.get(f"/api/scrape/{run['id']}").json()["status"] == "running", "the run begins")
        server.kill()
    with server.start() as client:

        def ended() -> dict[str, object] | None:
            document = client.get(f"/api/scrape/{run['id']}?wait=10").json()
            return document if document["status"] not in ("queued", "running") else None

        found = until(ended, "the run ends")
        assert (found["status"], found["attempt"]) == ("succeeded", 2)
    server.stop()
