"""`ctx.state` of runs without a server: in memory, or in a file for each scraper in the user's state folder."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import typer
from msgspec import Raw, Struct

from scrapeyard.cli.common.inputs import whole_file
from scrapeyard.cli.common.server_address import user_folder
from scrapeyard.errors import BadRequest
from scrapeyard.store.ports.operations import MAX_STATE_KEYS, StateCheck, StateEntry

_MAX_BYTES = 128 * 1024**2


class _Kept(Struct, frozen=True, kw_only=True):
    value: Raw
    changed_at: float


_decode = msgspec.json.Decoder(dict[str, _Kept]).decode


def user_state() -> Path:
    """Where the states of scrapers are kept between commands; may not exist: `$XDG_STATE_HOME/scrapeyard/scrapers`."""
    return user_folder("XDG_STATE_HOME", ".local/state") / "scrapers"


class LocalState:
    """A StateStore. Without a folder it is forgotten with the process. Commands at once share a folder: each change
    reads the file anew, under a lock. A folder that cannot be used is told once, and the state stays in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._memory: dict[str, dict[str, _Kept]] = {}

    async def read(self, scraper_id: str, key: str) -> bytes | None:
        """The value; None if there is none. Raises BadRequest if the file is damaged."""
        with self._opened(scraper_id) as values:
            return bytes(values[key].value) if key in values else None

    async def change(
        self, scraper_id: str, key: str, value: bytes | None, now: float, *, only_if: StateCheck | None = None
    ) -> bool:
        """Write or remove a value, if `only_if` agrees. False if nothing was changed. Raises BadRequest."""
        with self._opened(scraper_id) as values:
            present = bytes(values[key].value) if key in values else None
            if (only_if is not None and not only_if(present)) or (value is None and present is None):
                return False
            if value is None:
                del values[key]
                return True
            if present is None and len(values) >= MAX_STATE_KEYS:
                raise BadRequest(f"the state of {scraper_id} has {MAX_STATE_KEYS} keys already; delete some")
            values[key] = _Kept(value=Raw(value), changed_at=now)
            return True

    async def entries(self, scraper_id: str) -> tuple[StateEntry, ...]:
        """Every key of a scraper, in order."""
        with self._opened(scraper_id) as values:
            return tuple(
                StateEntry(key=key, bytes=len(bytes(kept.value)), changed_at=kept.changed_at)
                for key, kept in sorted(values.items())
            )

    async def clear(self, scraper_id: str) -> int:
        """Remove the whole state of a scraper. Returns how many keys it had."""
        with self._opened(scraper_id) as values:
            count = len(values)
            values.clear()
            return count

    @contextlib.contextmanager
    def _opened(self, scraper_id: str) -> Iterator[dict[str, _Kept]]:
        """The values of a scraper, which may be changed; what was changed is written at the end."""
        with contextlib.ExitStack() as stack:
            file = self._locked(scraper_id, stack)
            if file is None:
                yield self._memory.setdefault(scraper_id, {})
                return
            values = _read(file)
            before = dict(values)
            yield values
            if values != before:
                with whole_file(file) as stream:
                    stream.write(msgspec.json.encode(values) + b"\n")

    def _locked(self, scraper_id: str, stack: contextlib.ExitStack) -> Path | None:
        """The scraper's file, which no other process changes until the stack is closed; None if it is not kept."""
        if self._folder is None:
            return None
        file = self._folder / f"{quote(scraper_id, safe='')}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = stack.enter_context(file.with_suffix(".lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            typer.echo(f"scrapeyard: the state is not kept: {self._folder}: {error.strerror}", err=True)
            self._folder = None
            return None
        return file


def _read(file: Path) -> dict[str, _Kept]:
    try:
        with file.open("rb") as stream:
            return _decode(stream.read(_MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(f"{file}: cannot be read: {error}; remove it to begin without a state") from None
