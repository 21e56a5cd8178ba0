"""What operators wrote for sites and proxies, read from the file of an embedded store without opening the store: that
would migrate a database that a server may be using, and load slowly."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import msgspec

from scrapeyard.errors import StoreUnavailable
from scrapeyard.sealing.port import Masters, WrappedKey
from scrapeyard.sealing.sealer import Sealer
from scrapeyard.store.ports.overrides import KeptPool, SiteRules, opened_pool

T = TypeVar("T", bound=msgspec.Struct)
_BUSY_SECONDS = 10.0


class WrittenOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """The rules and the pools."""

    rules: tuple[SiteRules, ...] = ()
    pools: tuple[KeptPool, ...] = ()


def read_written(file: Path, masters: Masters) -> WrittenOverrides:
    """Nothing, if no store has made its tables there yet. Raises StoreUnavailable if the file cannot be read, and
    SettingsInvalid if the master key is missing that its pools are sealed under."""
    try:
        with closing(
            sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", timeout=_BUSY_SECONDS, uri=True)
        ) as database:
            pools = _rows(database, "proxy_pools", KeptPool)
            keys = _rows(database, "data_keys", WrappedKey)
            return WrittenOverrides(rules=_rows(database, "sites", SiteRules), pools=_opened(pools, keys, masters))
    except (sqlite3.Error, msgspec.ValidationError) as error:
        raise StoreUnavailable(f"{file}: rules of sites and pools of proxies cannot be read: {error}") from None


def _opened(pools: Sequence[KeptPool], keys: Sequence[WrappedKey], masters: Masters) -> tuple[KeptPool, ...]:
    if not pools or not keys:
        return tuple(pools)
    masters.prepare(keys)
    sealer = Sealer()
    sealer.load({key.number: masters.unwrap(key) for key in keys})
    return tuple(pool for each in pools if (pool := opened_pool(each, sealer)) is not None)


def _rows(database: sqlite3.Connection, table: str, kind: type[T]) -> tuple[T, ...]:
    fields: Sequence[str] = kind.__struct_fields__
    if not database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone():
        return ()
    found = database.execute(f"SELECT {', '.join(fields)} FROM {table} ORDER BY 1")  # noqa: S608  names of ours
    rows = [dict(zip(fields, row, strict=True)) for row in found]
    return msgspec.convert(rows, tuple[kind, ...], strict=False)  # type: ignore[valid-type]  # 1 is true there
