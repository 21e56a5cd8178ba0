"""The port for a key management service: whoever holds the master key wraps and unwraps data keys."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class WrappedKey(Struct, frozen=True, kw_only=True):
    """A data key as the store keeps it."""

    number: int
    """From 1; the highest seals new values."""
    wrapped: bytes
    master: str
    """Name of the master key that wrapped it, for error messages. Not secret."""
    created_at: float
    swept: bool = False
    """Whether every value that was stored in clear before this key is sealed."""


class Masters(Protocol):
    """Master keys. One wraps; all unwrap, so that an old and a new one are valid during a rotation. Methods block for
    a moment; they are called at the start of a process and by a rotation, never for a run."""

    @property
    def current(self) -> str:
        """Name of the key that wraps."""

    def prepare(self, kept: Sequence[WrappedKey]) -> None:
        """Get ready, knowing the data keys that exist: where a master key may be created, only if there are none.
        Raises SettingsInvalid."""

    def wrap(self, key: bytes) -> bytes:
        """Encrypt a data key. Raises SettingsInvalid."""

    def unwrap(self, kept: WrappedKey) -> bytes:
        """The data key. Raises SettingsInvalid, with the remedy, if no master key fits."""
