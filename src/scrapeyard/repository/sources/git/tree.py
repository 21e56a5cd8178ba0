"""Trees of a Git repository: finding scrapers in them, and listing the files of one. Nothing is checked out.

Trees are untrusted: a few objects may expand to millions of entries, and names may lead anywhere. Every walk counts
what it visits.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.archive.files import MAX_BYTES, MAX_DEPTH, MAX_FILES, MAX_FOLDERS, is_skipped
from scrapeyard.repository.archive.files import MAX_FOLDER_DEPTH as FOLDER_DEPTH
from scrapeyard.repository.manifest.manifest import FILE_NAME
from scrapeyard.repository.sources.git.objects import GitObjects, ObjectsBroken, ObjectTooLarge

MAX_TREE = 8 << 20
"""Bytes of one tree: about 200,000 names."""
MAX_KEPT = 500_000
"""Names remembered between looks."""
MAX_LINK = 4096
MAX_LINKS = 8

FOLDER, FILE, LINK, REPOSITORY = 0o040000, 0o100000, 0o120000, 0o160000
_KIND = 0o170000
_MODE = re.compile(rb"[0-7]{5,7}")


class TreeNode(Struct, frozen=True, array_like=True):
    """One name in a tree."""

    name: str
    kind: int
    """FOLDER, FILE, LINK or REPOSITORY (a submodule)."""
    id: str


class Spot(Struct, frozen=True, kw_only=True):
    """A folder with a manifest."""

    path: str
    """Path from the searched root, with slashes; empty for the root itself."""
    tree: str
    manifest: TreeNode


class TreeFile(Struct, frozen=True, kw_only=True):
    """A file of a scraper."""

    name: str
    blob: str


class Trees:
    """A cache of trees by id, since commits share most of them. Blocking; raises ObjectsBroken."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[TreeNode, ...]] = {}
        self._names = 0

    def read(self, objects: GitObjects, tree: str) -> tuple[TreeNode, ...]:
        """The names in a tree. Raises ScraperInvalid for one larger than MAX_TREE."""
        found = self._kept.get(tree)
        if found is None:
            try:
                found = tuple(_parse(objects.read(tree, "tree", MAX_TREE), len(tree) // 2))
            except ObjectTooLarge:
                raise ScraperInvalid(f"a folder with a list of names over {MAX_TREE >> 20} MB; split it") from None
            self._keep(tree, found)
        return found

    def _keep(self, tree: str, nodes: tuple[TreeNode, ...]) -> None:
        self._names += len(nodes) + 1
        if self._names > MAX_KEPT:
            self._kept.clear()
            self._names = len(nodes) + 1
        self._kept[tree] = nodes

    def below(self, objects: GitObjects, tree: str, path: str) -> str | None:
        """The tree of a folder; None when there is no such folder."""
        for part in PurePosixPath(path).parts:
            node = next((node for node in self.read(objects, tree) if node.name == part), None)
            if node is None or node.kind != FOLDER:
                return None
            tree = node.id
        return tree


class Search:
    """Finds the folders with a manifest, up to four levels below a root, as in a local folder.

    A search skips a tree that it has met before, under the same root or another. `cut` says
    that there were more than MAX_FOLDERS.
    """

    def __init__(self, objects: GitObjects, trees: Trees) -> None:
        self._objects = objects
        self._trees = trees
        self._seen: set[tuple[str, int]] = set()
        self._visits = 0
        self.cut = False
        self.unreadable: list[tuple[str, str]] = []
        """Folders that cannot be read, and why."""

    def spots(self, root: str) -> Iterator[Spot]:
        """Every folder with a manifest below `root` that was not met before, by path."""
        self._visits = 0
        yield from self._walk(root, "", 0)

    def _walk(self, tree: str, path: str, depth: int) -> Iterator[Spot]:
        self._visits += 1
        if (tree, depth) in self._seen:
            return
        if self._visits > MAX_FOLDERS:
            self.cut = True
            return
        self._seen.add((tree, depth))
        try:
            nodes = self._trees.read(self._objects, tree)
        except ScraperInvalid as error:
            self.unreadable.append((path, error.message))
            return
        manifest = manifest_of(nodes)
        if manifest is not None:
            yield Spot(path=path, tree=tree, manifest=manifest)
        for node in nodes if depth < FOLDER_DEPTH else ():
            if node.kind == FOLDER and not is_skipped(node.name):
                yield from self._walk(node.id, f"{path}/{node.name}" if path else node.name, depth + 1)


def manifest_of(nodes: tuple[TreeNode, ...]) -> TreeNode | None:
    """The manifest among the names of a folder; None if the folder is not a scraper."""
    return next((node for node in nodes if node.name == FILE_NAME and node.kind in (FILE, LINK)), None)


def list_tree(objects: GitObjects, trees: Trees, tree: str) -> tuple[TreeFile, ...]:
    """The files of the scraper whose folder is `tree`, sorted by name, links followed; no file is read.

    Skips what is skipped in a local folder. Raises ScraperInvalid for a name, link or submodule that is not allowed,
    and for more files than `repository.files` allows; `check_sizes` checks sizes.
    """
    found: dict[str, TreeNode] = {}
    for name, node in _Listing(objects, trees).walk(tree, ""):
        if name in found:
            raise ScraperInvalid(f"{_shown(name)}: stands in its folder twice")
        found[name] = node
        if len(found) > MAX_FILES:
            raise ScraperInvalid(f"more than {MAX_FILES} files; move what the script does not need elsewhere")
    files = (TreeFile(name=name, blob=_followed(objects, found, name)) for name in sorted(found))
    return tuple(files)


def check_sizes(objects: GitObjects, files: tuple[TreeFile, ...]) -> int:
    """Total bytes of the files, without reading them. Raises ScraperInvalid if that is too much."""
    total = 0
    for file in files:
        info = objects.info(file.blob)
        if info is None or info.kind != "blob":
            raise ObjectsBroken(f"the local copy of the repository lacks the file {_shown(file.name)}")
        total += info.size
    if total > MAX_BYTES:
        raise ScraperInvalid(f"larger than {MAX_BYTES >> 20} MB; move what the script does not need elsewhere")
    return total


class _Listing:
    def __init__(self, objects: GitObjects, trees: Trees) -> None:
        self._objects = objects
        self._trees = trees
        self._folders = 0

    def walk(self, tree: str, prefix: str) -> Iterator[tuple[str, TreeNode]]:
        self._folders += 1
        if prefix.count("/") > MAX_DEPTH:
            raise ScraperInvalid(f"folders nested deeper than {MAX_DEPTH}; flatten them")
        if self._folders > MAX_FILES:
            raise ScraperInvalid(f"more than {MAX_FILES} folders; move what the script does not need elsewhere")
        nodes = self._trees.read(self._objects, tree)
        if prefix and manifest_of(nodes) is not None:
            return
        for node in nodes:
            if is_skipped(node.name):
                continue
            _check_name(prefix, node.name)
            if node.kind == REPOSITORY:
                raise ScraperInvalid(f"{_shown(prefix + node.name)}: a submodule; copy its files in")
            if node.kind == FOLDER:
                yield from self.walk(node.id, f"{prefix}{node.name}/")
            else:
                yield prefix + node.name, node


def _check_name(prefix: str, name: str) -> None:
    bad = not name or not name.isprintable() or any(sign in name for sign in "/\\")
    if bad or len(name.encode(errors="surrogateescape")) > 255 or name.lower().startswith("git~"):
        raise ScraperInvalid(f"{_shown(prefix + name)}: a name that is not allowed; rename it")


def _followed(objects: GitObjects, found: dict[str, TreeNode], name: str) -> str:
    """The blob behind a name: its own, or the one that a link leads to inside the scraper's folder."""
    node, where = found[name], name
    for _ in range(MAX_LINKS):
        if node.kind == FILE:
            return node.id
        target = _target(objects, node, where)
        if target not in found:
            break
        node, where = found[target], target
    raise ScraperInvalid(f"{_shown(name)}: a link that leads to no file of this scraper; copy the file in")


def _target(objects: GitObjects, link: TreeNode, name: str) -> str:
    """Where a link points, from the scraper's folder; empty when that is outside."""
    try:
        text = objects.read(link.id, "blob", MAX_LINK).decode(errors="surrogateescape")
    except ObjectTooLarge:
        return ""
    if text.startswith("/"):
        return ""
    parts = list(PurePosixPath(name).parent.parts)
    for part in text.split("/"):
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _parse(data: bytes, width: int) -> Iterator[TreeNode]:
    """A tree is a row of `mode name\\0id`, the id in `width` bytes."""
    at = 0
    while at < len(data):
        space, zero = data.find(b" ", at), data.find(b"\0", at)
        end = zero + 1 + width
        if not at < space < zero or end > len(data) or _MODE.fullmatch(data, at, space) is None:
            raise ScraperInvalid("a folder that is not as git writes it")
        name = data[space + 1 : zero].decode(errors="surrogateescape")
        yield TreeNode(name, int(data[at:space], 8) & _KIND, data[zero + 1 : end].hex())
        at = end


def _shown(name: str) -> str:
    """An untrusted name, made safe for a message."""
    return name if name.isprintable() and len(name) <= 200 else ascii(name[:200])
