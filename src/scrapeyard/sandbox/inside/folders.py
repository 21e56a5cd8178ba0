"""Measuring and removing folders that a script has filled, however deep, wide or locked. Standard library only.

Nothing here follows a symbolic link, recurses, or uses a path of more than one name: a script may nest folders deeper
than Python's stack or the kernel's maximum path length.
"""

import os
import stat

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_ENTRIES = 4096
"""A folder with more entries than this counts as ENDLESS."""
ENDLESS = 1 << 60


def measure(folder: str) -> int:
    """Bytes on disk below the folder, ENDLESS when it holds too many entries, 0 when it is not there. Folders that a
    script has locked are unlocked: their content counts, too."""
    try:
        waiting = [_open_unlocked(folder)]
    except OSError:  # the run has just ended, and its folder is gone
        return 0
    used = seen = 0
    try:
        while waiting:
            place = waiting.pop()
            try:
                seen, more = _measure_one(place, seen, waiting)
            finally:
                os.close(place)
            used += more
            if seen > MAX_ENTRIES:
                return ENDLESS
    finally:
        for place in waiting:
            os.close(place)
    return used


def _measure_one(place: int, seen: int, waiting: list[int]) -> tuple[int, int]:
    """Measure one folder's files and queue its subfolders. Too many open folders count as too many entries."""
    used = 0
    with os.scandir(place) as entries:
        for entry in entries:
            seen += 1
            if seen > MAX_ENTRIES:
                break
            try:
                used += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(_open_unlocked(entry.name, place))
            except OSError:  # the script has removed it meanwhile
                continue
            if len(waiting) > 128:
                return MAX_ENTRIES + 1, used
    return seen, used


def _open_unlocked(name: str, top: int | None = None) -> int:
    """Open a folder; one that its owner may not list is opened to the owner first. Raises OSError.

    That is done by a handle: a script that still runs may put a link in the folder's place, and chmod would follow it.
    """
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        here = f"/proc/self/fd/{handle}"
        if os.fstat(handle).st_mode & 0o500 != 0o500:
            os.chmod(here, 0o700)  # noqa: PTH101
        return os.open(here, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def unlinked(pid: int) -> int:
    """Bytes of deleted files that a process still holds open."""
    used = 0
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - looked at several times a second
    except OSError:
        return 0
    for name in names:
        try:
            found = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
        except OSError:  # closed meanwhile
            continue
        if stat.S_ISREG(found.st_mode) and not found.st_nlink:
            used += found.st_blocks * 512
    return used


def remove(folder: str) -> None:
    """Remove a folder with all that is in it. What cannot be removed stays, and nothing is raised."""
    try:
        top = os.open(folder, _DIRECTORY)
    except OSError:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    try:
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        return


def _empty(top: int) -> None:
    """Move every folder found up to the top, so that no depth remains, then remove it there."""
    moved = 0
    waiting = _clear(top)
    while waiting:
        name = waiting.pop()
        try:
            place = _open_locked(top, name)
        except OSError:  # it stays, and so does the folder around it: the next worker's start removes both
            continue
        try:
            for inner in _clear(place):
                moved += 1
                flat = f".{moved}.removed"
                try:
                    os.rename(inner, flat, src_dir_fd=place, dst_dir_fd=top)
                except OSError:
                    continue
                waiting.append(flat)
        finally:
            os.close(place)
        try:
            os.rmdir(name, dir_fd=top)
        except OSError:
            continue


def _open_locked(top: int, name: str) -> int:
    try:
        place = os.open(name, _DIRECTORY, dir_fd=top)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=top)
        place = os.open(name, _DIRECTORY, dir_fd=top)
    os.fchmod(place, 0o700)
    return place


def _clear(place: int) -> list[str]:
    """Unlink the files of one folder; the names of its folders."""
    inner = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
                continue
            try:
                os.unlink(entry.name, dir_fd=place)
            except OSError:
                continue
    return inner
