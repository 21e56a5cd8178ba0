"""Landlock: which files, ports and processes this process may still reach. Standard library only, three system calls.

Domains nest and only ever narrow, so a child adds its own on top of its parent's.
"""

import ctypes
import os
from collections.abc import Iterable

from scrapeyard.sandbox import libc

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ = 0b1100  # READ_FILE, READ_DIR
_FS_BY_ABI = {1: 13, 2: 14, 3: 15, 5: 16}
_WRITE_BITS = 0x1FFF & ~1  # all of ABI 1 but EXECUTE
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_NET, _SCOPES = 0b11, 0b11
_FILE_ONLY = 0b110 | _TRUNCATE  # rights that make sense for a file that is not a folder


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    try:
        return libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def restrict(version: int, readable: Iterable[str], writable: Iterable[str], *, network: bool = False) -> None:
    """Allow reading below `readable`, everything but execution below `writable`, and nothing else.

    From version 4 on, TCP is refused unless `network`; from 6 on, signals and abstract sockets stay inside. Paths that
    do not exist are passed over. Raises OSError.
    """
    handled = (1 << max(bits for since, bits in _FS_BY_ABI.items() if since <= version)) - 1
    attributes = _Ruleset(handled, _NET if version >= 4 and not network else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in readable:
            _allow(ruleset, path, _READ)
        for path in writable:
            _allow(ruleset, path, (_READ | _WRITE_BITS | _REFER | _TRUNCATE) & handled)
        libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - a path object here would be made once per rule and child
            access &= _FILE_ONLY
        rule = _PathRule(access, fd)
        libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(fd)
