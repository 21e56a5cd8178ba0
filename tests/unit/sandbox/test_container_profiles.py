"""The sandbox under the seccomp profiles of containers: a call that they refuse costs its own wall at most."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leaks import PATIENCE

SETHOSTNAME, PIVOT_ROOT, UNSHARE = (170, 161), (155, 41), (272, 97)
"""Numbers on x86_64 and aarch64."""
_REFUSING = """
import os, sys
from scrapeyard import libc
from scrapeyard.sandbox.walls import seccomp
program = seccomp._Program(os.uname().machine)
program.answer({call}, seccomp._EPERM)
libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(program.end(seccomp._ALLOW))
os.execv(sys.executable, [sys.executable, {program!r}, "doctor", "--json"])
"""


def _doctor(folder: Path, call: tuple[int, int]) -> dict[str, dict[str, str]]:
    """The findings of `doctor` where this call is refused, by the name of the check."""
    code = _REFUSING.format(call=call, program=str(Path(sys.executable).with_name("scrapeyard")))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout, done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)}


def test_a_profile_without_sethostname_costs_no_wall(tmp_path: Path) -> None:
    found = _doctor(tmp_path, SETHOSTNAME)
    assert found["child"]["state"] != "fail", found["child"]
    assert found["wall namespaces"]["state"] == "ok"


@pytest.mark.parametrize(("call", "wall"), [(PIVOT_ROOT, "wall root"), (UNSHARE, "wall namespaces")])
def test_a_refused_call_is_told_and_scripts_run(call: tuple[int, int], wall: str, tmp_path: Path) -> None:
    found = _doctor(tmp_path, call)
    assert found["child"]["state"] != "fail", found["child"]
    assert found[wall]["state"] == "warn"
    assert found[wall]["remedy"]
