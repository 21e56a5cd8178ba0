"""Doors a script may try. Each is an expression that must be refused; `sc` makes a raw system call."""

SCRIPT = '''
import ctypes, errno, fcntl, glob, mmap, os, socket, struct, subprocess, sys, multiprocessing
FACTS = {facts}
libc = ctypes.CDLL(None, use_errno=True)
REFUSED = {{errno.EPERM, errno.EACCES, errno.ENOENT, errno.ENOSYS, errno.EROFS, errno.ESRCH, errno.EXDEV, errno.EAGAIN}}

def sc(number, *args):
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result

def read(path):
    with open(path, "rb") as file:
        return file.read(200)

def write(path):
    with open(path, "ab") as file:
        file.write(b"x")

def send(family, kind, address, proto=0):
    with socket.socket(family, kind, proto) as sock:
        sock.settimeout(1)
        sock.connect(address)
        sock.send(b"hello")

def through(link, target):
    try:
        os.symlink(target, link)
        return read(link)
    finally:
        try: os.unlink(link)
        except OSError: pass

def datagram(address):
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"hello", address)

def process():
    worker = multiprocessing.get_context("fork").Process(target=print)
    worker.start()
    worker.join()

def descriptors():
    """Whatever is open beside our three and the wire. A bare path, as the loader holds for its walls, opens nothing."""
    mine = []
    for fd in range(3, 1024):
        try: mode, flags = os.fstat(fd).st_mode, fcntl.fcntl(fd, fcntl.F_GETFL)
        except OSError: continue
        if not flags & os.O_PATH: mine.append((fd, oct(mode)))
    sockets = [fd for fd, mode in mine if mode.startswith("0o14")]
    if len(sockets) <= 1 and all(mode.startswith(("0o14", "0o600", "0o10600")) for _, mode in mine):
        raise PermissionError(1, "nothing but our own")
    return mine

def climb():
    """From every descriptor upwards, to what its path would not give."""
    for fd in range(1024):
        for target in ("..", "../..", "../../../../../../../../etc/passwd", "../../../../../../../../root"):
            try: return os.open(target, os.O_RDONLY, dir_fd=fd), target
            except OSError: continue
    raise PermissionError(1, "no way up")

DOORS = {{
{doors}
}}

def knock(name):
    try:
        return "OPEN: " + repr(DOORS[name]())[:200]
    except socket.gaierror:
        return "refused: no name is known"
    except OSError as error:
        return "refused" if error.errno in REFUSED else f"OPEN? {{error!r}}"
    except (RuntimeError, subprocess.SubprocessError, EOFError) as error:
        return f"refused {{error!r}}"

def attack():
    return {{name: knock(name) for name in DOORS}}
'''
RUN_TIME = SCRIPT + "\n\ndef run(ctx): return attack()\n"
IMPORT_TIME = SCRIPT + "\n\nFOUND = attack()\n\ndef run(ctx): return FOUND\n"

FILES = {
    "passwd": 'read("/etc/passwd")',
    "shadow": 'read("/etc/shadow")',
    "own environ": 'read("/proc/self/environ")',
    "init's environ": 'read("/proc/1/environ")',
    "worker's environ": "read(f\"/proc/{FACTS['worker']}/environ\")",
    "worker's memory": "read(f\"/proc/{FACTS['worker']}/maps\")",
    "worker's root": "os.listdir(f\"/proc/{FACTS['worker']}/root\")",
    "proc": 'os.listdir("/proc")',
    "sys": 'os.listdir("/sys")',
    "data folder": 'os.listdir(FACTS["data"])',
    "database": 'read(FACTS["data"] + "/scrapeyard.db")',
    "project": 'os.listdir(FACTS["project"])',
    "project file": 'read(FACTS["project"] + "/pyproject.toml")',
    "platform's code": 'read(FACTS["project"] + "/src/scrapeyard/wiring.py")',
    "all scrapers": 'os.listdir(FACTS["scrapers"])',
    "another scraper": 'read(FACTS["scrapers"] + "/attack/good/scraper.py")',
    "root's home": 'os.listdir("/root/.ssh")',
    "home": 'os.listdir(FACTS["home"])',
    "top": 'os.listdir("/")',
    "up": 'os.listdir("/scrapeyard/work/../..")',
    "up to passwd": 'read("/scrapeyard/work/../../etc/passwd")',
    "tmp": 'os.listdir("/tmp")',
    "a secret beside us": 'read(FACTS["secret"])',
    "link to passwd": 'through("a-link", "/etc/passwd")',
    "link to secret": 'through("b-link", FACTS["secret"])',
    "memory device": 'read("/dev/mem")',
    "kernel messages": 'read("/dev/kmsg")',
    "terminal": 'read("/dev/tty")',
    "write etc": 'write("/etc/scrapeyard-was-here")',
    "write tmp": 'write("/tmp/scrapeyard-was-here")',
    "write home": 'write(FACTS["home"] + "/scrapeyard-was-here")',
    "write top": 'write("/scrapeyard-was-here")',
    "write beside runs": 'write("/scrapeyard/was-here")',
    "write own scraper": "write(__file__)",
    "write beside own scraper": 'write(os.path.dirname(__file__) + "/more.py")',
    "write the interpreter": "write(os.__file__)",
    "write beside the interpreter": 'write(os.path.dirname(os.__file__) + "/was_here.py")',
    "write a device": 'write("/dev/full")',
    "replace the interpreter": 'os.rename(os.__file__, os.__file__ + ".old")',
    "remove own scraper": "os.unlink(__file__)",
    "chmod the interpreter": "os.chmod(os.__file__, 0o777)",
    "chmod own scraper": "os.chmod(__file__, 0o777)",
    "chown": 'os.chown(".", 0, 0)',
    "hard link": 'os.link(os.__file__, "linked")',
    "hard link a secret": 'os.link(FACTS["secret"], "linked")',
    "device node": 'os.mknod("node", 0o60666, os.makedev(8, 0))',
    "fifo": 'os.mkfifo("fifo")',
    "setuid file": 'sc(425, 8, None) or os.chmod("x", 0o4777)',
    "directory by handle": 'sc(304, -100, b"x", 0)',
    "inherited": "descriptors()",
    "climb by descriptor": "climb()",
}
NETWORK = {
    "gateway": 'send(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", FACTS["port"]))',
    "valkey": 'send(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", FACTS["listener"]))',
    "metadata": 'send(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80))',
    "ipv6": 'send(socket.AF_INET6, socket.SOCK_STREAM, ("::1", FACTS["port"]))',
    "udp": 'send(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 53))',
    "raw": 'send(socket.AF_INET, socket.SOCK_RAW, ("127.0.0.1", 0), 1)',
    "ping": 'send(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0), 1)',
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "packet": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "bluetooth": "socket.socket(31, socket.SOCK_RAW, 1)",
    "crypto": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "abstract": 'send(socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + FACTS["abstract"])',
    "path": 'send(socket.AF_UNIX, socket.SOCK_STREAM, FACTS["path"])',
    "abstract datagram": 'datagram("\\0" + FACTS["datagram"])',
    "path datagram": 'datagram(FACTS["datagram_path"])',
    "listen": 'socket.create_server(("127.0.0.1", 0))',
    "name": 'socket.create_connection(("example.test", 80), 1)',
    "io_uring": "sc(425, 8, ctypes.create_string_buffer(200))",
}
PROCESSES = {
    "fork": "os.fork()",
    "vfork": "sc(58)",
    "spawn": 'os.posix_spawn("/bin/true", ["true"], {})',
    "subprocess": 'subprocess.run([sys.executable, "-c", "0"], check=True)',
    "multiprocessing": "process()",
    "exec": 'os.execv(sys.executable, [sys.executable, "-c", "0"])',
    "exec by descriptor": 'sc(322, os.open(os.__file__, 0), b"", None, None, 0x1000)',
    "clone into namespaces": "sc(56, 0x10000000 | 17, None, None, None, None)",
    "clone3": "sc(435, ctypes.create_string_buffer(88), 88)",
    "setsid": "os.setsid()",
    "kill the worker": 'os.kill(FACTS["worker"], 0)',
    "kill the zygote": 'os.kill(FACTS["zygote"], 0)',
    "kill the parent": "os.kill(os.getppid(), 0)",
    "kill init": "os.kill(1, 0)",
    "kill all": "os.kill(-1, 0)",
    "kill the group": "os.kill(0, 0)",
    "kill a sibling": "[os.kill(pid, 0) for pid in range(1, 300) if pid != os.getpid()]",
    "thread of another": 'sc(234, FACTS["worker"], FACTS["worker"], 0)',
    "queue a signal": 'sc(129, FACTS["worker"], 9, ctypes.create_string_buffer(128))',
    "pidfd": 'sc(434, FACTS["worker"], 0)',
    "pidfd of the parent": "sc(434, os.getppid(), 0)",
    "pidfd signal": "sc(424, 3, 0, None, 0)",
    "pidfd getfd": "sc(438, 3, 0, 0)",
    "signal by descriptor": "__import__('fcntl').fcntl(3, 8, 1)",
    "signal number by descriptor": "__import__('fcntl').fcntl(3, 10, 9)",
    "owner by ioctl": "__import__('fcntl').ioctl(3, 0x8901, struct.pack('i', 1))",
    "forget the death signal": "sc(157, 1, 0, 0, 0, 0)",
    "adopt": "sc(157, 36, 1, 0, 0, 0)",
    "be traced": "sc(101, 0, 0, 0, 0)",
    "trace": "sc(101, 16, os.getppid(), 0, 0)",
    "read memory": "sc(310, os.getppid(), None, 0, None, 0, 0)",
    "write memory": "sc(311, os.getppid(), None, 0, None, 0, 0)",
    "compare": "sc(312, os.getpid(), os.getppid(), 0, 0, 0)",
    "priority": "os.setpriority(os.PRIO_PROCESS, 0, -5)",
    "scheduler": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "affinity of another": "os.sched_setaffinity(os.getppid() or 2, {0})",
    "limits of another": "__import__('resource').prlimit(os.getppid() or 2, 7)",
}
KERNEL = {
    "memfd": 'os.memfd_create("x")',
    "secret memory": "sc(447, 0)",
    "shared memory": "sc(29, 0, 1 << 20, 0o1600)",
    "shared anonymous memory": "mmap.mmap(-1, 1 << 20)",
    "shared anonymous memory, checked": "mmap.mmap(-1, 1 << 20, flags=0x23)",
    "shared memory of a device": 'mmap.mmap(os.open("/dev/zero", os.O_RDONLY), 1 << 20, prot=mmap.PROT_READ)',
    "memory that grows": "mmap.mmap(-1, 1 << 20, flags=0x122)",
    "message queue": 'sc(240, b"/x", 0o102, 0o600, None)',
    "semaphore": "sc(64, 0, 1, 0o1600)",
    "mount": 'sc(165, b"none", b".", b"tmpfs", 0, None)',
    "umount": 'sc(166, b"/scrapeyard/work", 2)',
    "new mount": 'sc(430, b"tmpfs", 0)',
    "open tree": 'sc(428, -100, b"/", 1)',
    "move mount": 'sc(429, -1, b"", -1, b"", 0)',
    "unshare user": "sc(272, 0x10000000)",
    "unshare mount": "sc(272, 0x20000)",
    "setns": "sc(308, 3, 0)",
    "chroot": 'os.chroot(".")',
    "pivot": 'sc(155, b".", b".")',
    "setuid": "os.setuid(0)",
    "setgid": "os.setgid(0)",
    "setgroups": "os.setgroups([0])",
    "setresuid": "sc(117, 0, 0, 0)",
    "setfsuid": "sc(122, 0)",
    "capset": 'sc(126, struct.pack("Ii", 0x20080522, 0), bytes(24))',
    "keyctl": "sc(250, 0, -3, 1)",
    "add key": 'sc(248, b"user", b"x", b"y", 1, -3)',
    "request key": 'sc(249, b"user", b"x", None, -3)',
    "bpf": "sc(321, 0, ctypes.create_string_buffer(128), 128)",
    "perf": "sc(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    "userfaultfd": "sc(323, 0)",
    "fanotify": "sc(300, 0, 0)",
    "module": "sc(175, None, 0, b'')",
    "module by descriptor": "sc(313, 3, b'', 0)",
    "kexec": "sc(246, 0, 0, None, 0)",
    "reboot": "sc(169, 1, 2, 3, None)",
    "swap": 'sc(167, b"/nowhere", 0)',
    "set the time": "sc(164, None, None)",
    "adjust the clock": "sc(227, 0, None)",
    "host name": 'sc(170, b"x", 1)',
    "personality": "sc(135, 0x0040000)",
    "port access": "sc(173, 0, 1, 1)",
    "quota": "sc(179, 0, None, 0, None)",
    "accounting": "sc(163, None)",
    "kernel log": "sc(103, 3, ctypes.create_string_buffer(10), 10)",
    "change root of descriptor": 'sc(303, -100, b".", None, None, 0)',
    "extended attribute": 'sc(188, b".", b"user.x", b"y", 1, 0)',
    "namespace file": 'read("/proc/self/ns/user")',
    "cpu vulnerability knob": "sc(157, 53, 0, 0, 0, 0)",
    "dumpable": "sc(157, 4, 1, 0, 0, 0)",
    "memory map knob": "sc(157, 35, 0, 0, 0, 0)",
    "quiet filter": "sc(317, 1, 0, None)",
    "landlock": "sc(444, None, 0, 1)",
}
DOORS = {**FILES, **NETWORK, **PROCESSES, **KERNEL}
IMPORT_MAY = {
    "fork",
    "vfork",
    "multiprocessing",
    "kill a sibling",
    "kill init",
    "kill the parent",
    "kill the group",
    "setsid",
    "quiet filter",
    "landlock",
}
"""What the process that loads a script must be able to do for itself, inside walls of its own."""


def script(facts: dict[str, object], *, at_import: bool) -> str:
    """The script that tries every door."""
    doors = {name: door for name, door in DOORS.items() if not (at_import and name in IMPORT_MAY)}
    listed = "\n".join(f"    {name!r}: lambda: {door}," for name, door in doors.items())
    return (IMPORT_TIME if at_import else RUN_TIME).format(facts=repr(facts), doors=listed)
