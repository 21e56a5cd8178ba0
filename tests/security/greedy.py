"""Scripts that take too much or end badly: what they do, and how a run and a load of them must end."""

from dataclasses import dataclass, field

START = "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
PRELUDE = "import atexit, ctypes, mmap, os, re, signal, sys, threading, time\n"


@dataclass(frozen=True, kw_only=True)
class Greed:
    """`body` is what a function does; `run` and `load` are the exit reasons that are right for it."""

    body: str
    run: set[str]
    load: set[str] = field(default_factory=set)
    """Empty: not tried while loading."""
    limits: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Processor time is short where it is what ends the script, and plenty where it must not matter."""
        if CPU & (self.run | self.load):
            self.limits.setdefault("cpu_seconds", 0.2)

    @property
    def at_run(self) -> str:
        return f"{PRELUDE}def run(ctx):\n{self._indented}"

    @property
    def at_import(self) -> str:
        return f"{PRELUDE}def attack():\n{self._indented}\nattack()\ndef run(ctx): return 'harmless'\n"

    @property
    def _indented(self) -> str:
        return "".join(f"    {line}\n" for line in self.body.strip().splitlines())


CPU, MEMORY, DISK, INVALID, TIME = {"cpu_limit"}, {"memory_limit"}, {"disk_limit"}, {"scraper_invalid"}, {"timeout"}
QUICK = {"wall_seconds": 1.0}

GREEDY = {
    "spin": Greed(body="while True: pass", run=CPU, load=CPU),
    "power": Greed(body="return len(str(9 ** (9 ** 9)))", run=CPU, load=CPU),
    "regex": Greed(body="re.match(r'(a+)+$', 'a' * 60 + 'b')", run=CPU, load=CPU),
    "spin-thread": Greed(
        body="def spin():\n    while True: pass\nthreading.Thread(target=spin, daemon=True).start()\ntime.sleep(600)",
        run=CPU,
        load=CPU,
    ),
    "deaf-spin": Greed(
        body="for n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "while True: pass",
        run=CPU,
        load=CPU,
    ),
    "sleep": Greed(body="time.sleep(600)", run=TIME, limits=QUICK),
    "deaf-sleep": Greed(
        body="signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(600)", run=TIME, limits=QUICK
    ),
    "block-signals": Greed(
        body="signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nsignal.pause()", run=TIME, limits=QUICK
    ),
    "bytearray": Greed(body="return len(bytearray(1 << 30))", run=MEMORY, load=MEMORY),
    "list": Greed(body="kept = []\nwhile True: kept.append(bytes(1 << 20))", run=MEMORY, load=MEMORY),
    "mmap-private": Greed(
        body="kept = []\nwhile True:\n"
        "    kept.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))\n"
        "    kept[-1].write(b'x' * (1 << 20))",
        run=MEMORY | DISK | {"script_error"},
        load=MEMORY | INVALID,
    ),
    "mmap-shared": Greed(
        body="kept = []\nfor _ in range(200):\n"
        "    kept.append(mmap.mmap(-1, 1 << 20))\n    kept[-1].write(b'x' * (1 << 20))\n"
        "    kept[-1].madvise(mmap.MADV_DONTNEED)\n"
        "time.sleep(600)",  # pages outside the resident set are seen by nobody, so there must be none
        run={"script_error"},
        load=INVALID,
    ),
    "mmap-grows": Greed(
        body="kept = [mmap.mmap(-1, 1 << 30, flags=0x122)]\nkept[0].write(bytes(1 << 30))\ntime.sleep(600)",
        run={"script_error"},
        load=INVALID,
    ),
    "mmap-files": Greed(
        body="kept = []\nfor n in range(100):\n    with open(str(n), 'wb+') as file:\n"
        "        file.truncate(1 << 20)\n        kept.append(mmap.mmap(file.fileno(), 1 << 20))\n"
        "    kept[-1].write(b'x' * (1 << 20))\n    kept[-1].madvise(mmap.MADV_DONTNEED)\n"
        "time.sleep(600)",
        run=DISK | {"crashed"},  # a write to a mapping without room ends in SIGBUS
        load=DISK | INVALID,
    ),
    "stacks": Greed(
        body=f"threading.stack_size(32 << 20)\nwhile True: {START}",
        run={"process_limit", "script_error", "memory_limit"},
        load=INVALID | {"process_limit", "memory_limit"},
    ),
    "threads": Greed(
        body=f"threading.stack_size(65536)\nwhile True: {START}",
        run={"process_limit", "script_error", "memory_limit"},
        load=INVALID | {"process_limit", "memory_limit"},
    ),
    "one-file": Greed(
        body="with open('big', 'wb') as file:\n    while True: file.write(bytes(1 << 20))", run=DISK, load=DISK
    ),
    "many-files": Greed(
        body="n = 0\nwhile True:\n    n += 1\n    with open(str(n), 'wb') as file: file.write(bytes(1 << 18))",
        run=DISK,
        load=DISK,
    ),
    "sparse": Greed(body="with open('big', 'wb') as file: file.truncate(1 << 40)", run=DISK, load=DISK),
    "unlinked": Greed(
        body="kept = []\nfor _ in range(32):\n    kept.append(open('gone', 'wb+'))\n    os.unlink('gone')\n"
        "    kept[-1].write(bytes(1 << 18))\n    kept[-1].flush()\n"
        "time.sleep(600)",
        run=DISK,
        load=DISK,
    ),
    "empty-files": Greed(
        body="n = 0\nwhile True:\n    n += 1\n    open(str(n), 'w').close()", run=DISK | CPU, load=DISK | CPU
    ),
    "folders": Greed(body="n = 0\nwhile True:\n    n += 1\n    os.mkdir(str(n))", run=DISK | CPU, load=DISK | CPU),
    "deep-folders": Greed(
        body="for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n"
        "time.sleep(0.7)\nos.chmod('.', 0)\nreturn 'deep'",
        run={"succeeded"},
    ),
    "locked-folders": Greed(
        body="os.makedirs('a/b/c')\nopen('a/b/c/f', 'w').close()\nos.chmod('a/b', 0)\nos.chmod('a', 0)\nreturn 1",
        run={"succeeded"},
    ),
    "lines": Greed(
        body="for n in range(300_000): print(n)", run={"succeeded", "cpu_limit"}, load={"succeeded", "cpu_limit"}
    ),
    "no-newline": Greed(body="for _ in range(100): sys.stdout.write('x' * 500_000)", run={"succeeded"}),
    "bare-flood": Greed(
        body="while True: os.write(1, b'x' * 65536)", run=DISK | {"crashed"}, load={"cpu_limit", "timeout"}
    ),
    "huge-result": Greed(body="return 'x' * (1 << 30)", run=MEMORY),
    "large-result": Greed(body="return 'x' * (1 << 21)", run={"output_limit"}),
    "endless-records": Greed(body="while True: yield {'a': 1}", run={"output_limit", "cpu_limit"}),
    "empty-records": Greed(body="while True: yield ''", run={"output_limit", "cpu_limit"}),
    "nested": Greed(body="value = []\nfor _ in range(10 ** 5): value = [value]\nreturn value", run={"bad_result"}),
    "unlimited-nesting": Greed(
        body="sys.setrecursionlimit(10 ** 6)\nvalue = []\nfor _ in range(20_000): value = [value]\nreturn value",
        run={"bad_result", "crashed"},
    ),
    "nan": Greed(body="return float('nan')", run={"bad_result"}),
    "surrogate": Greed(body="return {'\\ud800': 1}", run={"bad_result"}),
    "recursion": Greed(
        body="sys.setrecursionlimit(10 ** 9)\nthreading.stack_size(0)\ndef f(): return [f() for _ in [0]]\nf()",
        run={"crashed", "memory_limit", "cpu_limit", "script_error"},
        load=INVALID | MEMORY | CPU,
    ),
    "segfault": Greed(body="ctypes.string_at(0)", run={"crashed"}, load=INVALID),
    "abort": Greed(body="os.abort()", run={"crashed"}, load=INVALID),
    "leave": Greed(body="os._exit(0)", run={"crashed"}, load=INVALID),
    "x32": Greed(body="ctypes.CDLL(None).syscall(0x40000000 | 39)", run={"crashed"}, load=INVALID),
    "hanging-exit": Greed(body="atexit.register(time.sleep, 600)\nreturn 1", run={"succeeded"}, load={"succeeded"}),
    "lasting-thread": Greed(
        body="threading.Thread(target=time.sleep, args=(600,)).start()\nreturn 1",
        run={"succeeded"},
        load={"succeeded"},
    ),
    "fork-bomb": Greed(
        body="while True:\n    if os.fork() == 0: time.sleep(600)",
        run={"script_error"},
        load=INVALID | {"process_limit", "timeout"},
    ),
    "daemon": Greed(
        body="if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)\nos.wait()",
        run={"script_error"},
        load=INVALID | {"process_limit"},
    ),
    "many-descriptors": Greed(
        body="kept = []\nwhile True: kept.append(os.open('/dev/null', 0))",
        run={"script_error", "crashed"},
        load=INVALID,
    ),
    "signal-without-name": Greed(body="os.kill(os.getpid(), 33)\ntime.sleep(600)", run={"crashed"}),
    "closed-descriptors": Greed(body="os.closerange(0, 1024)\ntime.sleep(600)", run={"crashed"}, load=INVALID),
}
