"""Identifiers that sort by the time they were made."""

import secrets
import time


def new_id(prefix: str) -> str:
    """A unique id such as `run_0199f0c2…`: 48 bits of milliseconds, then 80 random bits, in hex.

    Ids made later sort later (to the millisecond), so the store pages by id alone.
    """
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
