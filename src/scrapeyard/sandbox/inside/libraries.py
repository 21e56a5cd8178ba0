"""Which folders of this machine a script may read: the interpreter, and the packages it is to see."""

import sys
import sysconfig
from pathlib import Path

import scrapeyard_sdk
from scrapeyard.model import Environment

_SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/lib", "/lib64")


def sdk_folder() -> str:
    """Where the SDK is installed."""
    return str(Path(scrapeyard_sdk.__file__).parent)


def readable(environment: Environment | None) -> tuple[str, ...]:
    """Folders that the interpreter and its libraries live in, none inside another.

    Without an environment a script sees what we have installed; with one it sees that instead.
    """
    paths = sysconfig.get_paths()
    wanted = {*_SYSTEM, sys.base_prefix, paths["stdlib"], paths["platstdlib"], sdk_folder()}
    if environment is None:
        wanted |= {sys.prefix, *paths.values()}
    else:
        wanted.add(str(environment.packages))
    there = sorted(path for path in wanted if Path(path).is_dir() and path not in ("/", "/usr"))
    if sys.base_prefix == "/usr":
        there = sorted({*there, "/usr/local/lib"} - {"/usr/include"})
    return tuple(p for p in there if not any(p != other and p.startswith(other + "/") for other in there))


def others_can_read_all() -> bool:
    """Whether another user may enter every folder that a script without an environment reads."""
    folders = [Path(path) for path in readable(None)]
    return all(part.stat().st_mode & 0o005 == 0o005 for folder in folders for part in (folder, *folder.parents))
