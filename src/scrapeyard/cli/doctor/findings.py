"""What `doctor` finds: one line for each check, with what to do."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

State = Literal["ok", "warn", "fail"]


class Finding(Struct, frozen=True, kw_only=True):
    """One check. `remedy` is empty when there is nothing to do."""

    check: str
    state: State
    detail: str
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return asdict(self)


def ok(check: str, detail: str) -> Finding:
    """All is well."""
    return Finding(check=check, state="ok", detail=detail)


def warn(check: str, detail: str, remedy: str) -> Finding:
    """It works, but less well or less safely than it could."""
    return Finding(check=check, state="warn", detail=detail, remedy=remedy)


def fail(check: str, detail: str, remedy: str) -> Finding:
    """It does not work."""
    return Finding(check=check, state="fail", detail=detail, remedy=remedy)
