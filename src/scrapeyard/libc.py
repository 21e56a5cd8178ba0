"""The few C library calls that Python does not offer. Standard library only, for every environment's zygote."""

import ctypes
import os
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 22, 38, 36
PR_CAPBSET_DROP = 24
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18
)  # fmt: skip
MNT_DETACH = 2
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def _checked(result: int, function: Any, _arguments: object) -> int:
    """Raise the OSError of a call that has returned -1."""
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{function.__name__}: {os.strerror(errno)}")
    return result


def _function(name: str) -> Any:
    function: Any = _libc[name]
    function.errcheck = _checked
    return function


bare_syscall, bare_prctl = _function("syscall"), _function("prctl")
"""The C functions themselves, which raise OSError too: a child that is just forked calls them with arguments that its
parent has converted. The number of a system call is a `c_long`."""


def call(function: str, *args: Any) -> int:
    """Call a libc function that returns -1 on error. Raises OSError with its errno."""
    return int(_function(function)(*args))


def syscall(number: int, *args: Any) -> int:
    """A system call that libc has no name for. Raises OSError."""
    return call("syscall", ctypes.c_long(number), *args)


def prctl(option: int, value: int = 0) -> None:
    """Set one process attribute. Raises OSError."""
    call("prctl", ctypes.c_int(option), ctypes.c_ulong(value), 0, 0, 0)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount. Raises OSError naming the target."""
    try:
        call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {os.strerror(error.errno or 0)}") from None


def unshare(flags: int) -> None:
    """Leave namespaces. Raises OSError."""
    call("unshare", ctypes.c_int(flags))


def setns(fd: int, kind: int) -> None:
    """Enter a namespace. Raises OSError."""
    call("setns", ctypes.c_int(fd), ctypes.c_int(kind))


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root; the former root appears at `old`. Raises OSError."""
    syscall(_SYS_PIVOT_ROOT[os.uname().machine], new.encode(), old.encode())


def umount(target: str) -> None:
    """Detach a mount. Raises OSError."""
    call("umount2", target.encode(), ctypes.c_int(MNT_DETACH))


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """Give up every capability for good. Raises OSError."""
    header = _CapHeader(0x20080522, 0)
    none = (ctypes.c_uint32 * 6)()
    call("capset", ctypes.byref(header), ctypes.byref(none))


class EnvironmentVariable:
    """A variable whose memory is ours, for one that often changes: `setenv` keeps every value for ever."""

    def __init__(self, name: str, longest: int) -> None:
        """`longest` is how many bytes a value may have."""
        self._name = name
        self._head = name.encode() + b"="
        self._memory = ctypes.create_string_buffer(self._head, len(self._head) + longest + 1)
        _libc.putenv(self._memory)

    def set(self, value: bytes) -> None:
        """Set it for Python and for C. Raises ValueError if it is too long."""
        self._memory.value = self._head + value + b"\0"
        known: Any = os.environ
        if (data := getattr(known, "_data", None)) is not None:
            data[self._name.encode()] = value
        else:  # a script has put a dictionary of its own in place
            known[self._name] = value.decode()
