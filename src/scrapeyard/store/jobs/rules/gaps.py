"""Which items that scripts found a job takes, and how it says what it left out. The same on every database."""

from collections.abc import Sequence
from typing import Any, Final

from scrapeyard.model.job import MAX_GAPS, NewItem
from scrapeyard.store.jobs.rules.rows import Fields, to_policy

TOO_MANY: Final = "the limit of {} items was reached, and items that scripts found beyond it were not added"


def near_enough(job: Fields, source: dict[str, Any], found: Sequence[NewItem]) -> tuple[list[NewItem], int, list[str]]:
    """Those within the job's depth, each key once; how many items the job may have; and what was left out."""
    policy = to_policy(job)
    most, deepest = policy.max_items, policy.max_depth
    if source.get("kind") == "follow":
        most, deepest = min(most, source.get("limit", 10_000)), min(deepest, source.get("depth", 1))
    near: dict[str, NewItem] = {}
    for item in found:
        if (item.depth or 0) <= deepest:
            near.setdefault(item.key, item)
    far = any((item.depth or 0) > deepest for item in found)
    gaps = [f"items that scripts found at a depth of more than {deepest} were not added"] if far else []
    return list(near.values()), most, gaps


def with_gaps(source: dict[str, Any], gaps: Sequence[str]) -> dict[str, Any] | None:
    """The source that also tells of these; None if it does already, or tells enough."""
    before = source.get("gaps", [])
    new = [gap for gap in gaps if gap not in before]
    return {**source, "gaps": [*before, *new]} if new and len(before) < MAX_GAPS else None
