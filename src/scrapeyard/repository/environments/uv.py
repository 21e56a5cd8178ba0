"""Running uv: confined, with limits on time and size; its messages are stripped of paths, addresses and passwords."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from scrapeyard.extras import missing
from scrapeyard.repository.environments import confine
from scrapeyard.settings import EnvironmentSettings

MAX_WORDS = 2000
_URL = re.compile(r"(?<![a-zA-Z0-9+.-])[a-zA-Z0-9+.-]+://[^\s`'\"()<>]+")
"""Matches only at the start of a word: trying every letter of a 20,000-letter word would take seconds."""
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+@~-]+/)*[\w.+@~-]+/?")
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def cleaned(said: str, hidden: Iterable[str] = ()) -> str:
    """The message on one line, without colours, URLs, absolute paths and `hidden` words; at most 2,000 characters."""
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
"""Variables passed to uv beside `UV_*`; the rest of the worker's environment may hold secrets."""
_TOO_LARGE = "(os error 27)"
"""How uv tells of a file over its limit."""
_UNREACHED = re.compile(
    "Failed to fetch|Request failed after|error sending request|operation timed out|error reading a body|server error"
)
_CLIENT_ERROR = re.compile(r"HTTP status client error \((\d+)")
_PASSING = frozenset({"401", "403", "407", "408", "425", "429"})
_REFUSED = re.compile(r"returned a 403 Forbidden error|lack of valid authentication credentials")
_POLL_SECONDS = 0.05
_SAID = 64 * 1024


class BuildFailed(Exception):
    """The environment cannot be built; the message is for the scraper's author."""


class BuildUnavailable(BuildFailed):
    """The environment cannot be built now: the package index or the machine is at fault, not the scraper."""


class BuildStopped(Exception):
    """The build was stopped by a shutdown; it says nothing about the environment."""


class Deadline:
    """The time limit of a build, which a shutdown ends early."""

    def __init__(self, seconds: float, stopping: threading.Event) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._stopping = stopping

    def check(self) -> None:
        """Raises BuildStopped or BuildUnavailable."""
        if self._stopping.is_set():
            raise BuildStopped
        if time.monotonic() > self._end:
            raise BuildUnavailable(
                f"the requirements took longer than {self._seconds:g} s to resolve and install; "
                "require less, or raise environments.build_seconds"
            )

    def pause(self) -> None:
        """Wait a moment, or less on shutdown."""
        self._stopping.wait(_POLL_SECONDS)


class Uv:
    """The program, with the operator's index and certificates. Blocking; use it from a thread."""

    def __init__(self, settings: EnvironmentSettings, cache: Path) -> None:
        self._settings = settings
        self._folders = ",".join(_url(folder) for folder in settings.find_links)
        self._cache = cache

    def compile(self, requirements: Path, constraints: Path, lock: Path, deadline: Deadline) -> None:
        """Resolve to a lock with hashes. Raises BuildFailed with uv's words, or BuildStopped."""
        self._run(
            "pip compile --generate-hashes --no-header --no-annotate --no-emit-index-url",
            [str(requirements), "--output-file", str(lock), "--constraints", str(constraints), *self._sources()],
            lock.parent,
            deadline,
        )

    def install(self, lock: Path, target: Path, deadline: Deadline, watch: Callable[[], None]) -> None:
        """Install exactly what the lock says. `watch` is called now and then and may raise to end the install."""
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
        """Wheels only: building a package would run its code outside of the sandbox."""
        offline = ["--offline"] if self._settings.offline else []
        return ["--only-binary", ":all:", *offline, "--python", sys.executable]

    def _run(
        self,
        command: str,
        arguments: list[str],
        folder: Path,
        deadline: Deadline,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """Run uv with its output in a file in `folder`: a pipe would have to be drained all the time."""
        said = folder / "uv.log"
        with said.open("wb") as output:
            process = self._start([*command.split(), *arguments], output.fileno())
            try:
                status = _wait(process, deadline, watch)
            finally:
                _end(process)
        words = said.read_bytes()[-_SAID:].decode("utf-8", "replace")
        said.unlink()
        if status == -signal.SIGXFSZ or _TOO_LARGE in words:
            most = f"{self._settings.max_mb:g} MB"
            raise BuildFailed(f"a file of the requirements is larger than {most}; environments.max_mb")
        if status:
            told = cleaned(words, self._hidden()) or f"uv ended with status {status} and without a word"
            raise BuildUnavailable(told) if _is_away(words) else BuildFailed(told)

    def _start(self, arguments: list[str], output: int) -> subprocess.Popen[bytes]:
        program = find_uv()
        if not program:
            raise BuildUnavailable(missing("environments"))
        limits = [str(os.getpid()), str(int(self._settings.max_mb * _MB))]
        quiet = ["--quiet", "--color", "never", "--no-progress", "--no-python-downloads"]
        command = [sys.executable, "-I", "-S", confine.__file__, *limits, program, *arguments, *quiet]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=self._environment(os.environ),
            cwd="/",  # uv reads settings from parent folders; a project's settings must not apply
            start_new_session=True,
        )

    def _environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """The operator's variables, then ours. The index URL is here because every user can read command lines."""
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
        """Parts of the index URL that uv may print without a scheme."""
        parts = urlsplit(self._settings.index_url.get_secret_value())
        yield from (part for part in (parts.password, parts.username, parts.hostname) if part)


def find_uv() -> str:
    """The path of the extra's uv, or else of the one on PATH; empty if there is neither."""
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - an extra
    except ImportError:
        return shutil.which("uv") or ""
    return find_uv_bin()


def _is_away(words: str) -> bool:
    """Whether uv's message says that an index or a file server is away, too slow, or refuses our credentials."""
    if _REFUSED.search(words):
        return True
    status = _CLIENT_ERROR.search(words)
    return _UNREACHED.search(words) is not None and (status is None or status[1] in _PASSING)


def _url(folder: Path) -> str:
    """A file URL with commas escaped, because commas separate folders."""
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
    """Kill its whole process group, even if it has ended: its children must not outlive it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
