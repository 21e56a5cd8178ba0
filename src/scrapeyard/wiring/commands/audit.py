"""Verifies the audit in the database itself, for a command on the server's machine."""

from msgspec.structs import replace

from scrapeyard.model.audit import AuditCheck, AuditFault
from scrapeyard.settings import load
from scrapeyard.wiring.backends import make_store


async def check_audit(expected: tuple[int, str] | None = None) -> AuditCheck:
    """Verify the audit in the database of the settings. `expected` is a number and the hash that this row had."""
    store = make_store(load())
    await store.start()
    try:
        check = await store.audit.verify()
        if expected is None or check.fault is not None:
            return check
        number, known = expected
        found = await store.audit.hash_of(number)
        if number < check.first or found == known:
            return check
        reason = "the row is missing" if found is None else "the row has another hash than it had"
        return replace(check, fault=AuditFault(number=number, reason=reason))
    finally:
        await store.stop()
