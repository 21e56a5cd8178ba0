"""What a look at a scraper found: one line for each point, with what to do about it."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

State = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True, kw_only=True):
    """One point. `remedy` is empty when there is nothing to do."""

    point: str
    state: State
    detail: str
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return asdict(self)


def ok(point: str, detail: str) -> Finding:
    """As it should be."""
    return Finding(point=point, state="ok", detail=detail)


def warn(point: str, detail: str, remedy: str) -> Finding:
    """It works, but its users would be better off otherwise."""
    return Finding(point=point, state="warn", detail=detail, remedy=remedy)


def fail(point: str, detail: str, remedy: str = "") -> Finding:
    """It must be mended."""
    return Finding(point=point, state="fail", detail=detail, remedy=remedy)


def is_good(findings: Iterable[Finding]) -> bool:
    """Whether nothing must be mended."""
    return all(finding.state != "fail" for finding in findings)
