"""Pages of a crawl as a folder of markdown files, one for each page, named for its path."""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from scrapeyard.cli.common.inputs import whole_file
from scrapeyard.errors import BadRequest

_MAX_NAME = 100
"""Maximum bytes of one part of a path; file systems take 255, and an ending may follow."""
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\\/:*?"<>|\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+')
_NOT_YAML = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_HTML = re.compile(r"\.(?:x?html?)$", re.IGNORECASE)
_HEAD = ("url", "title", "description", "status", "fetched_at", "duplicate_of")


class PageFolder:
    """Writes pages below `folder`, never outside of it. The same pages in the same order get the same names."""

    def __init__(self, folder: Path) -> None:
        """Raises BadRequest if the folder cannot be made."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadRequest(f"{folder}: cannot be made: {error.strerror}") from None
        self._root = folder.resolve()
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._home: str | None = None

    def write(self, page: dict[str, Any]) -> Path:
        """Write a row of the export `pages`; returns the file."""
        path = self._root.joinpath(*self._place(str(page["url"])))
        if not path.parent.resolve().is_relative_to(self._root):
            raise BadRequest(f"{path.parent}: leads out of {self._root} by a link; remove it")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadRequest(f"{path.parent}: cannot be made: {error.strerror}") from None
        with whole_file(path) as stream:
            stream.write(_document(page).encode("utf-8", "replace"))
        return path

    def _place(self, url: str) -> tuple[str, ...]:
        """Where a page goes: a path that no other page has, also where file names ignore case."""
        host = (urlsplit(url).hostname or "").removeprefix("www.")
        self._home = host if self._home is None else self._home
        *folders, stem = [*([] if host == self._home else [_safe(host)]), *parts_of(url)]
        number = 1
        while not self._is_free(folders, name := f"{stem}.md" if number == 1 else f"{stem}-{number}.md"):
            number += 1
        return (*folders, name)

    def _is_free(self, folders: list[str], name: str) -> bool:
        file = "/".join([*folders, name]).casefold()
        above = {"/".join(folders[:end]).casefold() for end in range(1, len(folders) + 1)}
        if file in self._files or file in self._folders or above & self._files:
            return False
        self._files.add(file)
        self._folders |= above
        return True


def parts_of(url: str) -> list[str]:
    """The path of a page's file, without its ending: `docs/index` for https://shop.example/docs/."""
    address = urlsplit(url)
    path = unquote(address.path)
    parts = [_safe(part) for part in path.split("/") if part.strip(". ")]
    if not parts or path.endswith("/"):
        parts.append("index")
    last = _HTML.sub("", parts[-1]) or "index"
    parts[-1] = _safe(f"{last}-{unquote(address.query)}") if address.query else last
    return parts


def _safe(text: str) -> str:
    """One part of a path that every file system takes: not hidden, nothing but a name, not too long."""
    name = _UNSAFE.sub("-", text).strip(" ")
    name = "_" + name[1:] if name.startswith(".") else name
    if len(name.encode()) <= _MAX_NAME:
        return name.rstrip(". ") or "_"
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    cut = name.encode()[: _MAX_NAME - 9].decode("utf-8", "ignore")
    return f"{cut}-{digest}"


def _document(page: dict[str, Any]) -> str:
    facts = {**page, "status": page.get("http_status")}
    head = "".join(f"{name}: {_yaml(facts[name])}\n" for name in _HEAD if facts.get(name) is not None)
    return f"---\n{head}---\n\n{page.get('markdown') or ''}\n"


def _yaml(value: Any) -> str:
    """A scalar as YAML: JSON is YAML, but for a few characters."""
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_pages(lines: Iterable[bytes], folder: Path) -> int:
    """Write the pages of an export `pages` as JSONL that were read; returns how many."""
    files, count = PageFolder(folder), 0
    for line in lines:
        page = json.loads(line)
        if page["item_status"] == "success" and (page["http_status"] or 200) < 400:
            files.write(page)
            count += 1
    return count
