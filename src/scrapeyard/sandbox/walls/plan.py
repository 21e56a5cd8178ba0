"""What the worker tells the zygote to build: a plain description that travels as JSON. Standard library only."""

import json
import struct
from dataclasses import asdict, dataclass, field

NAMES = ("namespaces", "root", "user", "landlock", "seccomp", "rlimits")
"""Every wall, in the order in which they are raised. `doctor` prints these names; `sandbox.without` takes them."""

ROOT_FOLDER = "/scrapeyard/script"
WORK_FOLDER = "/scrapeyard/work"
"""Where a walled script sees its files and its run folders."""

FORK = struct.Struct("<QQ")
"""What the worker tells a parent to fork: the number of the child's slot, and how many CPU seconds it may use."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one scraper's parent is enclosed and what it loads."""

    folder: str
    """The scraper's files on the host."""
    entry: str
    walls: tuple[str, ...]
    readable: tuple[str, ...]
    """Interpreter and libraries."""
    packages: tuple[str, ...]
    """Folders added to the script's path, once the walls stand."""
    mount_point: str
    """An empty folder on the host to build the new root on."""
    scratch: str
    """Where run folders go when there is no root of our own."""
    user_id: int | None
    """Run as this user; None when we are not root."""
    data_bytes: int
    """Private writable memory, beyond what the zygote has."""
    disk_bytes: int
    file_bytes: int
    processes: int
    open_files: int = 256
    direct_network: bool = False
    certificates: tuple[str, ...] = ()
    """Besides the usual places, where the certificates for the direct network are."""
    environment: dict[str, str] = field(default_factory=dict)

    def has(self, wall: str) -> bool:
        """Whether this wall is to be raised."""
        return wall in self.walls

    def encode(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Plan":
        """From JSON. Raises ValueError or TypeError when it is not a plan."""
        fields = json.loads(text)
        for name in ("walls", "readable", "packages", "certificates"):
            fields[name] = tuple(fields[name])
        return cls(**fields)

    @property
    def script_folder(self) -> str:
        """Where the script's process sees its own files."""
        return ROOT_FOLDER if self.has("root") else self.folder

    @property
    def work_folder(self) -> str:
        """Where the script's process sees run folders."""
        return WORK_FOLDER if self.has("root") else self.scratch
