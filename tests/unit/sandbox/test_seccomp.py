"""The filter as a program: interpreted here, so that every architecture's verdicts can be read on any."""

import errno
import struct

import pytest

from scrapeyard.sandbox.walls import seccomp
from scrapeyard.sandbox.walls.syscalls import ALLOWED, DIRECT_NETWORK, FILE_ATTRIBUTES, NONE

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, EACCES, ENOSYS = (0x50000 | code for code in (errno.EPERM, errno.EACCES, errno.ENOSYS))
PID = 77


def verdict(code: bytes, machine: str, number: int, *args: int, arch: int | None = None) -> int:
    """Run the classic BPF program on one system call."""
    data = struct.pack("<IIQ6Q", number, arch or ARCHES[machine], 0, *args, *[0] * (6 - len(args)))
    held, place = 0, 0
    while True:
        op, yes, no, value = struct.unpack_from("<HBBI", code, place * 8)
        place += 1
        if op == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        elif op == 0x54:
            held &= value
        elif op == 0x06:
            return int(value)
        else:
            holds = {0x15: held == value, 0x45: bool(held & value), 0x35: held >= value}[op]
            place += yes if holds else no


def script(machine: str, **more: bool) -> bytes:
    options = {"direct_network": False, "signals_anywhere": False, **more}
    return seccomp.script_filter(machine, pid=PID, **options)


@pytest.fixture(params=ARCHES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def column(machine: str) -> int:
    return list(ARCHES).index(machine)


def test_the_programs_fit_the_kernels_limit(machine: str) -> None:
    for code in (script(machine, direct_network=True), seccomp.child_filter(machine, PID)):
        assert len(code) % 8 == 0
        assert len(code) // 8 <= 4096


def test_everything_listed_is_allowed_and_nothing_else(machine: str) -> None:
    code, place = script(machine), column(machine)
    listed = {call[place] for call in (*ALLOWED.values(), *FILE_ATTRIBUTES.values())} - {NONE}
    judged = {9, 222}  # mmap
    judged |= {16, 29, 41, 198, 53, 199, 56, 57, 58, 220, 62, 129, 234, 131, 72, 25, 157, 167, 203, 122, 302, 261, 435}
    for number in range(600):
        if number in listed:
            assert verdict(code, machine, number) == ALLOW, number
        elif number not in judged:
            assert verdict(code, machine, number) == EPERM, number


def test_names_and_numbers_are_told_once() -> None:
    for place in range(2):
        numbers = [call[place] for table in (ALLOWED, FILE_ATTRIBUTES, DIRECT_NETWORK) for call in table.values()]
        real = [number for number in numbers if number != NONE]
        assert len(real) == len(set(real))


def test_foreign_architectures_end_the_process(machine: str) -> None:
    for code in (script(machine), seccomp.child_filter(machine, PID)):
        assert verdict(code, machine, 0, arch=0x40000003) == KILL


def test_the_x32_side_door_is_shut() -> None:
    for code in (script("x86_64"), seccomp.child_filter("x86_64", PID)):
        assert verdict(code, "x86_64", 0x40000000 | 39) == KILL


X86 = [
    ("fork", 57, (), ALLOW, EPERM),
    ("vfork", 58, (), ALLOW, EPERM),
    ("clone as fork", 56, (17,), ALLOW, EPERM),
    ("clone as thread", 56, (0x3D0F00,), ALLOW, ALLOW),
    ("clone with a namespace", 56, (0x10000000 | 0x10000,), EPERM, ALLOW),
    ("clone3", 435, (), ENOSYS, ALLOW),
    ("kill myself", 62, (PID, 9), ALLOW, ALLOW),
    ("kill another", 62, (1, 9), EPERM, EPERM),
    ("kill all", 62, (2**64 - 1, 9), EPERM, EPERM),
    ("tgkill another", 234, (1, 1, 9), EPERM, EPERM),
    ("own limits", 302, (0, 7), ALLOW, ALLOW),
    ("another's limits", 302, (1, 7), EPERM, ALLOW),
    ("own affinity", 203, (0, 8), ALLOW, ALLOW),
    ("another's affinity", 203, (5, 8), EPERM, ALLOW),
    ("inject into a terminal", 16, (0, 0x5412), EPERM, ALLOW),
    ("terminal size", 16, (0, 0x5413), ALLOW, ALLOW),
    ("own a descriptor", 16, (3, 0x8901), EPERM, ALLOW),
    ("F_SETFL", 72, (3, 4), ALLOW, ALLOW),
    ("F_SETOWN", 72, (3, 8, 1), EPERM, ALLOW),
    ("F_SETSIG", 72, (3, 10, 9), EPERM, ALLOW),
    ("F_SETOWN_EX", 72, (3, 15), EPERM, ALLOW),
    ("stream pair", 53, (1, 1 | 0x80000), ALLOW, ALLOW),
    ("datagram pair", 53, (1, 2), EACCES, ALLOW),
    ("internet pair", 53, (2, 1), EACCES, ALLOW),
    ("unix socket", 41, (1, 1), EACCES, ALLOW),
    ("internet socket", 41, (2, 1), EACCES, ALLOW),
    ("netlink socket", 41, (16, 3), EACCES, ALLOW),
    ("name a thread", 157, (15,), ALLOW, ALLOW),
    ("die with the parent", 157, (1, 9), ALLOW, ALLOW),
    ("outlive the parent", 157, (1, 0), EPERM, ALLOW),
    ("be traced by anyone", 157, (0x59616D61, 1), EPERM, ALLOW),
    ("adopt orphans", 157, (36, 1), EPERM, ALLOW),
    ("another filter", 157, (22, 2), ALLOW, EPERM),
    ("new session", 112, (), ALLOW, EPERM),
    ("new group", 109, (), ALLOW, EPERM),
    ("landlock", 444, (), ALLOW, EPERM),
    ("private anonymous memory", 9, (0, 4096, 3, 0x22), ALLOW, ALLOW),
    ("memory for a thread's stack", 9, (0, 4096, 3, 0x20022), ALLOW, ALLOW),
    ("shared file", 9, (0, 4096, 3, 0x01, 5), ALLOW, ALLOW),
    ("private file", 9, (0, 4096, 5, 0x802, 5), ALLOW, ALLOW),
    ("shared anonymous memory", 9, (0, 4096, 3, 0x21), EPERM, ALLOW),
    ("shared anonymous memory, checked", 9, (0, 4096, 3, 0x23), EPERM, ALLOW),
    ("memory that grows", 9, (0, 4096, 3, 0x122), EPERM, ALLOW),
]


@pytest.mark.parametrize(("name", "number", "args", "parent", "child"), X86, ids=[row[0] for row in X86])
def test_arguments_are_judged(name: str, number: int, args: tuple[int, ...], parent: int, child: int) -> None:
    assert verdict(script("x86_64"), "x86_64", number, *args) == parent
    assert verdict(seccomp.child_filter("x86_64", PID), "x86_64", number, *args) == child


def test_signals_go_anywhere_only_where_that_is_safe(machine: str) -> None:
    kill = (62, 129)[column(machine)]
    assert verdict(script(machine, signals_anywhere=True), machine, kill, 1, 9) == ALLOW
    assert verdict(script(machine), machine, kill, 1, 9) == EPERM


def test_attributes_of_files_can_be_guarded(machine: str) -> None:
    code = script(machine, file_attributes=False)
    for call in FILE_ATTRIBUTES.values():
        if call[column(machine)] != NONE:
            assert verdict(code, machine, call[column(machine)]) == EPERM


def test_direct_network_is_the_internet_and_nothing_more(machine: str) -> None:
    code, socket = script(machine, direct_network=True), (41, 198)[column(machine)]
    assert [verdict(code, machine, socket, family, 1) == ALLOW for family in (1, 2, 10, 16, 17, 40)] == [
        False, True, True, False, False, False
    ]  # fmt: skip
    for call in DIRECT_NETWORK.values():
        assert verdict(code, machine, call[column(machine)]) == ALLOW
        assert verdict(script(machine), machine, call[column(machine)]) == EPERM
