"""Master keys: from the settings, from a file, or behind a command that speaks to a key management service."""

import base64
import binascii
import hashlib
import os
import shlex
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scrapeyard.errors import SettingsInvalid
from scrapeyard.sealing.port import WrappedKey
from scrapeyard.sealing.sealer import KEY_BYTES, NONCE_BYTES

FILE: Final = "master.key"
"""In the data directory; created at the first start if the settings give no key."""
_NAME_BYTES: Final = 8
_PURPOSE: Final = b"scrapeyard data key"
_SECONDS: Final = 30.0
_MAX_FILE: Final = 64 * 1024
_REMEDY: Final = (
    "give every process the same master key: secrets.master_key, secrets.master_key_file, or the file master.key of "
    "the data directory where the first one started; a key that was replaced goes below secrets.old_master_keys"
)


class LocalMasters:
    """Keys in memory, the current one first."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._keys = {key_name(key): key for key in keys}

    @property
    def current(self) -> str:
        """Name of the first key."""
        return next(iter(self._keys), "")

    def prepare(self, kept: Sequence[WrappedKey]) -> None:
        """Nothing to do: the keys are given."""

    def wrap(self, key: bytes) -> bytes:
        """With the first key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - loads slowly

        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(self._keys[self.current]).encrypt(nonce, key, _PURPOSE)

    def unwrap(self, kept: WrappedKey) -> bytes:
        """With the key of that name. Raises SettingsInvalid."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        master = self._keys.get(kept.master)
        if master is None:
            have = f"the keys here are {', '.join(self._keys)}" if self._keys else "there is none here"
            raise SettingsInvalid(
                f"secrets: the database has secrets sealed under master key {kept.master}, and {have}; {_REMEDY}"
            )
        try:
            return AESGCM(master).decrypt(kept.wrapped[:NONCE_BYTES], kept.wrapped[NONCE_BYTES:], _PURPOSE)
        except (InvalidTag, ValueError):
            raise SettingsInvalid(
                f"secrets: data key {kept.number} in the database is damaged; restore the database from a backup"
            ) from None


class FileMasters(LocalMasters):
    """Keys in a file, one a line, the current one first. With `create`, the file is made when the first data key is."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        super().__init__()
        self._path = path
        self._create = create

    def prepare(self, kept: Sequence[WrappedKey]) -> None:
        """Read the file; make it if it is missing, may be made, and nothing is sealed yet. Raises SettingsInvalid."""
        if self._create and not kept and not self._path.exists():
            self._make()
        self._keys = {key_name(key): key for key in self._read()} if self._path.exists() or not self._create else {}

    @property
    def is_own(self) -> bool:
        """Whether we made the file, and may change it."""
        return self._create

    def add(self) -> None:
        """Put a new key in front of the others, durably. Raises OSError."""
        self._write([os.urandom(KEY_BYTES), *self._keys.values()])

    def drop_old(self) -> None:
        """Leave the first key alone, durably. Raises OSError."""
        self._write(list(self._keys.values())[:1])

    def _make(self) -> None:
        """Of two processes that make it at once, one wins, and both read its key. A cluster may have no data directory
        yet."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = self._written([os.urandom(KEY_BYTES)])
        try:
            os.link(own, self._path)
        except FileExistsError:
            pass
        finally:
            own.unlink()

    def _write(self, keys: Sequence[bytes]) -> None:
        self._written(keys).replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._keys = {key_name(key): key for key in keys}

    def _written(self, keys: Sequence[bytes]) -> Path:
        own = self._path.with_name(f"{self._path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        with os.fdopen(os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
            stream.write(b"".join(base64.b64encode(key) + b"\n" for key in keys))
            stream.flush()
            os.fsync(stream.fileno())
        return own

    def _read(self) -> list[bytes]:
        try:
            with self._path.open("rb") as stream:
                mode = os.fstat(stream.fileno()).st_mode
                text = stream.read(_MAX_FILE)
        except OSError as error:
            raise SettingsInvalid(f"secrets: cannot read the master key in {self._path}: {error.strerror}") from None
        if mode & 0o027:
            raise SettingsInvalid(
                f"secrets: {self._path} is open to others (mode {stat.S_IMODE(mode):03o}); chmod it to 600"
            )
        keys = [read_key(line, str(self._path)) for line in text.decode("ascii", "replace").split()]
        if not keys:
            raise SettingsInvalid(f"secrets: {self._path} is empty; restore the master key from a backup")
        return keys


class CommandMasters:
    """A command that wraps and unwraps: it is called with `wrap` or `unwrap` as its last argument, gets base64 on stdin
    and answers in base64 on stdout. The master key never comes here."""

    current = "command"

    def __init__(self, command: str) -> None:
        self._command = shlex.split(command)

    def prepare(self, kept: Sequence[WrappedKey]) -> None:
        """Nothing to do: the service has the key."""

    def wrap(self, key: bytes) -> bytes:
        """Raises SettingsInvalid."""
        return self._call("wrap", key)

    def unwrap(self, kept: WrappedKey) -> bytes:
        """Raises SettingsInvalid."""
        key = self._call("unwrap", kept.wrapped)
        if len(key) != KEY_BYTES:
            raise SettingsInvalid(f"secrets.kms_command: unwrap answered {len(key)} bytes, not {KEY_BYTES}")
        return key

    def _call(self, verb: str, given: bytes) -> bytes:
        try:
            done = subprocess.run(
                [*self._command, verb],
                input=base64.b64encode(given),
                capture_output=True,
                timeout=_SECONDS,
                check=True,
            )
            return base64.b64decode(done.stdout.strip(), validate=True)
        except subprocess.CalledProcessError as error:
            words = error.stderr.decode("utf-8", "replace").strip()[-300:]
            raise SettingsInvalid(f"secrets.kms_command: {verb} ended with {error.returncode}: {words}") from None
        except (OSError, subprocess.TimeoutExpired, binascii.Error) as error:
            raise SettingsInvalid(f"secrets.kms_command: {verb} failed: {type(error).__name__}") from None


def key_name(key: bytes) -> str:
    """A short name that says nothing about the key."""
    return hashlib.sha256(b"scrapeyard master key " + key).hexdigest()[: 2 * _NAME_BYTES]


def read_key(text: str, where: str) -> bytes:
    """A key from base64. Raises SettingsInvalid, without the text."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingsInvalid(f"{where}: a key is {KEY_BYTES} bytes in base64; make one with: openssl rand -base64 32")
    return key
