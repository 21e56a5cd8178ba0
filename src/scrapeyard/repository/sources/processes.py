"""Ending a process for certain.

With Python 3.11, asyncio reports the end of a process only after its pipes are closed. A pipe that nobody reads any
more, or that a process outside the group still holds, never closes; so we close our ends first.
"""

import asyncio
import contextlib
import os
import signal


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process that leads its own group, with all of that group, even if the caller is cancelled meanwhile.

    It is gone when this returns, and nothing can be read from it any more. May be called twice.
    """
    kill_group(process.pid)
    _close_pipes(process)
    ending = asyncio.ensure_future(process.wait())
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending
        raise


def kill_group(pid: int) -> None:
    """End a process that leads its own group, and all of that group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]
    for number in range(3):
        if (pipe := transport.get_pipe_transport(number)) is not None:
            pipe.close()
