"""The product's own time-outs, stretched: on a busy machine a service that is slow must not be taken to be away.

A test whose subject is such a time-out sets its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.leaks import PATIENCE

TIMEOUTS: dict[str, object] = {
    "scrapeyard.blobs.objects._PATIENCE_SECONDS": PATIENCE,
    "scrapeyard.dispatch.webhooks.webhooks.ROUND_SECONDS": PATIENCE,
    "scrapeyard.engines.cache.redis.ANSWER_SECONDS": PATIENCE,
    "scrapeyard.engines.escalation.redis.ANSWER_SECONDS": PATIENCE,
    "scrapeyard.redis.connection.CONNECT_SECONDS": PATIENCE,
    "scrapeyard.sandbox.handles.parent._FORK_PATIENCE": PATIENCE,
    "scrapeyard.sandbox.handles.session._EXIT_PATIENCE": PATIENCE,
    "scrapeyard.sandbox.handles.zygote._HELLO_PATIENCE": PATIENCE,
    "scrapeyard.store.database.postgres.ANSWER_SECONDS": PATIENCE,
    "scrapeyard.store.database.postgres.CONNECT_SECONDS": PATIENCE,
    "scrapeyard.store.database.sqlite.BUSY_SECONDS": PATIENCE,
    "scrapeyard.store.dynamo.rows.job_rows._PATIENCE": PATIENCE,
    "scrapeyard.store.dynamo.table.calls.ANSWER_SECONDS": PATIENCE,
    "scrapeyard.store.dynamo.table.calls.CONNECT_SECONDS": PATIENCE,
}


@contextmanager
def unhurried(part: str = "scrapeyard.") -> Iterator[None]:
    """They hold within this block, for what is made in it; those of one package alone spare a process the others."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TIMEOUTS.items():
            if name.startswith(part):
                patch.setattr(name, value)
        yield
