"""The module `_multiprocessing` for processes that have no `/dev/shm`: its semaphores, made of threads' locks.

`multiprocessing.Lock` and everything built on it (`ThreadPool`, `Queue`) need named semaphores, which live in
`/dev/shm`. Runs of one scraper share a file system, so a folder there would be open to all of them. A script cannot
start a process anyway: locks between its threads are all it can use. A scraper's parent loads this file when the script
imports `_multiprocessing`, never earlier, because `threading` makes each fork slower.
"""

import threading

_RECURSIVE_MUTEX = 0


class SemLock:
    """As `_multiprocessing.SemLock`: a recursive lock or a semaphore, by `kind`."""

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:  # noqa: ARG002 - as there
        self.kind = kind
        self.maxvalue = maxvalue
        self.name = None
        self.handle = 0
        self._value = value
        self._owner = 0
        self._taken = 0
        self._changed = threading.Condition()

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Whether it was acquired in time."""
        if self.kind == _RECURSIVE_MUTEX and self._is_mine():
            self._taken += 1
            return True
        seconds = (None if timeout is None else max(0.0, timeout)) if block else 0.0
        with self._changed:
            if not self._changed.wait_for(lambda: self._value > 0, seconds):
                return False
            self._value -= 1
            self._owner = threading.get_ident()
            self._taken += 1
            return True

    def release(self) -> None:
        """Raises AssertionError or ValueError when it was not acquired."""
        if self.kind == _RECURSIVE_MUTEX:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._taken > 1:
                self._taken -= 1
                return
        with self._changed:
            if self._value >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            self._value += 1
            self._taken -= 1
            self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_mine(self) -> bool:
        return self._taken > 0 and self._owner == threading.get_ident()

    def _count(self) -> int:
        return self._taken

    def _get_value(self) -> int:
        return self._value

    def _is_zero(self) -> bool:
        return not self._value

    def _after_fork(self) -> None:
        self._taken = 0


def sem_unlink(name: str) -> None:
    """There are no names."""
