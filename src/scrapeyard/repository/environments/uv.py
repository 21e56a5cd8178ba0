"""Running uv: confined, timed, measured; its words are cleaned of paths, addresses and passwords."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from uv import find_uv_bin

from scrapeyard.repository.environments import confine
from scrapeyard.settings import EnvironmentSettings

MAX_WORDS = 2000
_URL = re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z0-9+.-]+://[^\s`'\"()<>]+")
"""Tried where a word begins, not at each letter of it: a word of 20,000 letters would take seconds."""
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+@~-]+/)*[\w.+@~-]+/?")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def cleaned(said: str, hidden: Iterable[str] = ()) -> str:
    """The same in one line without colours, URLs, absolute paths and the `hidden` words; at most 2,000 characters."""
    text = _CONTROL.sub("", said)
    text = _PATH.sub("(path)", _URL.sub("(address)", text))
    for word in hidden:
        if word:
            text = text.replace(word, "(hidden)")
    line = " ".join(text.split()).removeprefix("error: ")
    return line.replace(" cause: ", ": ")[:MAX_WORDS]


_MB = 1024 * 1024
_PASSED = frozenset(
    {"PATH", "HOME", "LANG", "NETRC", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
)
"""Beside uv's own; nothing else of the worker's environment, which may hold secrets."""
_POLL_SECONDS = 0.05
_SAID = 64 * 1024


class BuildFailed(Exception):
    """The environment cannot be built; the words are for the scraper's author."""


class BuildStopped(Exception):
    """We are told to stop; nothing is known about the environment."""


class Deadline:
    """When a build must be done, or earlier: when everything stops."""

    def __init__(self, seconds: float, stopping: threading.Event) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._stopping = stopping

    def check(self) -> None:
        """Raises BuildStopped or BuildFailed."""
        if self._stopping.is_set():
            raise BuildStopped
        if time.monotonic() > self._end:
            raise BuildFailed(
                f"the requirements took longer than {self._seconds:g} s to resolve and install; "
                "require less, or raise environments.build_seconds"
            )

    def pause(self) -> None:
        """A moment, or less when everything stops."""
        self._stopping.wait(_POLL_SECONDS)


class Uv:
    """The program, with the operator's index and certificates. Blocking; use it from a thread."""

    def __init__(self, settings: EnvironmentSettings, cache: Path) -> None:
        self._settings = settings
        self._folders = ",".join(_url(folder) for folder in settings.find_links)
        self._cache = cache
        self._program = find_uv_bin()

    def compile(self, requirements: Path, constraints: Path, lock: Path, deadline: Deadline) -> None:
        """Resolve to a lock with hashes. Raises BuildFailed with uv's words, or BuildStopped."""
        self._run(
            "pip compile --generate-hashes --no-header --no-annotate --no-emit-index-url",
            [str(requirements), "--output-file", str(lock), "--constraints", str(constraints), *self._sources()],
            lock.parent,
            deadline,
        )

    def install(self, lock: Path, target: Path, deadline: Deadline, watch: Callable[[], None]) -> None:
        """Install exactly what the lock says. `watch` is asked now and then and may raise to end it."""
        self._run(
            "pip install --no-deps --require-hashes --link-mode copy --compile-bytecode",
            ["--requirements", str(lock), "--target", str(target), *self._sources()],
            target.parent,
            deadline,
            watch,
        )

    def clean(self, folder: Path, deadline: Deadline) -> None:
        """Empty uv's own cache, when no other uv uses it."""
        self._run("cache clean", [], folder, deadline)

    def _sources(self) -> list[str]:
        settings = self._settings
        wheels = [] if settings.source_builds else ["--only-binary", ":all:"]
        return [*wheels, *(["--offline"] if settings.offline else []), "--python", sys.executable]

    def _run(
        self,
        command: str,
        arguments: list[str],
        folder: Path,
        deadline: Deadline,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """With its words in a file of `folder`: a pipe would have to be emptied all the time."""
        said = folder / "uv.log"
        with said.open("wb") as output:
            process = self._start([*command.split(), *arguments], output.fileno())
            try:
                status = _wait(process, deadline, watch)
            finally:
                _end(process)
        words = said.read_bytes()[-_SAID:].decode("utf-8", "replace")
        said.unlink()
        if status == -signal.SIGXFSZ:
            raise BuildFailed(f"a file of the requirements is larger than {self._settings.max_mb:g} MB")
        if status:
            raise BuildFailed(cleaned(words, self._hidden()) or f"uv ended with status {status} and without a word")

    def _start(self, arguments: list[str], output: int) -> subprocess.Popen[bytes]:
        limits = [str(os.getpid()), str(int(self._settings.max_mb * _MB))]
        quiet = ["--quiet", "--color", "never", "--no-progress", "--no-python-downloads"]
        command = [sys.executable, "-I", "-S", confine.__file__, *limits, self._program, *arguments, *quiet]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=self._environment(os.environ),
            cwd="/",  # uv looks for settings in the folders above: none of a project's may count
            start_new_session=True,
        )

    def _environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """The operator's choices, then ours. The index travels here: command lines can be read by everyone."""
        passed = {name: value for name, value in ours.items() if name in _PASSED or name.startswith("UV_")}
        index = self._settings.index_url.get_secret_value()
        return {
            **passed,
            **({"UV_DEFAULT_INDEX": index} if index else {}),
            **({"UV_FIND_LINKS": self._folders} if self._folders else {}),
            "UV_CACHE_DIR": str(self._cache),
            "UV_SYSTEM_CERTS": "true",
            "UV_NATIVE_TLS": "true",
        }

    def _hidden(self) -> Iterable[str]:
        """What uv may say without a scheme before it."""
        parts = urlsplit(self._settings.index_url.get_secret_value())
        yield from (part for part in (parts.password, parts.username, parts.hostname) if part)


def _url(folder: Path) -> str:
    """Without commas, which stand between folders."""
    return folder.absolute().as_uri().replace(",", "%2C")


def _wait(process: subprocess.Popen[bytes], deadline: Deadline, watch: Callable[[], None] | None) -> int:
    while True:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            deadline.check()
            if watch is not None:
                watch()


def _end(process: subprocess.Popen[bytes]) -> None:
    """All of its group, whether it has ended or not: what it started must not outlive it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
