"""What a remote repository has, from `git ls-remote`: the tip of one branch, and the tags that offer scrapers."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from scrapeyard.errors import SettingsInvalid, SourceUnavailable
from scrapeyard.model import SCRAPER_ID
from scrapeyard.repository.manifest.semver import is_version, precedence
from scrapeyard.repository.sources.git.objects import OBJECT_ID

MAX_TAGS_EACH = 100
"""Maximum newest tags that are read, for each scraper and for the whole repository."""
MAX_TAGS = 20_000

_TAG = re.compile(r"(?P<scraper>[^/]+/[^/@]+)(?:@|/v)(?P<version>[^/@]+)")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@/-]{0,199}")


class Tag(Struct, frozen=True, kw_only=True):
    """A tag that offers scrapers."""

    name: str
    id: str
    """Of the tag object or the commit."""
    scraper: str
    """The scraper it is for; if empty, every scraper of its tree."""
    version: str


class Refs(Struct, frozen=True, kw_only=True):
    """The refs of a repository that are used."""

    branch: str
    tip: str
    tags: tuple[Tag, ...]
    dropped: int = 0
    """Number of tags left out because there are too many."""

    def mark(self, *more: object) -> str:
        """Changes when any of it does, or any of `more`."""
        words = [*more, self.branch, self.tip, *(f"{tag.name} {tag.id}" for tag in self.tags)]
        return hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()

    def wanted(self) -> dict[str, str]:
        """Full ref name → object id of everything to fetch."""
        tags = {f"refs/tags/{tag.name}": tag.id for tag in self.tags}
        return {f"refs/heads/{self.branch}": self.tip, **tags}


def check_branch(name: str) -> str:
    """A branch's name that is safe in a refspec. Raises SettingsInvalid."""
    parts = name.split("/")
    odd = any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    if _BRANCH.fullmatch(name) is None or odd or ".." in name or "@{" in name:
        raise SettingsInvalid("repository.source.branch: not the name of a branch")
    return name


def read_head(output: bytes) -> str:
    """The default branch of a repository, from `ls-remote --symref … HEAD`. Raises SourceUnavailable."""
    for line in output.decode(errors="replace").splitlines():
        target, _, name = line.partition("\t")
        if name == "HEAD" and target.startswith("ref: refs/heads/"):
            try:
                return check_branch(target.removeprefix("ref: refs/heads/"))
            except SettingsInvalid:
                break
    raise SourceUnavailable("the repository names no branch; push one, or set repository.source.branch")


def read_refs(output: bytes, branch: str) -> Refs:
    """From `ls-remote --heads --tags --refs`. Raises SourceUnavailable when the branch is not there.

    Skips tags that have no known form; if there are too many, keeps the newest.
    """
    tip, tags = "", []
    for object_id, name in _lines(output):
        if name == f"refs/heads/{branch}":
            tip = object_id
        elif name.startswith("refs/tags/") and (tag := read_tag(name.removeprefix("refs/tags/"), object_id)):
            tags.append(tag)
    if not tip:
        raise SourceUnavailable(f"the repository has no branch {branch}; push it, or set repository.source.branch")
    kept = _newest(tags)
    return Refs(branch=branch, tip=tip, tags=kept, dropped=len(tags) - len(kept))


def read_tag(name: str, object_id: str) -> Tag | None:
    """`site/task@1.4.2`, `site/task/v1.4.2`, `v1.2.3` or `1.2.3`; None when it is none of these."""
    found = _TAG.fullmatch(name)
    if found and SCRAPER_ID.fullmatch(found["scraper"]) and is_version(found["version"]):
        return Tag(name=name, id=object_id, scraper=found["scraper"], version=found["version"])
    if is_version(name.removeprefix("v")):
        return Tag(name=name, id=object_id, scraper="", version=name.removeprefix("v"))
    return None


def _lines(output: bytes) -> Iterator[tuple[str, str]]:
    for line in output.decode(errors="replace").splitlines():
        object_id, _, name = line.partition("\t")
        if OBJECT_ID.fullmatch(object_id):
            yield object_id, name


def _newest(tags: Iterable[Tag]) -> tuple[Tag, ...]:
    by_scraper = defaultdict(list)
    for tag in tags:
        by_scraper[tag.scraper].append(tag)
    kept: list[Tag] = []
    for scraper in sorted(by_scraper):
        kept += sorted(by_scraper[scraper], key=lambda tag: (precedence(tag.version), tag.name))[-MAX_TAGS_EACH:]
    return tuple(kept[:MAX_TAGS])
