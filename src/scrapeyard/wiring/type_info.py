"""Builds msgspec's type information before any thread exists.

msgspec builds it when a Struct is first used for decoding, and lets other threads see it half built. A thread that
decodes the same Struct at that moment reads a null pointer, and the process dies with SIGSEGV.
"""

import threading

import msgspec

_one_at_a_time = threading.Lock()


def build_type_info() -> None:
    """Build that of every Struct that is loaded. Call it after the imports and before the first thread is started.

    A Struct that msgspec cannot decode, such as one with a union of two custom types, has none and is passed over.
    """
    with _one_at_a_time:
        waiting = [msgspec.Struct]
        while waiting:
            struct = waiting.pop()
            waiting += type.__subclasses__(struct)
            try:
                msgspec.json.Decoder(struct)
            except (TypeError, NameError):
                continue
