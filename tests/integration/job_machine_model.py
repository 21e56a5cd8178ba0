"""Jobs as a client of the API may expect them: where each item stands, and where a step may take it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.integration.job_machine_yard import LEASE_SECONDS, MOODY, RETRY_SECONDS
from tests.job_calls import FINAL

ENDED = frozenset({"success", "error"})
STOPPED = frozenset({"cancelling", "cancelled"})
OUT = frozenset({"queued", "in_progress"})
IDLE = frozenset({"pending", "queued", "cancelled"})
"""An item that stands so has not begun the attempt it waits for."""
GOING = frozenset({"creating", "running", "paused"})


@dataclass(frozen=True, kw_only=True)
class State:
    """Where one item stands."""

    status: str = "pending"
    attempt: int = 1
    reason: str | None = None
    due: float = 0.0
    hand: str = ""
    """The worker that holds it, or held it when it was killed."""
    lease: float = 0.0
    most: int = 0
    """Attempts that the policy allowed when it was taken."""

    def looks_like(self, item: Mapping[str, Any]) -> bool:
        """Whether a document shows this."""
        begun = self.attempt - (self.status in IDLE)
        return (self.status, self.reason, begun) == (item["status"], item["exit_reason"], item["attempt"])


Options = Sequence[State]


def input_of(tag: str, number: int) -> dict[str, Any]:
    """An item's input: how it ends follows from its number, so that the same number twice is the same item."""
    ends, fails = (("well", 0), ("well", 0), ("badly", 0), ("well", 1), ("well", 2))[number % 5]
    return {"item_id": f"k{number}", "tag": tag, "n": number, "ends": ends, "fails": fails}


@dataclass(kw_only=True)
class ModelJob:
    """One job."""

    id: str
    tag: str
    scraper: str
    most: int
    """Attempts that its policy allows."""
    status: str = "running"
    may: set[str] = field(default_factory=set)
    """Where the last step may have moved it; empty: nowhere."""
    kill: bool = False
    unread: bool = False
    """Its gateway died with it: perhaps its list is not read yet."""
    unseen: list[str] = field(default_factory=list)
    """Keys of a list that was not read when the job was cancelled."""
    deleted: bool = False
    keys: list[str] = field(default_factory=list)
    items: dict[str, State] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def hands_out(self) -> bool:
        return self.status in ("creating", "running")

    def count(self, *statuses: str) -> int:
        return sum(state.status in statuses for state in self.items.values())

    def add(self, numbers: Iterable[int]) -> int:
        """How many are new."""
        new = [key for key in dict.fromkeys(f"k{number}" for number in numbers) if key not in self.items]
        self.keys += new
        self.items |= dict.fromkeys(new, State())
        return len(new)

    def back(self, state: State, now: float, attempt: int) -> State:
        """It waits, to be handed out again, unless its job was cancelled."""
        return State(status="cancelled" if self.status in STOPPED else "pending", attempt=attempt, due=now)

    def pause(self) -> bool:
        """False: it cannot be."""
        if self.status in GOING:
            self.status = "paused"
        return self.status == "paused"

    def resume(self) -> bool:
        """False: it cannot be. What was cancelled is undone, and a list that was not read is read on."""
        if self.status == "cancelled":
            self._revive()
            self.kill, self.unread = False, True
            self.keys += self.unseen
            self.items |= dict.fromkeys(self.unseen, State())
            self.unseen = []
        if self.status in ("paused", "cancelled"):
            self.status = "running"
        return self.status in GOING

    def cancel(self, kill: bool, now: float, living: Iterable[str]) -> str:
        """The status that the call answers. Workers that live hear of a kill; the dead keep their lease."""
        if self.status not in (*GOING, "cancelling"):
            return self.status
        self.kill = self.kill or kill
        self._reach({"pending", "queued"} if self.kill else {"pending"})
        self.status = "cancelling" if self.count(*OUT) else "cancelled"
        if self.kill:
            alive = set(living)
            self._reach({"in_progress"}, lambda state: state.hand in alive)
        self.unread = False
        return self.status

    def _reach(self, statuses: set[str], which: Callable[[State], bool] = lambda _: True) -> None:
        for key, state in self.items.items():
            if state.status in statuses and which(state):
                self.items[key] = State(status="cancelled", attempt=state.attempt, due=state.due)

    def redrive(self, wanted: Callable[[str, State], bool], most: int | None, now: float) -> list[str] | None:
        """Those that run again from their first attempt; None: it is refused. What was cancelled comes along."""
        if self.status in ("creating", "cancelling", "finishing"):
            return None
        again = [key for key, state in self.items.items() if state.status in ENDED and wanted(key, state)]
        cancelled = self.count("cancelled")
        if not again and not cancelled:
            return []
        self.items |= {key: State(due=now) for key in again}
        self._revive()
        if self.status not in ("running", "paused"):
            self.status, self.kill = "running", False
        self.most = self.most if most is None else most
        return again

    def _revive(self) -> None:
        for key, state in self.items.items():
            if state.status == "cancelled":
                self.items[key] = replace(state, status="pending")

    def after_run(self, key: str, state: State, nth: int, now: float) -> State:
        """What the `nth` run of an item that was taken leads to."""
        wished = input_of(self.tag, int(key[1:]))
        if self.scraper != MOODY or (wished["ends"] == "well" and nth > wished["fails"]):
            return State(status="success", attempt=state.attempt, reason="succeeded")
        if wished["ends"] == "badly":
            return State(status="error", attempt=state.attempt, reason="fetch_decode")
        if state.attempt >= state.most:
            return State(status="error", attempt=state.attempt, reason="fetch_connect")
        return self.back(state, now + RETRY_SECONDS, state.attempt + 1)

    def taken(self, state: State, hand: str, now: float) -> State:
        """A worker has it."""
        return replace(state, status="in_progress", hand=hand, lease=now + LEASE_SECONDS, most=self.most)

    def prolong(self, hand: str, now: float) -> None:
        """This worker told that it lives."""
        for key, state in self.items.items():
            if (state.status, state.hand) == ("in_progress", hand):
                self.items[key] = replace(state, lease=now + LEASE_SECONDS)

    def lost(self, state: State, now: float) -> list[State]:
        """Its worker fell silent. It costs an attempt if the store knew that the item had begun."""
        uncharged = self.back(state, now, state.attempt)
        if self.kill:
            return [uncharged]
        if state.attempt >= self.most:
            return [State(status="error", attempt=state.attempt, reason="lost_worker"), uncharged]
        return [self.back(state, now, state.attempt + 1), uncharged]

    def options_of_dispatch(self, now: float, *, led: bool, sure: bool) -> dict[str, Options]:
        """What a round may do to each item. `sure`: it came to its end; not `led`: it was another's to do."""
        return {key: list(self._dispatched(state, now, led=led, sure=sure)) for key, state in self.items.items()}

    def _dispatched(self, state: State, now: float, *, led: bool, sure: bool) -> Iterable[State]:
        found = [state]
        if led and state.status == "in_progress" and state.lease < now:
            found = [*(() if sure else (state,)), *self.lost(state, now)]
        yield from found
        for one in found:
            if led and one.status == "pending" and self.hands_out and one.due <= now:
                yield replace(one, status="queued")

    def options_of_work(
        self, ran: Mapping[str, int], hand: str, now: float, *, hold: bool, sure: bool
    ) -> dict[str, Options]:
        """What a worker that took a batch of this job may do to those that were queued."""
        found: dict[str, Options] = {}
        for key, state in self.items.items():
            if state.status != "queued":
                continue
            taken = self.taken(state, hand, now)
            if self.kill or self.status == "paused":
                assert key not in ran, f"{key} was run though its job is {self.status}"
                found[key] = [state, self.back(state, now, state.attempt)]
            elif key in ran or (self.scraper != MOODY and not hold):
                ended = self.after_run(key, taken, ran.get(key, 1), now)
                found[key] = [ended, *(() if sure else (taken,)), *(() if key in ran else (state,))]
            elif hold or not sure:
                found[key] = (
                    [state, taken] if self.scraper == MOODY else [state, taken, self.after_run(key, taken, 1, now)]
                )
        return found

    def options_of_going_on(self, ran: Mapping[str, int], hand: str, now: float, *, sure: bool) -> dict[str, Options]:
        """What a worker does to those that it holds. What it ran and does not hold any more changes nothing."""
        return {
            key: [self.after_run(key, state, ran[key], now), *(() if sure else (state,))]
            for key, state in self.items.items()
            if state.status == "in_progress" and state.hand == hand and key in ran
        }

    def statuses_after_dispatch(self, *, sure: bool) -> set[str]:
        """Of the job, when its items stand as they do."""
        over = not self.unread and not self.count("pending", *OUT)
        ends = {
            "running": {"finishing", "completed"},
            "cancelling": {"cancelled"},
            "finishing": {"finishing", "completed"},
        }
        if self.status == "creating":
            return {"creating", "running"}
        if not over or self.status not in ends:
            return {self.status}
        return ends[self.status] | (set() if sure else {self.status})

    def stand(self, status: str) -> None:
        """It is shown so, and must be where it may."""
        assert status in (self.may or {self.status}), f"{self.tag}: {status}, not {self.may or self.status}"
        self.status, self.may = status, set()

    def settle(self, shown: Sequence[Mapping[str, Any]], options: Mapping[str, Options]) -> None:
        """Each item, in its order and once, must stand where it may; that is where it stands from now on."""
        assert [item["id"] for item in shown] == self.keys
        for item in shown:
            key = item["id"]
            may = options.get(key, (self.items[key],))
            fits = [state for state in may if state.looks_like(item)]
            told = (item["status"], item["exit_reason"], item["attempt"])
            assert fits, f"{self.tag} ({self.status}) {key}: {told}, not one of {may}"
            self.items[key] = fits[0]
