"""The audit: who changed what, and who was refused. Each row's hash covers the row before it."""

import getpass
import hashlib
import os
from collections.abc import AsyncIterable, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

NO_HASH: Final = ""
"""Stands before the first row."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change or refusal. Texts are cleaned and cut by `cleaned`; values hold no secrets."""

    at: float
    """Unix seconds."""
    client: str
    """Who; empty if unknown, `local:` and the system's user for commands on the server's machine."""
    role: str
    key_id: str
    address: str
    """Where the call came from; empty for commands on the server's machine."""
    action: str
    """The operation's id: `put_site`."""
    resource: str
    """The path of the call, or what a command changed."""
    status: int
    """HTTP status of the answer; 0 for a command."""
    code: str
    """Why it was refused; empty if it was done."""
    request_id: str
    count: int = 1
    """How many equal refusals it stands for."""
    before: Raw | None = None
    """As JSON; None if it is not known or too large."""
    after: Raw | None = None


def command_entry(at: float, action: str, resource: str, after: object) -> AuditEntry:
    """A change by a command, or by a start, on the server's machine: by the system's user, without an address. No
    client can have such a name."""
    return AuditEntry(
        at=at,
        client=cleaned(f"local:{_system_user()}"),
        role="",
        key_id="",
        address="",
        action=action,
        resource=resource,
        status=0,
        code="",
        request_id="",
        after=Raw(msgspec.json.encode(after)),
    )


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())


class AuditRow(Struct, frozen=True, kw_only=True):
    """An entry in its place in the chain."""

    number: int
    """From 1, without gaps."""
    entry: AuditEntry
    hash: str
    """SHA-256 of the hash before and of this row, in hex."""


def chain_hash(previous: str, number: int, entry: AuditEntry) -> str:
    """The hash of a row that follows a row with the hash `previous`."""
    values = [None if value is None else bytes(value) if isinstance(value, Raw) else value for value in astuple(entry)]
    content = msgspec.json.encode([previous, number, *values])
    return hashlib.sha256(content).hexdigest()


_TEXT: Final = 300


def cleaned(text: str) -> str:
    """A text from outside as it may be stored: printable ASCII, at most 300 characters."""
    ascii_text = text[:_TEXT].encode("ascii", "backslashreplace").decode("ascii")
    return "".join(letter if letter.isprintable() else "?" for letter in ascii_text)[:_TEXT]


class AuditFault(Struct, frozen=True, kw_only=True):
    """The first row at which the chain is broken."""

    number: int
    reason: str


class AuditCheck(Struct, frozen=True, kw_only=True):
    """What verifying the chain found."""

    rows: int
    first: int
    """Number of the first row that is kept; 0 if there is none."""
    last: int
    """Number of the last row that was written."""
    hash: str
    """Hash of the last row that was written."""
    fault: AuditFault | None = None


class AuditChain(Struct, frozen=True, kw_only=True):
    """Where the chain ends, and up to where retention has removed it."""

    last_number: int = 0
    last_hash: str = NO_HASH
    removed_number: int = 0
    removed_hash: str = NO_HASH

    def following(self, entries: Sequence[AuditEntry]) -> list[AuditRow]:
        """The rows that these entries become at its end."""
        rows, number, known = [], self.last_number, self.last_hash
        for entry in entries:
            number += 1
            known = chain_hash(known, number, entry)
            rows.append(AuditRow(number=number, entry=entry, hash=known))
        return rows

    async def verify(self, rows: AsyncIterable[AuditRow]) -> AuditCheck:
        """Compute the hashes of all rows that are kept, in order."""
        number, known, count = self.removed_number, self.removed_hash, 0
        fault = None
        async for row in rows:
            number += 1
            known = chain_hash(known, number, row.entry)
            if fault := _fault(number, known, row):
                break
            count += 1
        if fault is None and number != self.last_number:
            fault = AuditFault(number=number + 1, reason="the row is missing")
        elif fault is None and known != self.last_hash:
            fault = AuditFault(number=number, reason="its hash is not the one that the chain ends with")
        first = self.removed_number + 1 if self.last_number > self.removed_number else 0
        return AuditCheck(rows=count, first=first, last=self.last_number, hash=self.last_hash, fault=fault)


def _fault(number: int, known: str, row: AuditRow) -> AuditFault | None:
    if row.number != number:
        return AuditFault(number=number, reason="the row is missing")
    if row.hash != known:
        return AuditFault(number=number, reason="the row was changed after it was written")
    return None
