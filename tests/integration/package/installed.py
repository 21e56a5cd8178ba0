"""The wheel in an environment of its own, as the tests of this folder use it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.leaks import PATIENCE
from tests.programs import ROOT

UV_CACHE = os.environ.get("UV_CACHE_DIR") or str(Path.home() / ".cache" / "uv")
_OURS = ("SCRAPEYARD_", "REDIS_URL", "DATABASE_URL", "PYTHON", "VIRTUAL_ENV", "PATH", "TMPDIR")


class Installed:
    """An environment with the wheel, some of its extras, and nothing else. Commands compile what they load."""

    def __init__(self, folder: Path, extras: str = "") -> None:
        self.folder = folder
        uv("build", "--wheel", "--out-dir", str(folder / "dist"), str(ROOT))
        (wheel,) = (folder / "dist").glob("*.whl")
        uv("venv", "--python", sys.executable, str(folder / "env"))
        self.python = folder / "env" / "bin" / "python"
        lock = ROOT / "requirements" / "run.txt"
        uv("pip", "install", "--python", str(self.python), "-c", str(lock), f"{wheel}{extras}")
        self.megabytes = _megabytes(folder / "env")
        """Before anything is compiled."""

    def remove(self) -> None:
        """A small disk has no room for it beside those of other modules."""
        shutil.rmtree(self.folder)

    def environment(self, **more: str) -> dict[str, str]:
        """No setting of ours, and no program but those of the system."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        return {**kept, "PATH": f"{self.python.parent}:/usr/bin:/bin", **more}

    def cli(self, folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [str(self.python.with_name("scrapeyard")), *words]
        given = self.environment(TMPDIR=str(folder), **more)
        return subprocess.run(
            command, cwd=folder, env=given, capture_output=True, text=True, timeout=PATIENCE, check=False
        )


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 1e6


def uv(*words: str) -> None:
    given = {**os.environ, "UV_CACHE_DIR": UV_CACHE, "UV_SYSTEM_CERTS": "true"}
    command = [sys.executable, "-m", "uv", *words]
    ended = subprocess.run(command, env=given, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr
