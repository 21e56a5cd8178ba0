"""`policy` of a call: how hard to try, and how its fetches are made."""

from typing import Any, Literal

from msgspec import Struct, convert
from pydantic import BaseModel, ConfigDict, Field, create_model

from scrapeyard.model import Backoff as BackoffPolicy
from scrapeyard.model import BudgetLimits, FetchPolicy
from scrapeyard.model.fetching import RETRIES, TIMEOUT_SECONDS, RetentionPolicy, Rule, rules_of


def field_of(rule: Rule, default: Any = None, *, description: str = "") -> Any:
    """A field with the limits of the rule, and its description unless another is given."""
    told = description or rule.description
    return Field(default, description=told, ge=rule.ge, gt=rule.gt, le=rule.le, pattern=rule.pattern)


def _model_of(struct: type[Struct]) -> Any:
    """A model with the ruled fields of a struct, each None where the call leaves it open."""
    fields: dict[str, Any] = {name: (rule.kind | None, field_of(rule)) for name, rule in rules_of(struct).items()}
    strict = ConfigDict(extra="forbid", frozen=True, strict=True)
    return create_model(struct.__name__, __config__=strict, **fields)


class Budget(_model_of(BudgetLimits)):  # type: ignore[misc] # its fields are the struct's
    """What the run may use up; then its fetches end as `fetch_budget`. The smaller of this and the operator's holds."""


class Backoff(_model_of(BackoffPolicy)):  # type: ignore[misc] # its fields are the struct's
    """How long to wait before another attempt, unless the site says."""


class KeepDays(_model_of(RetentionPolicy)):  # type: ignore[misc] # its fields are the struct's
    """How long what it leaves is kept, in days after its end; null: as the operator set it."""


class _Effort(BaseModel):
    """The last base of `Policy`: pydantic lists its fields first."""

    timeout_seconds: float | None = field_of(TIMEOUT_SECONDS)
    retries: int = field_of(RETRIES, 1)


class Policy(_model_of(FetchPolicy), _Effort):  # type: ignore[misc] # its fields are the struct's
    """How hard to try, and how. What is not given is as the scraper's manifest says, then as the operator set it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"retries": 2, "proxy": "home", "country": "us", "budget": {"requests": 50}}]}
    )

    budget: Budget = Budget()
    backoff: Backoff = Backoff()
    retention: KeepDays = Field(KeepDays(), description="How long what it leaves is kept, in days after its end.")
    isolation: Literal["run"] | None = Field(
        None, description="`run`: a child of its own, even if the scraper's manifest says `warm`."
    )


_FETCHING = frozenset(FetchPolicy.__struct_fields__)
_NOTHING = FetchPolicy()


def fetching_of(policy: Policy, names: frozenset[str] = _FETCHING) -> FetchPolicy:
    """Only the fetch options that the call sets, of these names."""
    if policy.model_fields_set.isdisjoint(names):
        return _NOTHING
    given: dict[str, Any] = policy.model_dump(include=set(names), exclude_none=True)
    return convert(given, FetchPolicy)
