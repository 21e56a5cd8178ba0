"""The headers of an answer, kept as the client gives them and read as text when somebody asks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload

Pair = tuple[str, str]
"""Name and value."""


class RawHeaders(Protocol):
    """Headers as bytes. wreq's `HeaderMap` is one; it writes names in lower case and finds them in any."""

    def get(self, key: str) -> memoryview | None:
        """The first value of a name; None: there is none."""

    def get_all(self, key: str) -> list[memoryview]:
        """Every value of a name."""

    def __contains__(self, key: str) -> bool: ...

    def __iter__(self) -> Iterator[tuple[memoryview, memoryview]]: ...


class AnswerHeaders(Sequence[Pair]):
    """Pairs in their order, as a tuple of them would be; names in lower case. Most fetches ask for two of them, so the
    others stay bytes."""

    __slots__ = ("_pairs", "raw")

    def __init__(self, raw: RawHeaders) -> None:
        self.raw = raw
        self._pairs: tuple[Pair, ...] | None = None

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All of them as text, read once."""
        if self._pairs is None:
            self._pairs = tuple([(str(name, "latin-1"), str(value, "latin-1")) for name, value in self.raw])
        return self._pairs

    def first(self, name: str) -> str | None:
        """The first value of a name; None: there is none."""
        value = self.raw.get(name)
        return None if value is None else str(value, "latin-1")

    def has_any(self, names: Iterable[str]) -> bool:
        """Whether it has a header of one of these names, in lower case."""
        raw = self.raw
        for name in names:  # noqa: SIM110 - a generator costs more than the look
            if name in raw:
                return True
        return False

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> Pair | tuple[Pair, ...]:
        return self.pairs[index]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.pairs == tuple(other)

    def __hash__(self) -> int:
        return hash(self.pairs)

    def __repr__(self) -> str:
        return repr(self.pairs)


def has_any(headers: Sequence[Pair], names: Iterable[str]) -> bool:
    """Whether there is a header of one of these names, in lower case."""
    if isinstance(headers, AnswerHeaders):
        return headers.has_any(names)
    return not {name.lower() for name, _ in headers}.isdisjoint(names)
