"""Which tag and which commit of a Git repository offers which version of which scraper.

The first of these that has a version provides it: tags of one scraper, tags of the whole repository (lowest first), the
tip of the branch, the commits before it (newest first). If a tag or the tip has other content for a version that is
already taken, that is a fault that names both. For a commit before the tip it is not: the last content wins.
"""

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.manifest.channels import FILE_NAME as CHANNELS_FILE
from scrapeyard.repository.manifest.channels import MAX_BYTES as MAX_CHANNEL_BYTES
from scrapeyard.repository.manifest.channels import Channels, read_channels
from scrapeyard.repository.manifest.manifest import FILE_NAME, MAX_BYTES, read_identity, read_manifest
from scrapeyard.repository.sources.git.objects import GitObjects, ObjectTooLarge
from scrapeyard.repository.sources.git.refs import Tag
from scrapeyard.repository.sources.git.tree import (
    FILE,
    LINK,
    Search,
    Spot,
    TreeFile,
    TreeNode,
    Trees,
    list_tree,
    manifest_of,
)
from scrapeyard.repository.sources.port import Fault, Release

MAX_FAULTS = 1000
MAX_RELEASES = 100_000
MAX_KEPT = 100_000
"""Manifests remembered between looks."""


class Memory:
    """A cache of what was read; objects never change."""

    def __init__(self) -> None:
        self.trees = Trees()
        self.names: dict[str, tuple[str, str]] = {}
        """Manifest's blob → id and version."""
        self.channels: Channels = {}
        """The last valid channels."""


class Scope(Struct, frozen=True, kw_only=True):
    """What is looked at."""

    branch: str
    commits: tuple[tuple[str, str], ...]
    """Commits and their trees, newest first: the tip and those before it."""
    tags: tuple[Tag, ...]
    path: str
    """The folder that holds the scrapers; empty for the whole tree."""


class Point(Struct, frozen=True, kw_only=True):
    """A tag or a commit that offers scrapers."""

    label: str
    commit: str

    def place(self, path: str) -> str:
        """As listings show it."""
        return f"{self.label}: {path or '.'}"


class TagReading:
    """One reading of a repository. Blocking; raises ObjectsBroken."""

    def __init__(self, objects: GitObjects, memory: Memory, scope: Scope) -> None:
        self._objects = objects
        self._memory = memory
        self._scope = scope
        self._points: dict[tuple[str, str], Point] = {}
        self._taken: dict[tuple[str, str], Release] = {}
        self._faults: list[Fault] = []
        self.cut = False

    @property
    def releases(self) -> tuple[Release, ...]:
        """What is offered, tagged versions first."""
        return tuple(self._taken.values())

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong, at most MAX_FAULTS."""
        return tuple(self._faults[:MAX_FAULTS])

    def read(self) -> None:
        """Look at everything in the order of precedence."""
        commit, tree = self._scope.commits[0]
        tip = Point(label=f"{self._scope.branch} {commit[:7]}", commit=commit)
        search = Search(self._objects, self._memory.trees)
        root = self._root(tree)
        spots = list(search.spots(root)) if root else []
        self._tags(spots)
        self._tip(tip, spots, search)
        self._history(search)
        self._channels(tip, root)
        self.cut = search.cut

    def _root(self, tree: str) -> str | None:
        try:
            return self._memory.trees.below(self._objects, tree, self._scope.path)
        except ScraperInvalid:
            return None

    def _tags(self, spots: list[Spot]) -> None:
        folders = {name[0]: spot.path for spot in spots if (name := self._name(spot))}
        whole = [tag for tag in self._scope.tags if not tag.scraper]
        search = Search(self._objects, self._memory.trees)
        for tag in self._scope.tags:
            if tag.scraper and (found := self._open(tag)):
                self._scraper_tag(tag, *found, folders.get(tag.scraper, ""))
        for tag in whole:
            if found := self._open(tag):
                self._whole_tag(*found, search, is_newest=tag is whole[-1])

    def _open(self, tag: Tag) -> tuple[Point, str] | None:
        commit = self._objects.info(f"{tag.id}^{{commit}}")
        tree = self._objects.info(f"{tag.id}^{{tree}}")
        if commit is None or tree is None:
            self._fault(tag.scraper or tag.name, tag.version, f"tag {tag.name}", "this tag names no commit")
            return None
        return Point(label=f"tag {tag.name}", commit=commit.id), tree.id

    def _scraper_tag(self, tag: Tag, point: Point, tree: str, folder: str) -> None:
        """Finds the folder by the scraper's id, else where the tip has it, else by searching the manifests."""
        spot = self._find(tree, tag.scraper, folder)
        if spot is None:
            problem = f"no {FILE_NAME} of this tag says id = {tag.scraper!r}; move the tag to a commit that has it"
            self._fault(tag.scraper, tag.version, point.label, problem)
            return
        version = (self._name(spot) or ("", ""))[1]
        if version != tag.version:
            problem = f"the tag says {tag.version}, {FILE_NAME} says {version}; make both the same"
            self._fault(tag.scraper, tag.version, point.place(spot.path), problem)
            return
        self._offer(spot, point)

    def _find(self, tree: str, scraper: str, folder: str) -> Spot | None:
        root = self._root(tree)
        if root is None:
            return None
        for guess in dict.fromkeys((folder, scraper)):
            spot = self._spot(root, guess)
            if spot and (self._name(spot) or ("",))[0] == scraper:
                return spot
        every = Search(self._objects, self._memory.trees).spots(root)
        return next((spot for spot in every if (self._name(spot) or ("",))[0] == scraper), None)

    def _spot(self, root: str, path: str) -> Spot | None:
        try:
            tree = self._memory.trees.below(self._objects, root, path)
            manifest = manifest_of(self._memory.trees.read(self._objects, tree)) if tree else None
        except ScraperInvalid:
            return None
        return Spot(path=path, tree=tree, manifest=manifest) if tree and manifest else None

    def _whole_tag(self, point: Point, tree: str, search: Search, *, is_newest: bool) -> None:
        """Reports an unreadable manifest only for the newest tag, because nobody fixes older ones."""
        root = self._root(tree)
        for spot in search.spots(root) if root else ():
            if self._name(spot):
                self._offer(spot, point)
            elif is_newest:
                self._explain(spot, point)

    def _tip(self, point: Point, spots: list[Spot], search: Search) -> None:
        for spot in spots:
            if self._name(spot):
                self._offer(spot, point)
            else:
                self._explain(spot, point)
        for path, problem in search.unreadable:
            self._fault(_guess(path), "", point.place(path), problem)

    def _history(self, search: Search) -> None:
        for commit, tree in self._scope.commits[1:]:
            root = self._root(tree)
            for spot in search.spots(root) if root else ():
                name = self._name(spot)
                if name and name not in self._taken:
                    self._take(name, spot, Point(label=f"{self._scope.branch} {commit[:7]}", commit=commit))

    def _offer(self, spot: Spot, point: Point) -> None:
        name = self._name(spot)
        if name is None:
            return
        taken = self._taken.get(name)
        if taken is None:
            self._take(name, spot, point)
        elif taken.mark != spot.tree and not self._is_same(taken.mark, spot.tree):
            self._fault(*name, point.place(spot.path), self._differs(name, point))

    def _differs(self, name: tuple[str, str], point: Point) -> str:
        first, place = self._points[name], self._taken[name].place
        if first == point:
            return (
                f"{name[0]} {name[1]} is also in another folder of this commit, {place}, which stands; "
                "change the id in one scraper.toml"
            )
        return (
            f"{name[1]} is other content here ({point.label}, commit {point.commit[:7]}) than at {place} "
            f"(commit {first.commit[:7]}), which stands; raise the version"
        )

    def _take(self, name: tuple[str, str], spot: Spot, point: Point) -> None:
        if len(self._taken) >= MAX_RELEASES:
            self.cut = True
            return
        self._points[name] = point
        self._taken[name] = Release(id=name[0], version=name[1], mark=spot.tree, place=point.place(spot.path))

    def _is_same(self, one: str, other: str) -> bool:
        """Whether two trees have the same files of a scraper, ignoring hidden files and those of other scrapers."""
        try:
            return self._files(one) == self._files(other)
        except ScraperInvalid:
            return False

    def _files(self, tree: str) -> tuple[TreeFile, ...]:
        return list_tree(self._objects, self._memory.trees, tree)

    def _name(self, spot: Spot) -> tuple[str, str] | None:
        """Id and version as the manifest says; None when it does not."""
        known = self._memory.names.get(spot.manifest.id)
        if known is not None and spot.manifest.kind == FILE:
            return known
        try:
            name = read_identity(self._text(spot))
        except ScraperInvalid:
            return None
        if not all(name):
            return None
        if spot.manifest.kind == FILE:
            if len(self._memory.names) >= MAX_KEPT:
                self._memory.names.clear()
            self._memory.names[spot.manifest.id] = name
        return name

    def _text(self, spot: Spot) -> bytes:
        blob = spot.manifest.id
        if spot.manifest.kind == LINK:
            blob = next(file.blob for file in self._files(spot.tree) if file.name == FILE_NAME)
        return self._blob(blob, FILE_NAME, MAX_BYTES)

    def _blob(self, blob: str, name: str, most: int) -> bytes:
        try:
            return self._objects.read(blob, "blob", most)
        except ObjectTooLarge:
            raise ScraperInvalid(f"{name}: larger than {most >> 10} KB") from None

    def _explain(self, spot: Spot, point: Point) -> None:
        where = f"{spot.path}/{FILE_NAME}".lstrip("/")
        try:
            read_manifest(self._text(spot), where)
            problem = f"{where}: id or version cannot be read"
        except ScraperInvalid as error:
            problem = error.message
        self._fault(_guess(spot.path), "", point.place(spot.path), problem)

    def _channels(self, tip: Point, root: str | None) -> None:
        """The channels in the file at the tip; if it is invalid, the last valid ones."""
        try:
            nodes: tuple[TreeNode, ...] = self._memory.trees.read(self._objects, root) if root else ()
            node = next((node for node in nodes if node.name == CHANNELS_FILE and node.kind == FILE), None)
            text = self._blob(node.id, CHANNELS_FILE, MAX_CHANNEL_BYTES) if node else b""
            self._memory.channels = read_channels(text, CHANNELS_FILE)
        except ScraperInvalid as error:
            self._fault(CHANNELS_FILE, "", tip.place(CHANNELS_FILE), error.message)

    def _fault(self, scraper: str, version: str, place: str, problem: str) -> None:
        self._faults.append(Fault(id=scraper, version=version, place=place, problem=problem[:1000]))


def _guess(path: str) -> str:
    suggested = "/".join(path.split("/")[-2:])
    return suggested if SCRAPER_ID.fullmatch(suggested) else (path if path.isprintable() else ascii(path))[:200] or "."
