"""Landlock: which files, ports and processes this process may still reach. Standard library only, three system calls.

Domains nest and only ever narrow, so a child adds its own on top of its parent's.
"""

import ctypes
import os
import stat
from collections.abc import Iterable, Iterator

from scrapeyard import libc

_CREATE, _ADD_RULE, RESTRICT = map(ctypes.c_long, (444, 445, 446))
_READ = 0b1100  # READ_FILE, READ_DIR
_FS_BY_ABI = {1: 13, 2: 14, 3: 15, 5: 16}
_WRITE_BITS = 0x1FFF & ~1  # all of ABI 1 but EXECUTE
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_NET, _SCOPES = 0b11, 0b11
_NO_FLAGS, _PATH_BENEATH = 0, 1
_FILE_ONLY = 0b110 | _TRUNCATE  # rights that make sense for a file that is not a folder


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    try:
        return int(libc.bare_syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))
    except OSError:
        return 0


class Rules:
    """Opens paths and computes rights once per parent; each child only applies them.

    Reading is allowed below `readable`, everything but execution below `writable`, and nothing else. From version 4 on,
    TCP is refused unless `network`; from 6 on, signals and abstract sockets stay inside. Paths that do not exist are
    passed over. Raises OSError.
    """

    def __init__(
        self, version: int, readable: Iterable[str], writable: Iterable[str], *, network: bool = False
    ) -> None:
        handled = (1 << max(bits for since, bits in _FS_BY_ABI.items() if since <= version)) - 1
        self._attributes = _Ruleset(
            handled, _NET if version >= 4 and not network else 0, _SCOPES if version >= 6 else 0
        )
        self._size = ctypes.c_size_t(24 if version >= 6 else 16 if version >= 4 else 8)
        self._write = (_READ | _WRITE_BITS | _REFER | _TRUNCATE) & handled
        rules = [*self._opened(readable, _READ), *self._opened(writable, self._write)]
        self.descriptors = [rule.parent for rule in rules]
        """The open paths. Whoever made this closes them; a child, many in one call."""
        self._rules = [ctypes.byref(rule) for rule in rules]

    def ruleset(self, folder: str) -> int:
        """A descriptor of the rules, with `folder` writable besides, for `RESTRICT`. Raises OSError."""
        ruleset: int = libc.bare_syscall(_CREATE, ctypes.byref(self._attributes), self._size, _NO_FLAGS)
        try:
            own = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                for rule in (*self._rules, ctypes.byref(_PathRule(self._write, own))):
                    libc.bare_syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, _NO_FLAGS)
            finally:
                os.close(own)
        except OSError:
            os.close(ruleset)
            raise
        return ruleset

    def restrict(self, folder: str) -> None:
        """Put this process under the rules, with `folder` writable besides, and close them. Raises OSError."""
        ruleset = self.ruleset(folder)
        libc.bare_syscall(RESTRICT, ruleset, _NO_FLAGS)
        for descriptor in (ruleset, *self.descriptors):
            os.close(descriptor)

    @staticmethod
    def _opened(paths: Iterable[str], access: int) -> Iterator[_PathRule]:
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            yield _PathRule(access if folder else access & _FILE_ONLY, fd)
