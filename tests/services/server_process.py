"""A server of its own for tests: one process on a free port, with a folder that goes with it."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.leaks import PATIENCE
from tests.services.ports import free_port


class ServerProcess:
    """`stop` and `start` keep the port and the folder. A server says how it is started and when it answers."""

    name = ""

    def __init__(self) -> None:
        self.port = free_port()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the running server."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def start(self) -> None:
        """Returns when the server answers."""
        if self._process is not None:
            return
        folder = self._folder = self._folder or Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        with (folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                self._words(folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment(folder),
                cwd=folder,
            )
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends at once, as after a crash, unless told otherwise. May be called twice."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def _words(self, folder: Path) -> list[str]:
        """The command that starts it."""
        raise NotImplementedError

    def _environment(self, folder: Path) -> Mapping[str, str] | None:
        """None: that of the tests."""
        del folder
        return None

    def _answers(self) -> bool:
        """Whether it is ready. Raises OSError while it is not."""
        raise NotImplementedError

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            try:
                if self._answers():
                    return
            except OSError:
                time.sleep(0.005)
        self.stop()
        raise RuntimeError(f"{self.name} did not start on port {self.port}")
