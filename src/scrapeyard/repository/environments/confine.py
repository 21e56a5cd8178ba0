"""Starts a build so that it cannot outlive us or write a file that is too large. A program, standard library only.

    python -I -S confine.py PARENT_PID MAX_FILE_BYTES PROGRAM ARGUMENT…

Only a process itself can set its parent-death signal and its limits.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Apply the limits, then exec the program."""
    parent, file_bytes, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        os._exit(1)
    for kind, limit in ((resource.RLIMIT_FSIZE, int(file_bytes)), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (most, most))
    os.umask(0o022)
    os.execv(command[0], command)  # noqa: S606 - the program is uv, by its whole path


if __name__ == "__main__":
    main()
