"""Starts deploy/compose.yaml and uses it: `python -m tests.deployment.compose [--target lean]`.

A Docker engine of its own runs it, with Compose: `tests/deployment/engine.py`. Our image is built as for
`make image-test`. No registry is reached, so the other images are stand-ins with the same servers; Grafana, of which
there is no package, is left out. Then as a user: every health check is green, calls and a job by TLS through Caddy,
a gateway, a worker and PostgreSQL killed meanwhile, metrics of every role in Prometheus, every wall around scripts.
Everything stays in `build/compose-test`. Needs root.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.deployment import image
from tests.deployment.commands import do, missing, say
from tests.deployment.engine import REPOSITORY, DockerEngine
from tests.leaks import until

ROOT = Path(__file__).parents[2]
HERE = ROOT / "build" / "compose-test"
TOOLS = (*image.TOOLS, "nsenter", "unshare", "ip")
STAND_INS = {
    "valkey": "valkey/valkey:9.1",
    "postgres": "postgres:18",
    "seaweedfs": "chrislusf/seaweedfs:4.48",
    "caddy": "caddy:2.11",
    "prometheus": "prom/prometheus:v3.7.3",
}
SERVICES = ("caddy", "worker", "dispatcher", "prometheus", "shop")
"""What is started, with what it depends on: everything but Grafana."""
_FILES = "tests/deployment/compose_files"
_COMPOSE = ("docker", "compose", "-f", "deploy/compose.yaml", "-f", f"{_FILES}/override.yaml")


class ComposedCluster:
    """The running services, and a client of theirs on the engine's host."""

    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._environment: dict[str, str] = {}

    def compose(self, *words: str) -> str:
        """Run a command of Compose; its output."""
        return self._engine.do(*_COMPOSE, *words)

    def up(self) -> None:
        """Start what does not run, and wait until every health check is green."""
        self.compose("up", "--wait", "--wait-timeout", "600", *SERVICES)

    def states(self) -> Counter[str]:
        """How many containers of each service are healthy, or just run if they have no check."""
        told = [json.loads(line) for line in self.compose("ps", "--format", "json").splitlines()]
        return Counter(each["Service"] for each in told if (each["Health"] or each["State"]) in ("healthy", "running"))

    def sign_in(self, folder: Path) -> None:
        """Take the authority and the admin key, as the docs tell."""
        inside = f"/tmp/{folder.name}-ca.pem"
        self.compose("cp", "caddy:/run/caddy/ca.pem", inside)
        authority = shutil.move(self._engine.root / inside.lstrip("/"), folder / "ca.pem")
        key = self.compose("run", "--rm", "keys", "show").strip()
        assert key.startswith("sy_"), key
        self._environment = {"SSL_CERT_FILE": str(authority), "SCRAPEYARD_KEY": key}

    def call(self, *words: str) -> Any:
        """Call by the command line program, through Caddy; what it printed as JSON."""
        program = str(Path(sys.executable).with_name("scrapeyard"))
        command = [program, *words, "--server", "https://localhost", "--json"]
        return json.loads(do(*self._engine.beside(*command), env={**os.environ, **self._environment}))

    def ask(self, path: str) -> Any:
        """What the API answers."""
        return json.loads(self._curl(path, "-f", "-H", f"Authorization: Bearer {self._environment['SCRAPEYARD_KEY']}"))

    def status(self, path: str) -> int:
        """The status that a caller without a key gets."""
        return int(self._curl(path, "-o", os.devnull, "-w", "%{http_code}"))

    def kill(self, service: str) -> None:
        """Its first container, at once."""
        self._engine.do("docker", "kill", self.compose("ps", "-q", service).split()[0])

    def _curl(self, path: str, *words: str) -> str:
        words = (*words, "--cacert", self._environment["SSL_CERT_FILE"], f"https://localhost{path}")
        return do(*self._engine.beside("curl", "-sS", *words))

    def scrape(self) -> None:
        """One page, by a worker, from the shop."""
        told = self.call("scrape", "http://shop:8800/product/1")
        assert told["result"]["title"] == "Aurora Lamp · Practice Shop", told


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=image.TARGETS, default="lean", help="of the image")
    options = parser.parse_args()
    if why := missing(*TOOLS):
        say(f"Compose is not tested: {why}.")
        return 0
    HERE.mkdir(parents=True, exist_ok=True)
    built = image.build(options.target)
    engine = DockerEngine(HERE, ROOT)
    engine.install()
    with engine, tempfile.TemporaryDirectory() as folder:
        say(engine.do("docker", "version", "--format", "Docker {{.Server.Version}}").strip())
        _load(engine, built)
        with _started(engine) as cluster:
            cluster.sign_in(Path(folder))
            _check(cluster)
    say("0 faults")
    return 0


def _load(engine: DockerEngine, built: str) -> None:
    """Our image, and the stand-ins with the programs that are wheels here."""
    engine.load([*image.PODMAN, "save", "--format", "docker-archive", built])
    engine.do("docker", "tag", built, "scrapeyard:local")
    for program in (Path(sys.executable).with_name("weed"), ROOT / "build/deploy-check/bin/caddy"):
        shutil.copy(program, engine.root / "usr/local/bin" / program.name)
    left_out = (REPOSITORY, "/var/lib/docker", "/var/cache")
    pack = f"tar -C / --one-file-system {' '.join(f'--exclude=.{path}' for path in left_out)} -c ."
    engine.do("sh", "-c", f"{pack} | docker import - stand-in")
    for target, name in STAND_INS.items():
        engine.do("env", "DOCKER_BUILDKIT=0", "docker", "build", "--target", target, "-t", name, _FILES)


@contextlib.contextmanager
def _started(engine: DockerEngine) -> Iterator[ComposedCluster]:
    """The cluster, from nothing; its volumes are removed in the end. A failure shows what the containers said."""
    cluster, began = ComposedCluster(engine), time.monotonic()
    cluster.compose("down", "--volumes", "--remove-orphans")
    try:
        cluster.up()
        say(f"up: {dict(cluster.states())} after {time.monotonic() - began:.0f} s")
        yield cluster
    except BaseException:
        checks = "docker inspect --format '{{.Name}} {{json .State.Health}}' $(docker ps -aq)"
        said = engine.do("sh", "-c", checks), cluster.compose("--ansi", "never", "logs", "--no-color")
        (HERE / "containers.log").write_text("".join(said))
        raise
    finally:
        cluster.compose("down", "--volumes", "--remove-orphans", "--timeout", "60")


def _check(cluster: ComposedCluster) -> None:
    alone, pairs = ("gateway-1", "gateway-2", "caddy", "valkey", "postgres", "seaweedfs"), ("worker", "dispatcher")
    states = cluster.states()
    assert all(states[name] == 1 for name in alone), states
    assert all(states[name] == 2 for name in pairs), states
    cluster.scrape()
    assert (cluster.status("/api/health"), cluster.status("/api/live")) == (401, 200)
    say("a scrape by TLS through Caddy; without a key 401")
    _walls(cluster)
    _metrics(cluster)
    _kills(cluster)
    cluster.compose("up", "--wait", "--scale", "worker=3", "--no-recreate", "worker")
    until(lambda: len(cluster.ask("/api/workers")["workers"]) == 3, "a third worker")
    say("a third worker by --scale")


def _walls(cluster: ComposedCluster) -> None:
    told = {each["check"]: each for each in json.loads(_doctor(cluster))}
    assert [told[f"wall {wall}"]["state"] for wall in image.WALLS] == ["ok"] * len(image.WALLS), told
    assert not [each for each in told.values() if each["state"] == "fail"], told
    say("doctor in a worker finds every wall, and every backend")


def _doctor(cluster: ComposedCluster) -> str:
    """It ends with 1 where something is worth a warning."""
    return cluster.compose("exec", "-T", "worker", "sh", "-c", "scrapeyard doctor --json || true")


def _metrics(cluster: ComposedCluster) -> None:
    ask = ("exec", "-T", "prometheus", "wget", "-q", "-O", "-", "http://localhost:9090/api/v1/targets")

    def healthy() -> Counter[str]:
        targets = json.loads(cluster.compose(*ask))["data"]["activeTargets"]
        return Counter(each["health"] for each in targets)

    until(lambda: healthy() == {"up": 6}, "Prometheus reads two gateways, two workers and two dispatchers")
    say("Prometheus reads all six programs of ours, the gateways by TLS and with a key")


def _kills(cluster: ComposedCluster) -> None:
    """A gateway, a worker and the database are killed while a job runs: every item has one outcome."""
    urls = [f"http://shop:8800/product/{number}" for number in range(1, 61)]
    job = cluster.call("jobs", "create", "--urls", *urls, "--rate", "4")["id"]
    for victim in ("gateway-1", "worker", "postgres"):
        cluster.kill(victim)
        if victim != "postgres":
            cluster.scrape()
        cluster.up()
        cluster.scrape()
    until(lambda: cluster.ask(f"/api/jobs/{job}")["status"] == "completed", "the job ends")
    counts = cluster.ask(f"/api/jobs/{job}")["counts"]
    assert (counts["success"], counts["total"]) == (len(urls), len(urls)), counts
    say("a gateway, a worker and PostgreSQL killed: calls go on, and a job of 60 items has 60 successes")


if __name__ == "__main__":
    sys.exit(main())
