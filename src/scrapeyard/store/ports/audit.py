"""The audit as a table that only grows.

Every method raises StoreUnavailable when the database does not answer; nothing is then half done. Times are Unix
seconds (float), given by the caller.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Raw, Struct

from scrapeyard.model.audit import AuditCheck, AuditEntry, AuditRow


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Which rows to list; None for any."""

    client: str | None = None
    action: str | None = None
    resource: str | None = None
    """What the resource begins with."""
    refused: bool | None = None
    since: float | None = None
    until: float | None = None


class AuditPage(Struct, frozen=True, kw_only=True):
    """Some rows, newest first."""

    rows: tuple[AuditRow, ...]
    next_cursor: str | None


class AuditStore(Protocol):
    """One chain of rows, whatever number of processes write to it."""

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Add rows to the end of the chain, in order."""

    async def page(self, where: AuditFilter, cursor: str | None, limit: int) -> AuditPage:
        """Rows, newest first. Raises BadRequest for a cursor that is not ours."""

    async def verify(self) -> AuditCheck:
        """Read every row and compute its hash again. The check has a fault if a row was changed, added or removed."""

    async def hash_of(self, number: int) -> str | None:
        """The hash that a row has; None if there is no such row."""

    async def remove_before(self, at: float, most: int) -> int:
        """Remove the oldest rows if they were written before that time; at most `most`. The chain remembers the number
        and hash of the last one, so that the rest can still be verified. Returns how many were removed."""


def audit_columns(row: AuditRow) -> dict[str, Any]:
    """A row of the audit as columns."""
    values = {name: getattr(row.entry, name) for name in AuditEntry.__struct_fields__}
    for name in ("before", "after"):
        values[name] = None if values[name] is None else bytes(values[name])
    return {"number": row.number, "hash": row.hash, **values}


def to_audit_row(row: Mapping[Any, Any]) -> AuditRow:
    """A row of the audit from its columns."""
    values = {name: row[name] for name in AuditEntry.__struct_fields__}
    for name in ("before", "after"):
        values[name] = None if values[name] is None else Raw(bytes(values[name]))
    return AuditRow(number=row["number"], entry=AuditEntry(**values), hash=row["hash"])
