"""`scrapeyard` for shell scripts of tests: asks the process that has it loaded for a fork with our own streams.

Run as `python -IS warm_command.py SOCKET WORDS…`; loads as little as it can.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    """Ends as the command ends."""
    order = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as plug:
        plug.connect(sys.argv[1])
        socket.send_fds(plug, [json.dumps(order).encode() + b"\n"], [0, 1, 2])
        with plug.makefile() as told:
            pid = int(told.readline())
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda number, _: os.kill(pid, number))
            status = int(told.readline())
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
