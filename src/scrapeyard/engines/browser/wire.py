"""The frames between a worker and the process that holds its browser. Both sides use these."""

import signal
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from scrapeyard.framed_process import Framing

MAX_FILES_BYTES: Final = 64 * 1024 * 1024
"""All files of evidence of one context together."""
FRAMING: Final = Framing(96 * 1024 * 1024)
TEMPORARY: Final = "tmp"
"""In the private folder of a host: temporary files of the browser."""
LIGHT: Final = "lightpanda"
"""Name of the light browser in a plan."""
STOP: Final = signal.SIGUSR1
"""Ends a supervisor. Not SIGTERM: that is sent to whole groups, and the worker decides what ends."""
HELLO: Final = b"H"
"""From the host, once: HostFacts."""
CALL: Final = b"C"
"""To the host: HostCall."""
CANCEL: Final = b"X"
"""To the host: number of a call to abandon. No answer follows."""
ANSWER: Final = b"A"
"""From the host: HostAnswer."""
EVENT: Final = b"E"
"""From the host: HostEvent."""


ABILITIES: Final = ("blocking", "dialogs", "evidence", "files", "frames", "layout", "looks", "ports", "storage", "tabs")
"""What browsers may lack. `files`: uploads and downloads; `layout`: sizes, scrolling, pictures, editable text; `looks`:
devices, user agents, speed of the network; `ports`: it opens no unsafe ones; `storage`: local storage that is kept."""


class HostPlan(Struct, frozen=True, kw_only=True):
    """What the process is told as its first argument, as JSON."""

    driver: str
    name: str
    executable: str
    """Empty: the driver's own download."""
    sandbox: str
    namespace: str
    arguments: tuple[str, ...]
    socket: str
    """Of the forward proxy."""
    folder: str
    """Private; everything that the browser writes goes there."""
    language: str
    """Of the whole browser."""


class HostFacts(Struct, frozen=True, kw_only=True):
    """What a started host has, for `scrapeyard doctor`."""

    driver: str
    browser: str
    version: str
    no_namespace: str = ""
    """Why the browser has no namespaces of its own; empty: it has."""
    no_sandbox: str = ""
    """Why Chromium's sandbox is off; empty: it is on."""
    no_video: str = ""
    """Why the driver cannot record videos; empty: it can."""
    abilities: tuple[str, ...] = ABILITIES
    """What it can do of what not every browser can."""
    failure: str = ""
    """Why there is no browser; the process ends then."""


class HostCall(Struct, frozen=True, kw_only=True, array_like=True):
    """`do`: `open` (`body`: HostContext as msgpack), `perform` (an operation as JSON), `close`, `watch`, `ping`."""

    number: int
    do: str
    context: int = 0
    body: bytes = b""
    raw: bytes = b""


class HostAnswer(Struct, frozen=True, kw_only=True, array_like=True):
    """To one call. `body`: JSON, or ContextEnd as msgpack."""

    number: int
    body: bytes = b"null"
    raw: bytes = b""
    reason: str = ""
    """Exit reason of a failure; empty: none."""
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class HostEvent(Struct, frozen=True, kw_only=True, array_like=True):
    """What happened. `log`: LogMessage as msgpack; `picture`: a JPEG of the live view."""

    context: int
    kind: Literal["log", "picture"]
    body: bytes


encode: Final = msgspec.msgpack.Encoder().encode
decode_call: Final = msgspec.msgpack.Decoder(HostCall).decode
decode_answer: Final = msgspec.msgpack.Decoder(HostAnswer).decode
decode_event: Final = msgspec.msgpack.Decoder(HostEvent).decode
decode_facts: Final = msgspec.msgpack.Decoder(HostFacts).decode
