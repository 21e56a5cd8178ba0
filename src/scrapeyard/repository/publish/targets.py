"""Where scrapers are published to: a folder, a bucket, a web server that takes PUT."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from scrapeyard.errors import BadRequest, SourceUnavailable
from scrapeyard.repository.publish.publish import PublishTarget
from scrapeyard.repository.sources.indexed.document import FILE_NAME, MAX_BYTES
from scrapeyard.repository.sources.indexed.objects import Absent, Objects
from scrapeyard.repository.sources.indexed.plain import MAX_OBJECTS, has_plain
from scrapeyard.repository.sources.indexed.stores import (
    bucket_store,
    check_bucket,
    login_headers,
    read_url,
    shown_url,
    web_store,
)
from scrapeyard.settings import SCHEMES, SourceSettings

_LOCK = ".index.lock"


def open_target(text: str, settings: SourceSettings, timeout_seconds: float) -> PublishTarget:
    """A folder, a bucket (`s3://`, `gs://`, `az://`), or a URL of http, https or file. Keys and region are those of
    `settings`; its token goes only to the server that `settings` names. Raises SettingsInvalid or BadRequest."""
    scheme = text.partition("://")[0] if "://" in text else ""
    if scheme in SCHEMES:
        return _bucket_target(text, settings, timeout_seconds)
    if scheme in ("http", "https"):
        url = read_url(text.removesuffix(FILE_NAME))
        return HttpTarget(url, _token(url, settings), timeout_seconds)
    if scheme not in ("", "file"):
        raise BadRequest(f"--to {scheme}://: write a folder, s3://bucket/prefix (or gs://, az://) or http(s)://…")
    return FolderTarget(Path(unquote(read_url(text).path)) if scheme else Path(text))


def _bucket_target(text: str, settings: SourceSettings, timeout_seconds: float) -> "BucketTarget":
    url = urlsplit(text)
    there = settings.model_copy(update={"type": url.scheme, "bucket": url.netloc, "prefix": url.path})
    check_bucket(there)
    return BucketTarget(Objects(partial(bucket_store, there, timeout_seconds), text.rstrip("/"), timeout_seconds))


def _token(url: SplitResult, settings: SourceSettings) -> str:
    known = urlsplit(settings.url.get_secret_value())
    same = (known.scheme, known.hostname, known.port) == (url.scheme, url.hostname, url.port)
    return settings.token.get_secret_value() if same and settings.type == "http" else ""


class FolderTarget:
    """A folder, created if missing. Publishers take turns through a lock file in it; readers need no lock."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    async def read_index(self) -> tuple[bytes | None, str]:
        """As the port says."""
        text = await asyncio.to_thread(self._read)
        return text, _mark(text)

    async def put_archive(self, path: str, file: Path) -> None:
        """As the port says."""
        await asyncio.to_thread(self._write, path, file)

    async def write_index(self, text: bytes, mark: str) -> bool:
        """As the port says."""
        return await asyncio.to_thread(self._swap, text, mark)

    def _read(self) -> bytes | None:
        try:
            with (self._folder / FILE_NAME).open("rb") as stream:
                return stream.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fault(error) from None

    def _swap(self, text: bytes, mark: str) -> bool:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / _LOCK).open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _mark(self._read()) != mark:
                    return False
                _replace(self._folder / FILE_NAME, lambda stream: stream.write(text))
        except BlockingIOError:
            return False  # another publisher writes at this moment
        except OSError as error:
            raise self._fault(error) from None
        return True

    def _write(self, path: str, file: Path) -> None:
        try:
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            with file.open("rb") as source:
                _replace(self._folder / path, partial(shutil.copyfileobj, source))
        except OSError as error:
            raise self._fault(error) from None

    def _fault(self, error: OSError) -> SourceUnavailable:
        return SourceUnavailable(f"{error.filename or self.name}: cannot be written: {error.strerror}")


class BucketTarget:
    """A prefix of a bucket. The index is replaced only if it is still the one that was read."""

    def __init__(self, objects: Objects) -> None:
        self.name = objects.place
        self._objects = objects

    async def read_index(self) -> tuple[bytes | None, str]:
        """As the port says. Refuses a prefix that holds scrapers in plain folders: an index would hide them."""
        try:
            meta, text = await self._objects.read(FILE_NAME, MAX_BYTES)
        except Absent:
            if has_plain(await self._objects.under("", MAX_OBJECTS)):
                raise BadRequest(
                    f"{self.name}: scrapers lie here in plain folders, and an index would hide them; publish elsewhere"
                ) from None
            return None, ""
        return text, meta.etag

    async def put_archive(self, path: str, file: Path) -> None:
        """As the port says."""
        async with self._objects.opened(path) as store:
            await obstore.put_async(store, path, file)

    async def write_index(self, text: bytes, mark: str) -> bool:
        """As the port says."""
        async with self._objects.opened(FILE_NAME) as store:
            try:
                await obstore.put_async(
                    store,
                    FILE_NAME,
                    text,
                    mode={"e_tag": mark} if mark else "create",
                    attributes={"Content-Type": "application/json"},
                )
            except (AlreadyExistsError, PreconditionError):
                return False
        return True


class HttpTarget:
    """A web server that accepts PUT. It may ignore `If-Match`, so the index is read again after it was written. Such a
    server may still lose one of two publishers that write at the same moment."""

    def __init__(self, url: SplitResult, token: str, timeout_seconds: float) -> None:
        self.name = shown_url(url)
        self._url = url
        self._headers = login_headers(url, token)
        self._timeout_seconds = timeout_seconds
        self._objects = self._opened(self._headers)

    async def read_index(self) -> tuple[bytes | None, str]:
        """As the port says."""
        try:
            meta, text = await self._objects.read(FILE_NAME, MAX_BYTES)
        except Absent:
            return None, "none"
        return text, meta.etag

    async def put_archive(self, path: str, file: Path) -> None:
        """As the port says."""
        async with self._objects.opened(path) as store:
            await obstore.put_async(store, path, file, use_multipart=False)

    async def write_index(self, text: bytes, mark: str) -> bool:
        """As the port says."""
        condition = {"If-None-Match": "*"} if mark == "none" else {"If-Match": mark} if mark else {}
        async with self._opened({**self._headers, **condition}).opened(FILE_NAME) as store:
            try:
                await obstore.put_async(store, FILE_NAME, text, use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        return (await self.read_index())[0] == text

    def _opened(self, headers: dict[str, str]) -> Objects:
        return Objects(partial(web_store, self._url, headers, self._timeout_seconds), self.name, self._timeout_seconds)


def _mark(text: bytes | None) -> str:
    return "" if text is None else hashlib.sha256(text).hexdigest()


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file atomically and durably, even across a power cut."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(number, "wb") as stream:
            write(stream)
            stream.flush()
            os.fchmod(number, 0o644)
            os.fsync(number)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
