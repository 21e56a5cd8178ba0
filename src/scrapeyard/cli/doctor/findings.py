"""What `doctor` finds: one line for each check, with what to do."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

State = Literal["ok", "warn", "fail"]


class CheckResult(Struct, frozen=True, kw_only=True):
    """One check. `remedy` is empty when there is nothing to do."""

    check: str
    state: State
    detail: str
    remedy: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON shows it."""
        return asdict(self)


def ok(check: str, detail: str) -> CheckResult:
    """All is well."""
    return CheckResult(check=check, state="ok", detail=detail)


def warn(check: str, detail: str, remedy: str) -> CheckResult:
    """It works, but less well or less safely than it could."""
    return CheckResult(check=check, state="warn", detail=detail, remedy=remedy)


def fail(check: str, detail: str, remedy: str) -> CheckResult:
    """It does not work."""
    return CheckResult(check=check, state="fail", detail=detail, remedy=remedy)
