"""Makes a parent ready to fork: it does once what each of its children would otherwise do for itself.

Python rewrites code as it runs, and remembers where it found attributes. A child that has to do so writes to memory
that it shares with its parent, so the kernel copies a page for each place: a hundred for a run that does nothing.
"""

import inspect
import socket
import sys
from typing import Any

from scrapeyard_sdk import wire
from scrapeyard_sdk.channel import Channel
from scrapeyard_sdk.child.run import serve_run
from scrapeyard_sdk.script import Script

_ROUNDS = 12
"""More than Python needs to rewrite code."""
_RUN = {
    "t": "run",
    "run_id": "",
    "attempt": 1,
    "config": {},
    "seconds": 1,
    "fetches": 1,
    "nan": "error",
    "log_bytes": 0,
    "output_bytes": 100,
}


def warm_up(script: Script) -> None:
    """Serve runs of a script as a child does, over a wire that ends here."""
    streams = sys.stdout, sys.stderr
    ours, theirs = socket.socketpair()
    plain = socket.SocketType(ours.family, ours.type, 0, ours.detach())  # the type that children are given
    try:
        for _ in range(_ROUNDS):
            theirs.sendall(wire.encode(_RUN, b"{}"))
            loop = serve_run(Channel(plain), script)
            theirs.recv(4096)
            if loop is not None:
                loop.close()
    finally:
        plain.close()
        theirs.close()
        sys.stdout, sys.stderr = streams


def _nothing(_ctx: Any) -> None:
    """A script that takes no input."""


def _nothing_of_input(_ctx: Any, **_given: Any) -> None:
    """A script that takes its input as arguments."""


async def _nothing_async(_ctx: Any, **_given: Any) -> None:
    """An async script."""


def _script(function: Any, kind: str) -> Script:
    signature = inspect.signature(function)
    takes_input = len(signature.parameters) > 1
    return Script(function=function, kind=kind, takes_input=takes_input, signature=signature, validate=None, folder="")


nothing = _script(_nothing, "sync"), _script(_nothing_of_input, "sync")
nothing_async = _script(_nothing_async, "async")
