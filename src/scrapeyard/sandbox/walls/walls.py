"""Raising the walls around a scraper's parent, and the last ones around each child. Standard library only.

Order matters. As root: namespaces, root, then another user id, which takes every capability away. As anyone else: a
user namespace gives the capabilities that the mounts need, and they are dropped afterwards. Landlock and seccomp come
last, because they forbid what the others do.
"""

import contextlib
import os
import resource
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapeyard import libc
from scrapeyard.sandbox.walls import landlock, seccomp
from scrapeyard.sandbox.walls.plan import ROOT_FOLDER, WORK_FOLDER, Plan

_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not /dev/zero: mapping it makes shared memory that no limit counts."""
_NAMES_AND_CERTIFICATES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
    "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/usr/share/ca-certificates", "/etc/ca-certificates",
    "/usr/local/share/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted",
)  # fmt: skip
"""What a script with the direct network reads to resolve names and to check certificates."""
_KEPT_MOUNT_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC


def enter_user_namespace() -> None:
    """Gain capabilities in a new user namespace, under the same user id. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    libc.unshare(libc.NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def enclose(plan: Plan) -> None:
    """Raise all walls of a scraper's parent. The process must have one thread and no open descriptors that may leak."""
    if plan.has("namespaces"):
        _leave_namespaces(plan)
    if plan.has("root"):
        _change_root(plan)
    if plan.has("user"):
        _drop_privileges(plan)
    elif plan.walls:
        libc.drop_capabilities()
    # The kernel resets this on a change of user or capabilities.
    libc.prctl(libc.PR_SET_PDEATHSIG, signal.SIGKILL)
    if plan.has("rlimits"):
        _limit_parent(plan)
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    if plan.has("landlock"):
        _rules(plan).restrict(plan.work_folder)
    if plan.has("seccomp"):
        seccomp.install(
            seccomp.script_filter(
                os.uname().machine,
                direct_network=plan.direct_network,
                signals_anywhere=plan.has("namespaces"),
                pid=os.getpid(),
                file_attributes=plan.has("root") or plan.user_id is not None,
            )
        )


Call = tuple[Callable[..., object], tuple[Any, ...]]
"""A function and its arguments, for a child to call."""


@dataclass(frozen=True, kw_only=True)
class ChildWalls:
    """What all children of a parent share, computed once, because a child must start in a millisecond or two."""

    rlimits: bool
    rules: landlock.Rules | None
    filter: seccomp.ChildFilter | None

    @property
    def descriptors(self) -> list[int]:
        """What is open for `enclose_child`, and must be closed in the child."""
        return [] if self.rules is None else self.rules.descriptors


def prepare_children(plan: Plan) -> ChildWalls:
    """Compute it before the script is loaded and could interfere. Raises OSError."""
    return ChildWalls(
        rlimits=plan.has("rlimits"),
        rules=_rules(plan) if plan.has("landlock") else None,
        filter=seccomp.ChildFilter(os.uname().machine) if plan.has("seccomp") else None,
    )


def enclose_child(ready: ChildWalls, folder: str, cpu_seconds: int) -> tuple[list[Call], list[int]]:
    """What a child calls to raise its extra walls: only its own folder, no new processes, its own CPU limit. Besides,
    descriptors that are open for these calls, to be closed here and in the child. Raises OSError."""
    calls: list[Call] = []
    opened = []
    if ready.rlimits:
        calls.append((resource.setrlimit, (resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))))
    if ready.rules is not None:
        opened.append(ready.rules.ruleset(folder))
        calls.append((libc.bare_syscall, (landlock.RESTRICT, opened[0], 0)))
    if ready.filter is not None:
        calls += ((ready.filter.fill_in, ()), (libc.bare_prctl, ready.filter.arguments))
    return calls, opened


def _rules(plan: Plan) -> landlock.Rules:
    network = (*_NAMES_AND_CERTIFICATES, *plan.certificates) if plan.direct_network else ()
    readable = (*plan.readable, plan.script_folder, *_DEVICES, "/etc/localtime", *network)
    return landlock.Rules(landlock.abi(), readable, ("/dev/null",), network=plan.direct_network)


def _leave_namespaces(plan: Plan) -> None:
    spaces = libc.NEWNS | libc.NEWIPC | libc.NEWUTS
    if not plan.direct_network:
        spaces |= libc.NEWNET
    if os.geteuid() != 0:
        enter_user_namespace()
    libc.unshare(spaces)
    with contextlib.suppress(OSError):  # profiles of containers often forbid it, and the name is no secret
        socket.sethostname("scrapeyard")
    libc.mount("none", "/", flags=libc.MS_REC | libc.MS_PRIVATE)


def _change_root(plan: Plan) -> None:
    root = plan.mount_point
    libc.mount("scrapeyard", root, "tmpfs", libc.MS_NOSUID | libc.MS_NODEV, "size=1m,nr_inodes=4k,mode=755")
    for path in plan.readable:
        _bind(path, root + path)
    _bind(plan.folder, root + ROOT_FOLDER)
    for device in _DEVICES:
        _bind(device, root + device)
    if plan.direct_network:
        for path in (*_NAMES_AND_CERTIFICATES, *plan.certificates):
            _bind(path, root + path)
    _bind("/etc/localtime", root + "/etc/localtime")
    os.mkdir(root + WORK_FOLDER)  # noqa: PTH102 - plain strings keep this in step with the mounts around it
    size = f"size={plan.disk_bytes},nr_inodes=16k,mode=1777"
    libc.mount("scrapeyard", root + WORK_FOLDER, "tmpfs", libc.MS_NOSUID | libc.MS_NODEV, size)
    _pivot(root)
    libc.mount("none", "/", flags=libc.MS_REMOUNT | libc.MS_BIND | libc.MS_RDONLY | libc.MS_NOSUID | libc.MS_NODEV)


def _pivot(root: str) -> None:
    """Make this mount the root, and let go of the old one."""
    os.mkdir(root + "/.old")  # noqa: PTH102
    libc.pivot_root(root, root + "/.old")
    os.chdir("/")
    libc.umount("/.old")
    os.rmdir("/.old")  # noqa: PTH106


def _bind(source: str, target: str) -> None:
    place = Path(target)
    if not Path(source).exists() or place.exists():  # it may lie in a folder that was bound before
        return
    if Path(source).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    libc.mount(source, target, flags=libc.MS_BIND | libc.MS_REC)
    if not source.startswith("/dev/"):
        kept = os.statvfs(target).f_flag & _KEPT_MOUNT_FLAGS
        read_only = libc.MS_RDONLY | libc.MS_NOSUID | libc.MS_NODEV | kept
        libc.mount("none", target, flags=libc.MS_REMOUNT | libc.MS_BIND | read_only)


def _drop_privileges(plan: Plan) -> None:
    if plan.user_id is None:
        libc.drop_capabilities()
        return
    for capability in range(64):
        try:
            libc.prctl(libc.PR_CAPBSET_DROP, capability)
        except OSError:
            break
    os.setgroups([])
    os.setresgid(plan.user_id, plan.user_id, plan.user_id)
    os.setresuid(plan.user_id, plan.user_id, plan.user_id)


def _limit_parent(plan: Plan) -> None:
    alone = plan.user_id is not None or plan.has("namespaces")
    for kind, value in (
        (resource.RLIMIT_DATA, plan.data_bytes),
        (resource.RLIMIT_FSIZE, plan.file_bytes),
        (resource.RLIMIT_NOFILE, plan.open_files),
        # Without a user id of its own, every process of this user would count.
        *(((resource.RLIMIT_NPROC, plan.processes),) if alone else ()),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 65536),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (limit, limit))


def probe() -> dict[str, str]:
    """Which walls this kernel and user can raise: name → empty when it can, otherwise why not.

    Each is tried in a child of its own, because most cannot be taken down again.
    """
    found = {
        "namespaces": _try(_probe_namespaces),
        "root": _try(_probe_root),
        "user": _try(_probe_user),
        "landlock": "" if landlock.abi() else "the kernel has no Landlock (5.13 or newer, enabled at boot)",
        "seccomp": _try(_probe_seccomp) if seccomp.supported() else "unknown processor architecture",
        "rlimits": "",
    }
    if found["namespaces"]:
        found["root"] = found["root"] or "needs namespaces"
    return found


def _probe_spaces() -> None:
    if os.geteuid() != 0:
        enter_user_namespace()
    libc.unshare(libc.NEWPID | libc.NEWNET | libc.NEWIPC | libc.NEWUTS | libc.NEWNS)


def _probe_namespaces() -> None:
    _probe_spaces()


def _probe_root() -> None:
    """Every kind of call that `_change_root` makes: a container's profile may allow one mount and refuse another."""
    _probe_spaces()
    libc.mount("none", "/", flags=libc.MS_REC | libc.MS_PRIVATE)
    root = "/proc"  # a folder that is always there
    libc.mount("scrapeyard", root, "tmpfs", libc.MS_NOSUID | libc.MS_NODEV, "size=64k,mode=755")
    _bind("/usr", f"{root}/usr")
    _pivot(root)


def _probe_user() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresuid(2_000_000, 2_000_000, 2_000_000)
    else:
        libc.drop_capabilities()


def _probe_seccomp() -> None:
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    machine = os.uname().machine
    seccomp.install(seccomp.script_filter(machine, direct_network=False, signals_anywhere=False, pid=os.getpid()))


def _try(attempt: object) -> str:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            attempt()  # type: ignore[operator]
        except OSError as error:
            os.write(write, str(error).encode())
        except BaseException as error:  # noqa: BLE001 - the probe's child must end here whatever happens
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:  # noqa: PTH123 - a descriptor, not a path
        reason = pipe.read(500).decode(errors="replace")
    os.waitpid(pid, 0)
    return reason
