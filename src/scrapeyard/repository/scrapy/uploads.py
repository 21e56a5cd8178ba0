"""Projects that are uploaded as eggs: unpacked as untrusted input, made scrapers, stored in a folder that is served.

Each upload of a project gets a version `0.N.0+LABEL`, in which N counts uploads and LABEL is the version that its
author gave. So the newest upload is the newest version, and a version never changes. Call these from a thread.
"""

import configparser
import io
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

from msgspec import Struct

from scrapeyard.errors import BadRequest, NotFound, ScraperInvalid
from scrapeyard.repository.archive.archives import unpack
from scrapeyard.repository.scrapy.project import CONFIG, read_project
from scrapeyard.repository.scrapy.scrapers import slug, write_scrapers

MAX_VERSIONS: Final = 100
"""Versions of a project that are kept; the oldest is removed for a new one."""
MAX_PROJECTS: Final = 1000
_INFO: Final = "EGG-INFO"
_FOLDER: Final = re.compile(r"(?P<number>\d{1,9})\+(?P<label>[0-9A-Za-z.-]{1,64})")


class UploadedVersion(Struct, frozen=True, kw_only=True):
    """One upload of a project."""

    number: int
    label: str

    @property
    def version(self) -> str:
        """The version of its scrapers."""
        return f"0.{self.number}.0+{self.label}"

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.number}+{self.label}"


class UploadedProjects:
    """The projects below one folder: `PROJECT/N+LABEL/PROJECT/SPIDER`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def versions(self, project: str) -> list[UploadedVersion]:
        """Oldest first; empty if there is no such project."""
        place = self._root / slug(project)
        names = [path.name for path in place.iterdir()] if place.is_dir() else []
        found = [match for name in names if (match := _FOLDER.fullmatch(name))]
        known = [UploadedVersion(number=int(match["number"]), label=match["label"]) for match in found]
        return sorted(known, key=lambda each: each.number)

    def add(self, project: str, label: str, egg: bytes) -> tuple[UploadedVersion, tuple[str, ...]]:
        """Store an upload and return the ids of its scrapers. An older upload with the same label is removed.

        Raises BadRequest for what is no egg with a Scrapy project, OSError if it cannot be written.
        """
        name, label = slug(project), _label(label)
        self._root.mkdir(parents=True, exist_ok=True)
        before = self.versions(name)
        if not before and sum(1 for each in self._root.iterdir() if each.is_dir()) >= MAX_PROJECTS:
            raise BadRequest(f"there are {MAX_PROJECTS} projects already; delete one first")
        new = UploadedVersion(number=before[-1].number + 1 if before else 1, label=label)
        with tempfile.TemporaryDirectory(prefix=".upload-", dir=self._root) as made:
            ids = _write(Path(made), egg, name, new.version)
            (self._root / name).mkdir(exist_ok=True)
            try:
                (Path(made) / "scrapers").rename(self._root / name / new.folder)
            except OSError as error:
                raise BadRequest(f"another upload of {name} came at the same time; upload again: {error}") from None
        kept = [each for each in before if each.label != label][-(MAX_VERSIONS - 1) :]
        for old in before:
            if old not in kept:
                self._remove(self._root / name / old.folder)
        return new, ids

    def delete(self, project: str, label: str = "") -> None:
        """Remove one version, or the whole project. Raises NotFound."""
        name = slug(project)
        known = self.versions(name)
        if not known:
            raise NotFound(f"project '{name}' not found among the uploaded ones")
        found = [each for each in known if not label or label in (each.label, each.version)]
        if not found:
            raise NotFound(f"version '{label[:100]}' not found")
        for each in found:
            self._remove(self._root / name / each.folder)
        if len(found) == len(known):
            self._remove(self._root / name)

    def _remove(self, place: Path) -> None:
        """Take a folder out of sight at once, then remove it."""
        with tempfile.TemporaryDirectory(prefix=".removed-", dir=self._root) as bin_folder:
            place.rename(Path(bin_folder) / "old")


def _label(version: str) -> str:
    """The part of a version after the plus. Raises BadRequest if nothing is left."""
    found = re.sub(r"[^0-9A-Za-z.-]+", "-", version).strip("-.")[:64]
    found = re.sub(r"\.{2,}", ".", found)
    if not found:
        raise BadRequest(f"{version[:100]!r} is no version; use letters, digits, dots and dashes")
    return found


def _write(place: Path, egg: bytes, project: str, version: str) -> tuple[str, ...]:
    source = place / "egg"
    source.mkdir()
    try:
        unpack(io.BytesIO(egg), "egg.zip", source)
    except ScraperInvalid as error:
        raise BadRequest(f"the egg cannot be used: {error.message}") from None
    info = source / _INFO
    module = _settings_module(info / "entry_points.txt")
    requires = info / "requires.txt"
    if requires.is_file() and not (source / "requirements.txt").exists():
        (source / "requirements.txt").write_bytes(requires.read_bytes().partition(b"\n[")[0])
    shutil.rmtree(info, ignore_errors=True)
    (source / CONFIG).write_text(f"[settings]\ndefault = {module}\n")
    try:
        return write_scrapers(read_project(source), place / "scrapers", site=project, version=version).scrapers
    except BadRequest as error:
        raise BadRequest(error.message.replace(str(source), "the egg")) from None


def _settings_module(place: Path) -> str:
    """What `[scrapy] settings = …` of the egg's entry points says. Raises BadRequest."""
    config = configparser.ConfigParser(interpolation=None)
    try:
        config.read_string(place.read_bytes()[: 64 * 1024].decode())
        module = config["scrapy"]["settings"].strip()
    except (OSError, UnicodeDecodeError, configparser.Error, KeyError):
        raise BadRequest(
            f"the egg names no settings: {_INFO}/entry_points.txt needs [scrapy] with settings = PACKAGE.settings"
        ) from None
    if re.fullmatch(r"[A-Za-z_][\w.]{0,200}", module) is None:
        raise BadRequest(f"{module[:100]!r} is no module")
    return module
