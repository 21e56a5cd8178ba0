"""The process that begins the files of a job while it runs: `python -m scrapeyard.wiring.files_process`. Its parent is
`results/early_files.py`. It has a store and blobs of its own and reads them at a low priority."""

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic import SecretStr

from scrapeyard.framed_process import PipeClosed, prepare_child
from scrapeyard.model.job import FINAL_JOB
from scrapeyard.results.early_files import BEGIN, FINISH, FRAMING, VOID, EarlyFiles, FilesPlan
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import Finisher
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import configure
from scrapeyard.wiring.backends import make_blobs, make_masking, make_store
from scrapeyard.wiring.starting import build_type_info

if TYPE_CHECKING:
    from scrapeyard.wiring.engine import Up

_LOOK_SECONDS: Final = 0.25
_NICE: Final = 5
"""Waiting calls and the items themselves go first."""


def main() -> None:
    """Follow one job until it has ended, or until the parent has."""
    prepare_child()
    os.nice(_NICE)
    with contextlib.suppress(PipeClosed):
        letter, body = FRAMING.read(sys.stdin.buffer)
        if letter == BEGIN:
            asyncio.run(_serve(msgspec.msgpack.decode(body, type=FilesPlan)))
    os._exit(0)  # a thread of obstore that still gives an answer back would abort the interpreter at its end


async def start_early_files(settings: Settings, store: Store, finisher: Finisher, up: "Up") -> EarlyFiles:
    """The parent's side."""
    early = EarlyFiles(store, finisher, settings_bytes(settings), settings.jobs.early_files_from_here, time.time)
    await up(early.start, early.stop)
    return early


def settings_bytes(settings: Settings) -> bytes:
    """The settings with their secrets, for this process alone: they travel through a pipe, never by a file or the
    environment."""
    return json.dumps(settings.model_dump(), default=_plain).encode()


def _plain(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


async def _serve(plan: FilesPlan) -> None:
    settings = Settings.model_validate_json(plan.settings)
    configure(settings.log)
    build_type_info()
    store = make_store(settings)
    try:
        await store.start()
        await _follow(settings, store, plan.job_id)
    except Exception as error:  # noqa: BLE001 - the parent writes the files itself, and logs why it had to
        _send(VOID, repr(error).encode())
    finally:
        await store.stop()


async def _follow(settings: Settings, store: Store, job_id: str) -> None:
    blobs = make_blobs(settings, store.sealer)
    exporter = Exporter(store, blobs, time.time, make_masking(settings, store.sealer))
    finisher = Finisher(store, blobs, exporter, time.time)
    job = await store.jobs.get(job_id)
    if job is None:
        return
    begun = finisher.begin(job)
    told = asyncio.create_task(asyncio.to_thread(FRAMING.read, sys.stdin.buffer))
    while not told.done():
        if not await begun.advance():
            job = await store.jobs.get(job_id)
            if job is None or job.status in FINAL_JOB:
                return
            await asyncio.wait([told], timeout=_LOOK_SECONDS)
    await told
    job = await store.jobs.get(job_id)
    if job is None or not begun.holds_for(job):
        _send(VOID, b"its items changed meanwhile, or it was cancelled")
        return
    await finisher.finish(job, begun)
    _send(FINISH)


def _send(letter: bytes, body: bytes = b"") -> None:
    sys.stdout.buffer.write(FRAMING.pack(letter, body))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
