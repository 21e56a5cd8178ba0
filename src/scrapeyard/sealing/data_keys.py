"""The keys that seal values, as a store has them: wrapped under the master key."""

import asyncio
import os
from collections.abc import Sequence
from typing import Protocol

from scrapeyard.sealing.port import Masters, WrappedKey
from scrapeyard.sealing.sealer import KEY_BYTES, Sealer


class DataKeys(Protocol):
    """The data keys. Every process reads them once, at its start."""

    async def all(self) -> list[WrappedKey]:
        """By number."""

    async def add_first(self, key: WrappedKey) -> None:
        """Add a data key, unless there is one."""

    async def mark_swept(self) -> None:
        """Nothing is left in clear."""

    async def rewrap(self, keys: Sequence[WrappedKey]) -> None:
        """Replace how data keys are wrapped: all of them, or none."""


async def load_keys(data_keys: DataKeys, masters: Masters, sealer: Sealer, now: float) -> list[WrappedKey]:
    """Give the sealer the data keys; make the first one if there is none. Raises SettingsInvalid."""
    kept = await data_keys.all()
    await asyncio.to_thread(masters.prepare, kept)
    if not kept:
        wrapped = await asyncio.to_thread(masters.wrap, os.urandom(KEY_BYTES))
        await data_keys.add_first(WrappedKey(number=1, wrapped=wrapped, master=masters.current, created_at=now))
        kept = await data_keys.all()  # another process may have been faster
    sealer.load({key.number: await asyncio.to_thread(masters.unwrap, key) for key in kept})
    return kept
