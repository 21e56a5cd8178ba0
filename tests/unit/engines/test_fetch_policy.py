"""Policies over one another, the bounds of their fields, and the waits between attempts."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from scrapeyard.engines.http.checks import connect_limit, time_limit
from scrapeyard.engines.port import FetchRequest
from scrapeyard.gateway.jobs.policies import JobPolicyCall
from scrapeyard.gateway.runs.policies import Backoff as BackoffCall
from scrapeyard.gateway.runs.policies import Budget, KeepDays, Policy
from scrapeyard.model import Backoff, BudgetLimits, FetchPolicy
from scrapeyard.repository.manifest.policy import policy_schema
from scrapeyard.settings import HttpSettings

_POLICIES = st.builds(
    FetchPolicy,
    robots=st.sampled_from(["", "ignore", "obey"]),
    proxy=st.sampled_from(["", "none", "home"]),
    escalate=st.sampled_from([None, True, False]),
    allow_residential=st.sampled_from([None, True, False]),
    captcha=st.sampled_from(["", "off", "vendor"]),
    max_age_seconds=st.sampled_from([None, 0.0, 5.0]),
    budget=st.builds(BudgetLimits, requests=st.sampled_from([None, 1, 2]), seconds=st.sampled_from([None, 1.0])),
    backoff=st.builds(Backoff, kind=st.sampled_from(["", "linear"]), factor=st.sampled_from([None, 1.0, 3.0])),
)


@given(_POLICIES, _POLICIES)
def test_the_stronger_wins_where_it_says_something(strong: FetchPolicy, weak: FetchPolicy) -> None:
    both, silent = strong.over(weak), FetchPolicy()
    for name in ("robots", "proxy", "escalate", "allow_residential", "captcha", "max_age_seconds"):
        own = getattr(strong, name)
        assert getattr(both, name) == (getattr(weak, name) if own == getattr(silent, name) else own)
    assert both.budget == strong.budget.over(weak.budget)
    assert both.backoff == strong.backoff.over(weak.backoff)


@given(_POLICIES, _POLICIES, _POLICIES)
def test_it_does_not_matter_which_two_are_put_together_first(a: FetchPolicy, b: FetchPolicy, c: FetchPolicy) -> None:
    assert a.over(b).over(c) == a.over(b.over(c))
    assert a.over(FetchPolicy()) == a == FetchPolicy().over(a)


def test_false_and_zero_are_wishes() -> None:
    strong = FetchPolicy(escalate=False, max_age_seconds=0)
    assert strong.over(FetchPolicy(escalate=True, max_age_seconds=60)) == strong


def test_waits_grow_as_the_kind_says_up_to_the_cap() -> None:
    assert [Backoff().seconds(attempt) for attempt in (1, 2, 3, 4, 50)] == [5, 10, 20, 40, 300]
    linear = Backoff(kind="linear", first_seconds=3, cap_seconds=10)
    assert [linear.seconds(attempt) for attempt in (1, 2, 3, 4, 5)] == [3, 6, 9, 10, 10]
    assert Backoff(first_seconds=0).seconds(9) == 0


def test_the_factor_decides_how_fast_waits_grow() -> None:
    waits = {
        (kind, factor): [
            Backoff(kind=kind, factor=factor, first_seconds=1).seconds(attempt) for attempt in (1, 2, 3, 4)
        ]
        for kind in ("exponential", "linear")
        for factor in (1, 2, 3)
    }
    assert waits == {
        ("exponential", 1): [1, 1, 1, 1],
        ("exponential", 2): [1, 2, 4, 8],
        ("exponential", 3): [1, 3, 9, 27],
        ("linear", 1): [1, 1, 1, 1],
        ("linear", 2): [1, 2, 3, 4],
        ("linear", 3): [1, 3, 5, 7],
    }
    assert Backoff(factor=100, first_seconds=86_400, cap_seconds=60).seconds(10_000) == 60


def test_a_fetchs_own_time_wins_over_the_policys_and_the_operators_bounds_both() -> None:
    settings = HttpSettings(connect_seconds=10, total_seconds=30)
    hurried, patient = (
        FetchPolicy(connect_seconds=2, request_seconds=8),
        FetchPolicy(connect_seconds=90, request_seconds=90),
    )
    plain, own = (
        FetchRequest(url="https://shop.example/"),
        FetchRequest(url="https://shop.example/", timeout_seconds=20),
    )
    limits = [time_limit(request, policy, settings) for request in (plain, own) for policy in (hurried, patient)]
    assert limits == [8, 30, 20, 20]
    assert time_limit(plain, FetchPolicy(), settings) == 30
    assert [connect_limit(policy, settings) for policy in (hurried, patient, FetchPolicy())] == [2, 10, 10]


MANIFEST = policy_schema()["properties"]
TABLES = {"budget", "backoff", "retention"}


def bounds(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """What each field may be when it is given, as the manifest's schema writes it."""
    found = {}
    for name, schema in model.model_json_schema()["properties"].items():
        given = {**schema, **schema.get("anyOf", [{}])[0]}
        words = {"title", "description", "default", "anyOf", *(["type"] if "enum" in given else [])}
        found[name] = {word: value for word, value in given.items() if word not in words}
    return found


@pytest.mark.parametrize("model", [Policy, JobPolicyCall])
def test_calls_jobs_and_manifests_have_the_same_bounds(model: type[BaseModel]) -> None:
    own = {"retries", "timeout_seconds", *FetchPolicy.__struct_fields__} - {"isolation"}  # not of manifests' policy
    assert own == MANIFEST.keys() - {"priority"}
    assert own <= model.model_fields.keys()
    fields = bounds(model)
    assert {name: fields[name] for name in own - TABLES} == {name: MANIFEST[name] for name in own - TABLES}
    assert bounds(Budget) == MANIFEST["budget"]["properties"]
    assert bounds(BackoffCall) == MANIFEST["backoff"]["properties"]
    assert bounds(KeepDays) == MANIFEST["retention"]["properties"]
    assert MANIFEST["retries"] == {"type": "integer", "minimum": 0, "maximum": 20}


def test_what_is_stored_is_read_without_the_bounds_of_the_doors() -> None:
    stored = b'{"profile":"edge","proxy":"Home","city":"","max_age_seconds":-1,"budget":{"requests":0}}'
    policy = FetchPolicy(profile="edge", proxy="Home", max_age_seconds=-1, budget=BudgetLimits(requests=0))
    assert msgspec.json.decode(stored, type=FetchPolicy) == policy
