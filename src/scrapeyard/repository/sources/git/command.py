"""Running git: without a shell or the user's configuration, with limits on time, output, memory and disk.

Needs git 2.30 or newer.
"""

import asyncio
import contextlib
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from scrapeyard.child_process import DEVNULL, PIPE, ChildProcess, start_child
from scrapeyard.errors import SourceUnavailable
from scrapeyard.repository.sources.git.access import Access

MAX_ERRORS = 16 * 1024
MAX_MEMORY = 4 << 30
"""Address space of one git process; packs are mapped into it."""
SLACK = 1 << 20
"""A file may exceed the folder's limit by this much, so that the folder's own check reports why git ended."""
WATCH_SECONDS = 0.2

_PASSED = (
    "PATH",
    "TMPDIR",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "SSH_AUTH_SOCK",
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
_CONFIG = (
    ("advice.detachedHead", "false"),
    ("core.askPass", ""),
    ("core.bigFileThreshold", "16m"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.packedGitLimit", "256m"),
    ("core.packedGitWindowSize", "32m"),
    ("credential.helper", ""),
    ("fetch.fsckObjects", "true"),
    ("fetch.fsck.badTimezone", "ignore"),
    ("fetch.fsck.missingSpaceBeforeDate", "ignore"),
    ("fetch.fsck.zeroPaddedFilemode", "ignore"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.unpackLimit", "1"),
    ("gc.auto", "0"),
    ("http.followRedirects", "initial"),
    ("http.lowSpeedLimit", "100"),
    ("http.lowSpeedTime", "20"),
    ("maintenance.auto", "false"),
    ("pack.threads", "2"),
    ("protocol.version", "2"),
    ("submodule.recurse", "false"),
    ("transfer.fsckObjects", "true"),
)
"""Old commits with invalid dates and modes are common and harmless; any other fsck error is refused."""

_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")


class GitFailed(SourceUnavailable):
    """git failed. The message ends with git's last output, without secrets."""


class GitTooLarge(GitFailed):
    """The local repository outgrew its limit while it was written."""


class Bounds(Struct, frozen=True, kw_only=True):
    """Resource limits of one command. To limit its time, cancel the call."""

    output: int = 1 << 20
    """Bytes of standard output."""
    disk: int = 0
    """Maximum bytes of the folder that it writes; 0 for no check."""
    kept: tuple[int, ...] = ()
    """Descriptors that it inherits; a lock lasts until the last process that holds it ends."""


class Git:
    """Runs git for one remote repository. Every command is killed with all it started when its caller is cancelled."""

    def __init__(self, access: Access, home: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._access = access
        self._environ = _environment(access, home, environ)

    async def run(
        self, arguments: Sequence[str], folder: Path, *, text: bytes = b"", bounds: Bounds | None = None
    ) -> bytes:
        """Standard output of `git arguments…` in `folder`, with `text` as its input. Raises GitFailed."""
        bounds = bounds or Bounds()
        process = await self._start(arguments, folder, bounds.kept, has_input=bool(text))
        try:
            _limit(process.pid, bounds.disk)
            async with asyncio.TaskGroup() as tasks:
                output = tasks.create_task(_read(process.stdout, bounds.output))
                errors = tasks.create_task(_tail(process.stderr))
                tasks.create_task(_feed(process.stdin, text))
                watch = tasks.create_task(_watch(folder, bounds.disk))
                await asyncio.wait((output, errors))
                watch.cancel()
            status = await process.wait()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            await process.end()
        if status != 0:
            _check_size(folder, bounds.disk)
            raise GitFailed(self._explain(errors.result(), status))
        return output.result()

    def open(self, arguments: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
        """Start a command that answers line by line, for a thread. The caller kills it. Raises GitFailed."""
        try:
            process = subprocess.Popen(
                (self._program(), *arguments),
                cwd=folder,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise GitFailed(f"git could not be started: {error.strerror}") from None
        _limit(process.pid, 0)
        return process

    async def _start(
        self, arguments: Sequence[str], folder: Path, kept: tuple[int, ...], *, has_input: bool
    ) -> ChildProcess:
        try:
            return await start_child(
                (self._program(), *arguments),
                cwd=folder,
                env=self._environ,
                stdin=PIPE if has_input else DEVNULL,
                stderr=PIPE,
                start_new_session=True,
                pass_fds=kept,
            )
        except OSError as error:
            raise GitFailed(f"git could not be started: {error.strerror}") from None

    def _program(self) -> str:
        found = shutil.which("git", path=self._environ.get("PATH"))
        if found is None:
            raise GitFailed("there is no git on this machine; install git, or take another type of repository")
        return found

    def _explain(self, errors: bytes, status: int) -> str:
        text = errors.decode(errors="replace")
        for secret in self._access.secrets:
            text = text.replace(secret, "***")
        lines = [_printable(_LOGIN.sub("", line)) for line in text.splitlines()]
        said = "; ".join([line for line in lines if line][-4:])[-600:]
        return f"git: {said or f'ended with status {status}'}"


def _printable(line: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in line).strip()


def _environment(access: Access, home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    passed = {name: environ[name] for name in _PASSED if name in environ}
    if "SSL_CERT_FILE" in environ:
        passed.setdefault("GIT_SSL_CAINFO", environ["SSL_CERT_FILE"])
    config = (*_CONFIG, *access.config)
    given = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(config)}
    given |= {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(config)}
    return {
        **passed,
        **given,
        **access.environ,
        "GIT_CONFIG_COUNT": str(len(config)),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": access.protocols,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CEILING_DIRECTORIES": str(home),
        "HOME": str(home),
        "LC_ALL": "C",
    }


def _limit(pid: int, disk: int) -> None:
    """Limit file size and memory, because a server may lie about sizes. Where the system cannot, only the check of the
    folder remains."""
    if not hasattr(resource, "prlimit"):
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        if disk:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (disk + SLACK, disk + SLACK))


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    assert stream is not None  # noqa: S101 - it was asked for
    found = bytearray()
    while chunk := await stream.read(1 << 16):
        found += chunk
        if len(found) > most:
            raise GitFailed(f"git answered with more than {most >> 10} KB")
    return bytes(found)


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None  # noqa: S101 - it was asked for
    found = b""
    while chunk := await stream.read(1 << 16):
        found = (found + chunk)[-MAX_ERRORS:]
    return found


async def _feed(stream: asyncio.StreamWriter | None, text: bytes) -> None:
    """Write the input. Ignores a command that ends before reading all of it: its exit status decides."""
    if stream is None or stream.is_closing():
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(text)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _watch(folder: Path, most: int) -> None:
    while most:
        await asyncio.to_thread(_check_size, folder, most)
        await asyncio.sleep(WATCH_SECONDS)


def _check_size(folder: Path, most: int) -> None:
    if most and folder_bytes(folder) > most:
        raise GitTooLarge(f"the repository is larger than {most >> 20} MB; keep scrapers in one of their own")


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below; files that vanish meanwhile are not counted."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(where) / name).lstat().st_size
    return total
