"""The audit: who changed what, and who was refused. Each row's hash covers the row before it."""

import getpass
import hashlib
import os
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
