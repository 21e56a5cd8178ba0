"""The release before and this one side by side on one database: `python -m tests.deployment.upgrade --from REF`.

Programs of the older version run a job and answer calls. Programs of this one join them and migrate the database under
them. Both work for a while, each kind asked by name. Then the older ones are stopped one by one, as a rolling upgrade
does. No item and no call may be lost or doubled. REF is a tag or commit; by default the newest tag, or else the last
commit before the newest migration that starts. It is installed into `build/upgrade` from a worktree, with its own
locked packages.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos import jobs
from tests.chaos.disturb import LEASE
from tests.chaos.load import Account, Load, settle
from tests.deployment.commands import say
from tests.job_calls import Jobs, Watcher
from tests.leaks import PATIENCE, until
from tests.programs import QUICK, ROOT, Cluster, Program

HERE = ROOT / "build" / "upgrade"
_VERSIONS = "src/scrapeyard/store/migrations/versions"
_TRIES = 10
_ROLES = ("gateway", "worker", "dispatcher")


class MixedCluster(Cluster):
    """A cluster whose programs are of two versions: `old` and `new`, one of each role."""

    def __init__(self, old: Path) -> None:
        super().__init__(gateways=0, workers=0, dispatchers=0, environment=LEASE)
        self._programs = {"old": old, "new": Path(sys.executable).parent}
        self.of: dict[tuple[str, str], Program] = {}

    def _start(self) -> None:
        super()._start()
        self.start("old")

    def start(self, version: str) -> None:
        """Start one of each role, and wait until they work."""
        for role in _ROLES:
            self._start_one(version, role)
        self.wait_until_up()

    def _start_one(self, version: str, role: str) -> None:
        words = {"gateway": ["--port", "0"], "worker": ["--allow-private"], "dispatcher": []}[role]
        words += [] if role == "dispatcher" else ["--scrapers", str(self.scrapers)]
        folder = self._programs[version]
        command = [str(folder / "python"), str(folder / "scrapeyard"), role, "--data-dir", str(self.folder / "data")]
        program = self.of[version, role] = Program(
            [*command, *words], self._home(f"{version}-{role}"), self.environment
        )
        self.programs.append(program)
        {"gateway": self.gateways, "worker": self.workers, "dispatcher": self.dispatchers}[role].append(program)

    def did(self, version: str, role: str, event: str) -> bool:
        """Whether such a program logged it."""
        return any(told["event"] == event for told in self.of[version, role].events())


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="ref", default="", help="tag or commit of the older version")
    parser.add_argument("--items", type=int, default=120, help="items of the job, of half a second each")
    options = parser.parse_args()
    ref = _git("rev-parse", "--short", f"{options.ref}^{{commit}}") if options.ref else _before()
    old = _installed(ref)
    say(f"from {ref} (schema {_schema(ref)}) to {_git('describe', '--always', '--dirty')} (schema {_schema()})")
    with MixedCluster(old) as cluster:
        faults = asyncio.run(_drive(cluster, options.items))
    for fault in faults:
        say(f"FAULT {fault}")
    say(f"{len(faults)} faults")
    return 1 if faults else 0


async def _drive(cluster: MixedCluster, items: int) -> list[str]:
    came_to, began = jobs.Account(), time.monotonic()
    with cluster.client() as api:
        job_id = await asyncio.to_thread(jobs.create, Jobs(api), items, 0.5)
    load = Load(lambda: cluster.urls, per_second=3, seed=1)
    calling = asyncio.create_task(load.run())
    with Watcher(lambda: cluster.urls, [job_id]).watching() as watcher:
        await load.accepted(5)
        await asyncio.to_thread(cluster.start, "new")
        say("both versions run")
        await load.accepted(10)
        faults = await asyncio.to_thread(_both_work, cluster)
        for role in ("dispatcher", "worker", "gateway"):
            await asyncio.to_thread(cluster.of["old", role].stop)
            await load.accepted(5)
            say(f"the old {role} is gone")
        load.stop()
        calls = await calling
        await asyncio.to_thread(jobs.settle_job, cluster, job_id, came_to, PATIENCE * 3)
        account: Account = await settle(cluster.urls[0], calls, PATIENCE)
    came_to.seconds, came_to.samples = time.monotonic() - began, watcher.samples
    say(account.summary("calls"))
    say(came_to.summary("job"))
    return [*faults, *account.faults, *came_to.faults, *watcher.faults]


def _both_work(cluster: MixedCluster) -> list[str]:
    """Each gateway answers, each worker takes work, and the older dispatcher still leads or handed over."""
    faults = []
    for number, url in enumerate(cluster.urls):
        with cluster.client(number) as api:
            answer = api.post("/api/scrape", json={"scraper": "lab/nap", "input": {"seconds": 0.1}, "wait": 60})
            if answer.status_code != 200:
                faults.append(f"{url} answers {answer.status_code}: {answer.text[:300]}")
    seen: set[str] = set()
    with cluster.client() as api:

        def both_are_busy() -> bool:
            seen.update(each["id"] for each in api.get("/api/workers").json()["workers"] if each["busy"])
            return len(seen) == 2

        try:
            until(both_are_busy, "both workers run something")
        except AssertionError as fault:
            faults.append(str(fault))
    return faults


def _before() -> str:
    """The newest tag; or the last commit before the newest migration that starts, so that a migration is crossed."""
    tags = _git("tag", "--list", "v*", "--sort=-v:refname").split()
    if tags:
        return _git("rev-parse", "--short", f"{tags[0]}^{{commit}}")
    newest = max(path.name for path in (ROOT / _VERSIONS).glob("[0-9]*.py"))
    migrated = _git("log", "--format=%h", "--diff-filter=A", "-1", "--", f"{_VERSIONS}/{newest}")
    earlier = _git("log", "--format=%h", f"-{_TRIES}", f"{migrated}~1").split()
    found = next((ref for ref in earlier if _starts(_installed(ref))), None)
    return found or sys.exit(f"none of the {_TRIES} commits before {migrated} starts: name one with --from")


def _starts(programs: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="upgrade-") as home:
        words = ["up", "--port", "0", "--data-dir", f"{home}/data"]
        program = Program([str(programs / "python"), str(programs / "scrapeyard"), *words], Path(home, "up"), QUICK)
        try:
            program.wait_for("gateway.listening")
        except AssertionError:
            return False
        finally:
            program.kill()
    return True


def _schema(ref: str = "") -> str:
    if ref:
        names = _git("ls-tree", "--name-only", ref, f"{_VERSIONS}/").split()
    else:
        names = [str(path) for path in (ROOT / _VERSIONS).glob("[0-9]*.py")]
    return max(Path(name).name[:4] for name in names if Path(name).name[:1].isdigit())


def _installed(ref: str) -> Path:
    """The folder with its programs. What was installed before is used again."""
    place, tree = HERE / ref / "venv", HERE / ref / "tree"
    if not (place / "done").exists():
        HERE.mkdir(parents=True, exist_ok=True)
        if not tree.exists():
            _git("worktree", "add", "--detach", str(tree), ref)
        try:
            uv = [sys.executable, "-m", "uv"]
            _do(*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place))
            _do(
                *uv,
                "pip",
                "install",
                "--quiet",
                "--python",
                str(place),
                "--require-hashes",
                "-r",
                f"{tree}/requirements/run.txt",
            )
            _do(*uv, "pip", "install", "--quiet", "--python", str(place), "--no-deps", str(tree))
        finally:
            _git("worktree", "remove", "--force", str(tree))
        (place / "done").touch()
    return place / "bin"


def _git(*words: str) -> str:
    return _do("git", "-C", str(ROOT), *words).strip()


def _do(*command: str) -> str:
    environment = {"UV_SYSTEM_CERTS": "true", **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:6])} …: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
