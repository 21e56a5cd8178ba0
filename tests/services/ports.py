"""Ports for servers that must know theirs before they listen, or keep it while they are stopped.

The kernel gives ports from 32768 on to connections and to whoever binds to port 0, so such a port may be taken between
two starts. These lie below, and every process of a test run has a range of its own.
"""

import os
import random
import socket
from collections.abc import Iterator
from functools import cache
from itertools import count

_FIRST, _EACH, _PROCESSES = 12_000, 600, 16
ABOVE = 10_000
"""The port so much above is free as well: SeaweedFS takes it for gRPC."""


def free_port() -> int:
    """One that nobody listens on, and that no other process of this run is given."""
    return next(port for port in _numbers() if _is_free(port) and _is_free(port + ABOVE))


@cache
def _numbers() -> Iterator[int]:
    """Round and round, so that a port that was just used rests. Another test run begins elsewhere."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    share = 1 + int(worker) % (_PROCESSES - 1) if worker else 0
    begin = random.randrange(_EACH)
    return (_FIRST + share * _EACH + (begin + number) % _EACH for number in count())


def _is_free(port: int) -> bool:
    with socket.socket() as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            plug.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
