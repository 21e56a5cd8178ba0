"""What a parent does so that its children need to do less."""

import ctypes
import os
import socket
import sys
from pathlib import Path

import pytest

from scrapeyard import libc
from scrapeyard.sandbox.inside.parent import _ranges
from scrapeyard.sandbox.walls import landlock
from scrapeyard_sdk.child import run
from scrapeyard_sdk.child.warming import nothing, nothing_async, warm_up
from scrapeyard_sdk.script import Script

getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p


def test_a_variable_that_often_changes_is_the_same_for_python_and_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRAPEYARD_TEST_FOLDER", "before")
    variable = libc.EnvironmentVariable("SCRAPEYARD_TEST_FOLDER", 5)
    for value in ("12345", "", "a"):
        variable.set(value.encode())
        assert os.environ["SCRAPEYARD_TEST_FOLDER"] == value
        assert getenv(b"SCRAPEYARD_TEST_FOLDER") == value.encode()
    with pytest.raises(ValueError, match="too long"):
        variable.set(b"123456")
    os.environ["SCRAPEYARD_TEST_FOLDER"] = "by the script"
    assert getenv(b"SCRAPEYARD_TEST_FOLDER") == b"by the script"


def test_calls_of_the_c_library_say_which_failed() -> None:
    with pytest.raises(OSError, match="prctl: Invalid argument"):
        libc.bare_prctl(-1, 0, 0, 0, 0)


@pytest.mark.parametrize("script", [*nothing, nothing_async], ids=["no input", "input", "async"])
def test_warming_up_leaves_nothing(script: Script) -> None:
    before = sys.stdout, sys.stderr, os.listdir("/proc/self/fd")
    warm_up(script)
    assert (sys.stdout, sys.stderr, os.listdir("/proc/self/fd")) == before


def test_a_script_that_breaks_the_warming_up_leaves_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("patched")

    monkeypatch.setattr(run, "perform", broken)
    before = sys.stdout, sys.stderr, os.listdir("/proc/self/fd")
    with pytest.raises(KeyError):
        warm_up(nothing[0])
    assert (sys.stdout, sys.stderr, os.listdir("/proc/self/fd")) == before


def test_rules_that_cannot_be_made_leave_no_descriptor(tmp_path: Path) -> None:
    if not landlock.abi():
        pytest.skip("the kernel has no Landlock")
    rules = landlock.Rules(landlock.abi(), (str(tmp_path),), ())
    with socket.socket() as no_path:
        os.dup2(no_path.fileno(), *rules.descriptors)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="bad state"):
        rules.ruleset(str(tmp_path))
    assert os.listdir("/proc/self/fd") == before
    os.close(*rules.descriptors)


def test_neighbours_are_closed_together() -> None:
    assert _ranges(7, 3, 5, 4, 9) == [(3, 6), (7, 8), (9, 10)]
    assert _ranges() == []
