"""What clients ask of the API in the machine of jobs, and what they must hear."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, ClassVar

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from scrapeyard.builtin import ECHO
from tests.integration.job_machine_model import GOING, ModelJob, Options, State, input_of
from tests.integration.job_machine_yard import MOODY, Ground, Hand, JobMachineYard
from tests.job_calls import STATES, adds_up, as_csv

NUMBERS = st.lists(st.integers(0, 19), min_size=3, max_size=12)
RARELY = st.sampled_from([False] * 5 + [True])
"""What spoils a step is rare enough that long stories come about."""
JOBS = st.sampled_from([0, 0, 0, 1, 1, 2, 9])
"""Which one, of those that were not deleted; rarely the last of all."""
DEATHS = st.none() | st.tuples(st.integers(0, 11), st.booleans())
"""None: nothing dies in this step; otherwise at which call, and whether that one is still carried out."""
Death = tuple[int, bool] | None
MOST_JOBS = 3
MISSING = "job_" + 32 * "0"
NONSENSE: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "", {"json": {"scraper": ECHO, "items": []}}, 422),
    ("POST", "", {"json": {"scraper": ECHO, "items": [{}], "policy": {"rate": 0}}}, 422),
    ("POST", "", {"json": {"scraper": "builtin/nothing", "items": [{}]}}, 404),
    ("POST", "", {"content": b'{"scraper', "headers": {"content-type": "application/json"}}, 400),
    ("POST", "/{id}/cancel", {"params": {"mode": "softly"}}, 422),
    ("POST", "/{id}/redrive", {"json": {"keys": []}}, 422),
    ("PATCH", "/{id}", {"json": {"policy": {"retries": 21}}}, 422),
    ("PATCH", "/{id}", {"json": {"status": "completed"}}, 422),
    ("GET", "/{id}/items", {"params": {"limit": 0}}, 422),
    ("GET", "/{id}/items", {"params": {"cursor": "abc"}}, 400),
    ("GET", "/{id}/items", {"params": {"status": "lost"}}, 422),
    ("GET", "/" + MISSING, {}, 404),
    ("POST", f"/{MISSING}/pause", {}, 404),
    ("DELETE", "/" + MISSING, {}, 404),
    ("GET", "/job_1", {}, 404),
]
ACTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {}
WEIGHED: list[str] = []
"""Each as often as its weight. One rule draws from them, as rules of their own would be switched off by turns."""


def action(weight: int, **given: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    def register(method: Any) -> Any:
        ACTIONS[method.__name__] = given
        WEIGHED.extend([method.__name__] * weight)
        return method

    return register


class Calls(RuleBasedStateMachine):
    """One yard, up to three jobs in it, and what a client may do to them."""

    ground: Ground
    client: httpx.AsyncClient
    runner: asyncio.Runner
    names: ClassVar["count[int]"]
    done: ClassVar[Counter[str]]
    """What was answered and done, over all examples."""

    def __init__(self) -> None:
        super().__init__()
        self.yard = JobMachineYard(self.ground, self.client, f"example-{next(self.names)}")
        self.jobs: list[ModelJob] = []
        self.calls = count()
        self.whole = True
        """Whether each step so far went well."""
        self.strays = False
        """Whether a gateway died while it made a job: the list that it had kept may lie there, and nothing names it."""
        self.do(self.yard.start())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @property
    def now(self) -> float:
        return self.yard.clock.now

    @property
    def living(self) -> list[ModelJob]:
        return [job for job in self.jobs if not job.deleted]

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([name for name in WEIGHED if self.may(name == "create")]))
        drawn = {key: data.draw(strategy, label=key) for key, strategy in ACTIONS[name].items()}
        if "job" in drawn:
            known = sorted(self.jobs, key=lambda job: job.deleted)
            drawn["job"] = known[min(drawn["job"], len(known) - 1)]
        self.done[name] += 1
        self.whole = False
        getattr(self, name)(**drawn)
        if name != "dispatch":  # which has looked
            self.check()
        self.whole = True

    def may(self, create: bool) -> bool:
        """The first step makes a job, the others may as long as there are few."""
        return len(self.living) < MOST_JOBS if create else bool(self.jobs)

    def ask(self, method: str, path: str, death: Death = None, **given: Any) -> tuple[httpx.Response, bool]:
        """What a client hears that asks again when its call was broken off, and whether it had to."""
        if death:
            self.yard.doom_gateway(death[0] % 6, done=death[1])
        answer = self.do(self.yard.call(method, f"/api{path}", **given))
        again = answer is None
        if answer is None:
            self.done["gateways killed"] += 1
            answer = self.do(self.yard.call(method, f"/api{path}", **given))
        assert answer is not None
        assert answer.status_code < 500, answer.text
        self.done[f"{method} {answer.status_code}"] += 1
        return answer, again

    def of(self, job: ModelJob, method: str, path: str = "", **given: Any) -> tuple[httpx.Response, bool]:
        return self.ask(method, f"/jobs/{job.id}{path}", **given)

    def pages(self, path: str, of: str = "items", **query: Any) -> list[dict[str, Any]]:
        """A listing to its end."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.ask("GET", path, params={**query, **cursor})[0].json()
            found += page[of]
            assert page["next_cursor"] is None or len(page[of]) == query["limit"]
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    def look(self, job: ModelJob, options: dict[str, Options] | None = None) -> None:
        """The items of a job, after a step that may have moved them so."""
        if not job.deleted:
            shown = self.pages(f"/jobs/{job.id}/items", limit=200)
            if job.unread and not shown:
                return
            job.settle(shown, options or {})

    def check(self) -> None:
        """Every job stands where the model has it, and adds up."""
        for job in self.living:
            self.agrees(job, self.of(job, "GET")[0].json())

    def agrees(self, job: ModelJob, shown: dict[str, Any]) -> None:
        assert adds_up(shown["counts"]), shown["counts"]
        job.unread = job.unread and shown["reading"]
        job.stand(shown["status"])
        if job.unread:
            return
        assert shown["policy"]["max_attempts"] == job.most
        counts = {state: job.count(state) for state in STATES}
        assert shown["counts"] == {"total": len(job.keys), **counts}, job.tag

    @action(
        2,
        numbers=NUMBERS,
        upload=st.booleans(),
        real=RARELY,
        retries=st.integers(0, 2),
        more=st.integers(0, 3),
        death=DEATHS,
    )
    def create(self, numbers: list[int], upload: bool, real: bool, retries: int, more: int, death: Death) -> None:
        """A client that gives a key and asks again makes one job."""
        tag, scraper = f"j{len(self.jobs)}", ECHO if real else MOODY
        pace: dict[str, Any] = ({}, {"rate": 20.0}, {"concurrency": 4}, {})[more]
        policy = {"retries": retries, "breaker": {"enabled": False}, **pace}
        rows = [input_of(tag, number) for number in numbers]
        headers = {"Idempotency-Key": f"create-{tag}"}
        if upload:
            query = {"scraper": scraper, "policy": json.dumps(policy)}
            sent: dict[str, Any] = {
                "params": query,
                "content": as_csv(rows),
                "headers": {**headers, "content-type": "text/csv"},
            }
        else:
            sent = {
                "json": {"scraper": scraper, "items": rows, "policy": policy, "paused": more == 3},
                "headers": headers,
            }
        answer, again = self.ask("POST", "/jobs", death=death, **sent)
        assert answer.status_code == 201, answer.text
        job = ModelJob(id=answer.json()["id"], tag=tag, scraper=scraper, most=retries + 1, unread=again)
        job.status = "paused" if more == 3 and not upload else answer.json()["status"]
        assert job.status in (("creating", "running") if again else ("running",)) or more == 3
        job.add(numbers)
        self.jobs.append(job)
        self.strays = self.strays or again

    @action(3, job=JOBS, numbers=NUMBERS, upload=st.booleans(), death=DEATHS)
    def append(self, job: ModelJob, numbers: list[int], upload: bool, death: Death) -> None:
        """Asked again with its key, the call adds nothing twice and answers as the first time."""
        if job.unread:
            return
        rows = [input_of(job.tag, number) for number in numbers]
        headers = {"Idempotency-Key": f"append-{next(self.calls)}"}
        sent: dict[str, Any] = {"json": {"items": rows}, "headers": headers}
        if upload:
            sent = {"content": as_csv(rows), "headers": {**headers, "content-type": "text/csv"}}
        answer, _ = self.of(job, "POST", "/items", death=death, **sent)
        if job.deleted or job.status not in GOING:
            assert answer.status_code == (404 if job.deleted else 409), answer.text
            return
        assert answer.status_code == 200, answer.text
        added = job.add(numbers)
        told = answer.json()  # a number of a CSV is text, so an id may come with another input
        assert (told["added"], told["twice"] + told["bad"]) == (added, len(numbers) - added)

    @action(2, job=JOBS, death=DEATHS)
    def pause(self, job: ModelJob, death: Death) -> None:
        self.answers(job, self.of(job, "POST", "/pause", death=death)[0], good=not job.deleted and job.pause())

    @action(4, job=JOBS, death=DEATHS)
    def resume(self, job: ModelJob, death: Death) -> None:
        self.answers(job, self.of(job, "POST", "/resume", death=death)[0], good=not job.deleted and job.resume())

    @action(2, job=JOBS, retries=st.integers(0, 2), rate=st.sampled_from([None, 2.0, 50.0]), death=DEATHS)
    def change(self, job: ModelJob, retries: int, rate: float | None, death: Death) -> None:
        answer, _ = self.of(job, "PATCH", death=death, json={"policy": {"retries": retries, "rate": rate}})
        good = not job.deleted and not job.is_final
        if good:
            job.most = retries + 1
            assert answer.json()["policy"].get("rate") == rate
        self.answers(job, answer, good=good)

    def answers(self, job: ModelJob, answer: httpx.Response, *, good: bool) -> None:
        """It is done, refused or not there, as the model says."""
        assert answer.status_code == (404 if job.deleted else 200 if good else 409), answer.text
        if good:
            assert answer.json()["status"] == job.status

    @action(2, job=JOBS, kill=st.booleans(), begun=st.booleans(), death=DEATHS)
    def cancel(self, job: ModelJob, kill: bool, begun: bool, death: Death) -> None:
        """Perhaps when a worker has just begun something; one that is told of a kill gives back what it holds."""
        if begun:
            self.begin_work()
        answer, again = self.of(job, "POST", "/cancel", death=death, params={"mode": "kill" if kill else "drain"})
        if job.deleted:
            assert answer.status_code == 404
            return
        if answer.status_code == 409:
            assert job.status in {"finishing", "completed", "failed"}
            return
        told = [hand for hand in self.yard.hands if (job.kill or kill) and self.holds(hand, job)]
        unseen = job.unread and not answer.json()["counts"]["total"]
        status = job.cancel(kill, self.now, [hand.id for hand in self.yard.hands])
        given_back = again and not job.count("queued", "in_progress")
        assert answer.json()["status"] in {status} | ({"cancelled"} if given_back else set())
        job.status = answer.json()["status"]
        if unseen:
            job.unseen, job.keys, job.items = job.keys, [], {}
        for hand in told:
            self.do(hand.rest())

    def begin_work(self) -> None:
        """Have a worker hold something, if there is one that is idle."""
        raise NotImplementedError

    def holds(self, hand: Hand, job: ModelJob) -> bool:
        return any((state.status, state.hand) == ("in_progress", hand.id) for state in job.items.values())

    @action(
        3,
        job=JOBS,
        statuses=st.none() | st.sets(st.sampled_from(["success", "error", "cancelled"]), min_size=1),
        reason=st.sampled_from([None, None, "fetch_decode", "fetch_connect", "lost_worker"]),
        keys=st.none() | st.none() | st.sets(st.integers(0, 19), min_size=1),
        retries=st.none() | st.integers(0, 2),
        death=DEATHS,
    )
    def redrive(
        self,
        job: ModelJob,
        statuses: set[str] | None,
        reason: str | None,
        keys: set[int] | None,
        retries: int | None,
        death: Death,
    ) -> None:
        body: dict[str, Any] = {"statuses": statuses and sorted(statuses), "exit_reasons": reason and [reason]}
        body["keys"] = keys and [f"k{number}" for number in sorted(keys)]
        body["policy"] = None if retries is None else {"retries": retries}
        sent = {name: value for name, value in body.items() if value is not None}
        answer, again = self.of(job, "POST", "/redrive", death=death, json=sent)
        if job.deleted:
            assert answer.status_code == 404
            return

        def wanted(key: str, state: State) -> bool:
            fits = state.status in (statuses or {"error"}) and reason in (None, state.reason)
            return fits and (keys is None or int(key[1:]) in keys)

        cancelled = job.count("cancelled")
        redriven = job.redrive(wanted, None if retries is None else retries + 1, self.now)
        assert answer.status_code == (409 if redriven is None else 200), answer.text
        if redriven is not None:
            assert answer.json()["items"] in {len(redriven) + cancelled} | ({0} if again else set())
            assert answer.json()["job"]["status"] == job.status
            for key in redriven:
                self.yard.runs.forget(job.tag, key)

    @action(2, job=JOBS, death=DEATHS)
    def delete(self, job: ModelJob, death: Death) -> None:
        answer, again = self.of(job, "DELETE", death=death)
        if job.deleted:
            assert answer.status_code == 404
        elif job.is_final:
            assert answer.status_code in ((204, 404) if again else (204,)), answer.text
            job.deleted = True
        else:
            assert answer.status_code == 409, answer.text

    @action(2, nonsense=st.sampled_from(NONSENSE))
    def talk_nonsense(self, nonsense: tuple[str, str, dict[str, Any], int]) -> None:
        method, path, given, code = nonsense
        job = next((job for job in self.living), None)
        if job is not None or "{id}" not in path:
            answer, _ = self.ask(method, "/jobs" + path.format(id=job.id if job else ""), **given)
            assert answer.status_code == code, answer.text

    @action(2, job=JOBS, limit=st.integers(1, 3), wanted=st.sets(st.sampled_from(STATES), min_size=1))
    def page_through(self, job: ModelJob, limit: int, wanted: set[str]) -> None:
        """However small the pages, each item that fits is on one of them."""
        if job.deleted or job.unread:
            return
        shown = self.pages(f"/jobs/{job.id}/items", limit=limit, status=sorted(wanted))
        assert [item["id"] for item in shown] == [key for key in job.keys if job.items[key].status in wanted]

    @action(1, limit=st.integers(1, 2))
    def list_jobs(self, limit: int) -> None:
        """However often a call that makes one was repeated, there is one."""
        shown = [job["id"] for job in self.pages("/jobs", of="jobs", limit=limit)]
        assert shown == sorted((job.id for job in self.living), reverse=True)

    @action(1, limit=st.integers(1, 4))
    def read_dead_letters(self, limit: int) -> None:
        shown = [(item["job_id"], item["id"]) for item in self.pages("/dead-letters", limit=limit)]
        failed = [(job.id, key) for job in self.living for key, state in job.items.items() if state.status == "error"]
        assert sorted(shown) == sorted(failed)
        assert len(set(shown)) == len(shown)

    @action(1, job=JOBS)
    def read_results(self, job: ModelJob) -> None:
        answer, _ = self.of(job, "GET", "/results")
        if job.deleted:
            assert answer.status_code == 404
        elif not job.is_final:
            assert answer.json()["manifests"] == {}
        elif job.status == "completed":
            self.check_results(job, answer.json())

    def check_results(self, job: ModelJob, summary: dict[str, Any]) -> None:
        """Every item once, as it ended."""
        for kind, statuses in (("full", STATES), ("success", {"success"}), ("errors", {"error"})):
            entries = [
                (entry["item_id"], entry["status"])
                for part in summary["manifests"][kind]["parts"]
                for entry in self.ask("GET", part["href"].removeprefix("/api"))[0].json()["entries"]
            ]
            ended = [(key, job.items[key].status) for key in job.keys]
            assert entries == [one for one in ended if one[1] in statuses]
