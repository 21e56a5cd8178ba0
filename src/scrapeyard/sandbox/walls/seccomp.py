"""The system call filter, as a classic BPF program. Standard library only.

It is written by hand because the zygote of every environment installs it, where no third-party package can be relied
on, and a linear allow-list needs no compiler. The kernel caches the verdict for calls that are always allowed, so the
length of the list costs nothing.

Two filters stack. The first is put up before the script is loaded; it must let the scraper's parent fork. The second is
put up in each child and takes fork, signals to others, new filters and Landlock rules away.
"""

import ctypes
import errno
import os
import struct

from scrapeyard import libc
from scrapeyard.sandbox.walls.syscalls import ALLOWED, DIRECT_NETWORK, FILE_ATTRIBUTES, NONE

_LOAD, _AND, _JEQ, _JSET, _JGE, _RET = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARG0, _ARG1, _ARG3 = 0, 4, 16, 24, 40
_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000
_CLONE_THREAD = 0x10000
_CLONE_NEW = 0x7E020000
_AF_UNIX, _INTERNET = 1, (2, 10)
_IOCTLS_REFUSED = (0x5412, 0x541C, 0x8901, 0x8902)
"""TIOCSTI and TIOCLINUX type into terminals; FIOSETOWN and SIOCSPGRP aim signals at others."""
_FCNTLS_REFUSED = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX make the kernel signal others in our name; F_SETLEASE and F_NOTIFY likewise."""
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _SIGKILL = 1, 22, 9
_PRCTLS = (2, 3, 15, 16, 21, _PR_SET_SECCOMP, 23, 29, 30, 38, 39, 0x53564D41)
"""Thread and memory names, timer slack, reading current values, and what a child needs to install its filter."""
_MAP_SHARED_ANONYMOUS, _MAP_GROWSDOWN = 0x21, 0x100
"""Mappings that no limit counts: pages of a shared one stay when they leave the resident set, and a mapping that grows
like a stack is not part of RLIMIT_DATA."""
_DATAGRAM = 2
"""The bit that is set in SOCK_DGRAM and SOCK_RAW but not in SOCK_STREAM and SOCK_SEQPACKET."""

_CLONE, _CLONE3, _FORK, _VFORK = (56, 220), (435, 435), (57, NONE), (58, NONE)
_KILL_CALLS = ((62, 129), (234, 131))
_PRLIMIT, _IOCTL, _SOCKET, _SOCKETPAIR = (302, 261), (16, 29), (41, 198), (53, 199)
_PRCTL, _FCNTL, _SCHED_SETAFFINITY, _MMAP = (157, 167), (72, 25), (203, 122), (9, 222)
_CHILD_REFUSED = ((444, 444), (445, 445), (446, 446), (317, 277), (109, 154), (112, 157))
"""landlock_create_ruleset, _add_rule, _restrict_self, seccomp, setpgid, setsid: a child is done with them."""


class _Program:
    """Instructions in order. Every check jumps over at most a few instructions, so no offset overflows."""

    def __init__(self, machine: str) -> None:
        self._arch, self._column = _ARCHES[machine]
        self._code: list[bytes] = []
        self._add(_LOAD, _ARCH)
        self._add(_JEQ, self._arch, 1, 0)
        self._add(_RET, _KILL)
        self._add(_LOAD, _NR)
        if machine == "x86_64":
            self._add(_JGE, _X32, 0, 1)
            self._add(_RET, _KILL)

    def _add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append(struct.pack("<HBBI", code, if_true, if_false, value & 0xFFFFFFFF))

    def answer(self, call: tuple[int, int], action: int) -> None:
        """This call, whatever its arguments."""
        if call[self._column] != NONE:
            self._add(_JEQ, call[self._column], 0, 1)
            self._add(_RET, action)

    def allow_if(self, call: tuple[int, int], test: int, argument: int, value: int, otherwise: int) -> None:
        """Allow when `argument` passes the test (_JEQ or _JSET) with `value`; otherwise answer `otherwise`."""
        if call[self._column] != NONE:
            self._add(_JEQ, call[self._column], 0, 4)
            self._add(_LOAD, argument)
            self._add(test, value, 0, 1)
            self._add(_RET, _ALLOW)
            self._add(_RET, otherwise)

    def answer_if(self, call: tuple[int, int], test: int, argument: int, value: int, action: int) -> None:
        """Answer `action` when `argument` passes the test; otherwise go on to the next check."""
        if call[self._column] != NONE:
            self._add(_JEQ, call[self._column], 0, 4)
            self._add(_LOAD, argument)
            self._add(test, value, 0, 1)
            self._add(_RET, action)
            self._add(_LOAD, _NR)

    def answer_unless(self, call: tuple[int, int], argument: int, value: int, action: int) -> None:
        """Answer `action` when `argument` is anything but `value`; otherwise go on to the next check."""
        if call[self._column] != NONE:
            self._add(_JEQ, call[self._column], 0, 4)
            self._add(_LOAD, argument)
            self._add(_JEQ, value, 1, 0)
            self._add(_RET, action)
            self._add(_LOAD, _NR)

    def answer_if_all(self, call: tuple[int, int], argument: int, bits: int, action: int) -> None:
        """Answer `action` when `argument` has all of these bits; otherwise go on to the next check."""
        if call[self._column] != NONE:
            self._add(_JEQ, call[self._column], 0, 5)
            self._add(_LOAD, argument)
            self._add(_AND, bits)
            self._add(_JEQ, bits, 0, 1)
            self._add(_RET, action)
            self._add(_LOAD, _NR)

    def end(self, action: int) -> bytes:
        """The finished program, with the answer for every call not named."""
        self._add(_RET, action)
        return b"".join(self._code)


_EPERM = _ERRNO | errno.EPERM
_EACCES = _ERRNO | errno.EACCES
_ENOSYS = _ERRNO | errno.ENOSYS


def script_filter(
    machine: str, *, direct_network: bool, signals_anywhere: bool, pid: int, file_attributes: bool = True
) -> bytes:
    """The filter for a scraper's parent: the allow-list, and fork.

    `signals_anywhere` is safe only inside a pid namespace; otherwise only `pid` itself may be signalled.
    `file_attributes` is safe only if no file of another user can be reached by name.
    """
    program = _Program(machine)
    _judge_arguments(program)
    for call in ALLOWED.values():
        program.answer(call, _ALLOW)
    for call in FILE_ATTRIBUTES.values() if file_attributes else ():
        program.answer(call, _ALLOW)
    program.answer(_CLONE3, _ENOSYS)
    program.answer_if(_CLONE, _JSET, _ARG0, _CLONE_NEW, _EPERM)
    for call in (_CLONE, _FORK, _VFORK):
        program.answer(call, _ALLOW)
    for call in _KILL_CALLS:
        if signals_anywhere:
            program.answer(call, _ALLOW)
        else:
            program.allow_if(call, _JEQ, _ARG0, pid, _EPERM)
    _judge_sockets(program, direct_network)
    return program.end(_EPERM)


def _judge_arguments(program: _Program) -> None:
    """Calls that are harmful only with some arguments. They come first, as the kernel cannot cache their verdict."""
    for bits in (_MAP_SHARED_ANONYMOUS, _MAP_GROWSDOWN):
        program.answer_if_all(_MMAP, _ARG3, bits, _EPERM)
    program.answer(_MMAP, _ALLOW)
    for command in _FCNTLS_REFUSED:
        program.answer_if(_FCNTL, _JEQ, _ARG1, command, _EPERM)
    program.answer(_FCNTL, _ALLOW)
    for request in _IOCTLS_REFUSED:
        program.answer_if(_IOCTL, _JEQ, _ARG1, request, _EPERM)
    program.answer(_IOCTL, _ALLOW)
    for option in _PRCTLS:
        program.answer_if(_PRCTL, _JEQ, _ARG0, option, _ALLOW)
    program.answer_unless(_PRCTL, _ARG0, _PR_SET_PDEATHSIG, _EPERM)
    program.allow_if(_PRCTL, _JEQ, _ARG1, _SIGKILL, _EPERM)
    for call in (_PRLIMIT, _SCHED_SETAFFINITY):
        program.allow_if(call, _JEQ, _ARG0, 0, _EPERM)


def _judge_sockets(program: _Program, direct_network: bool) -> None:
    """Allow only socket pairs of types that cannot send to an address: a datagram socket reaches any other by name."""
    program.answer_if(_SOCKETPAIR, _JSET, _ARG1, _DATAGRAM, _EACCES)
    program.allow_if(_SOCKETPAIR, _JEQ, _ARG0, _AF_UNIX, _EACCES)
    if direct_network:
        for call in DIRECT_NETWORK.values():
            program.answer(call, _ALLOW)
        for family in _INTERNET:
            program.answer_if(_SOCKET, _JEQ, _ARG0, family, _ALLOW)
    program.answer(_SOCKET, _EACCES)


def child_filter(machine: str, pid: int) -> bytes:
    """The filter for a child: no new process, no signal to anyone but itself, no change to its walls."""
    program = _Program(machine)
    program.answer(_FORK, _EPERM)
    program.answer(_VFORK, _EPERM)
    program.allow_if(_CLONE, _JSET, _ARG0, _CLONE_THREAD, _EPERM)
    for call in _KILL_CALLS:
        program.allow_if(call, _JEQ, _ARG0, pid, _EPERM)
    for call in _CHILD_REFUSED:
        program.answer(call, _EPERM)
    program.answer_if(_PRCTL, _JEQ, _ARG0, _PR_SET_SECCOMP, _EPERM)
    return program.end(_ALLOW)


class ChildFilter:
    """The filter for a child, built before it is forked; only its process id is filled in afterwards."""

    _ANY = (0x7A5C3E19).to_bytes(4, "little")
    """Stands for the process id; no other number in the program."""

    def __init__(self, machine: str) -> None:
        self._program = child_filter(machine, int.from_bytes(self._ANY, "little"))
        self._memory = ctypes.create_string_buffer(self._program, len(self._program))
        filled = _FilterProgram(len(self._program) // 8, ctypes.cast(self._memory, ctypes.c_char_p))
        self.arguments = libc.PR_SET_SECCOMP, 2, ctypes.byref(filled), 0, 0
        """For `libc.bare_prctl`, which puts it up."""
        for _ in range(_WARM_UP):
            self.fill_in()

    def fill_in(self) -> None:
        """Make it the filter for this process."""
        self._memory.raw = self._program.replace(self._ANY, os.getpid().to_bytes(4, "little"))


_WARM_UP = 20
"""After so many calls Python has specialised a function's code. In a child it would do so on memory that is copied."""


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def install(code: bytes) -> None:
    """Put the filter up for this process and all its descendants. Needs no-new-privileges. Raises OSError."""
    program = _FilterProgram(len(code) // 8, code)
    libc.bare_prctl(libc.PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0)


def supported() -> bool:
    """Whether we know this machine's system calls."""
    return os.uname().machine in _ARCHES
