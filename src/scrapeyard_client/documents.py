"""What the server answers, as values. `document` has every property of the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

ENDED_RUN = frozenset({"succeeded", "failed", "cancelled"})
ENDED_ITEM = frozenset({"success", "error", "cancelled"})
ENDED_JOB = frozenset({"completed", "failed", "cancelled"})
Shown = TypeVar("Shown", "Run", "Item", "Export")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run. Of one that goes on, only `id` and `status` may be known."""

    id: str
    status: str
    scraper: str = ""
    version: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    exit_reason: str | None = None
    result: Any = None
    partial: bool = False
    error: Mapping[str, Any] | None = None
    attempt: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_ended(self) -> bool:
        """Whether it has succeeded, failed or been cancelled."""
        return self.status in ENDED_RUN

    @property
    def has_succeeded(self) -> bool:
        """Whether it ended well."""
        return self.status == "succeeded"


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item of a job."""

    id: str
    status: str
    number: int = 0
    input: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 0
    exit_reason: str | None = None
    http_status: int | None = None
    result: Any = None
    result_bytes: int = 0
    error: Mapping[str, Any] | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_ended(self) -> bool:
        """Whether it has succeeded, failed or been cancelled."""
        return self.status in ENDED_ITEM

    @property
    def has_succeeded(self) -> bool:
        """Whether it ended well."""
        return self.status == "success"


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file that is made of a job."""

    id: str
    job_id: str
    type: str
    format: str
    state: str
    progress: float = 0.0
    rows: int = 0
    bytes: int = 0
    sha256: str | None = None
    filename: str = ""
    error: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One live event. `id` is None for events that are not sent again to a client that reconnects."""

    name: str
    data: Any
    id: int | None = None


def made(kind: type[Shown], document: Mapping[str, Any]) -> Shown:
    """A value of its document. Properties that a newer server adds stay in `document`."""
    known = {each.name for each in fields(kind)}
    values = {name: _read(name, value) for name, value in document.items() if name in known}
    return kind(**values, document=document)


def _read(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name.endswith("_at") and isinstance(value, str) else value


def is_over(job: Mapping[str, Any]) -> bool:
    """Whether a job has ended and its files are written."""
    return job["status"] in ENDED_JOB and not job.get("files_pending", False)
