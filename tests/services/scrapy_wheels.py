"""Wheels of packages that are installed here, packed again: an index without a network."""

import zipfile
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

_SKIPPED = ("__pycache__", "..")


def pack_installed(names: tuple[str, ...], folder: Path) -> Path:
    """Write a wheel of each package and of all that it requires. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    left, seen = list(names), set[str]()
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        found = metadata.distribution(name)
        _pack(found, folder)
        wanted = [Requirement(each) for each in found.requires or ()]
        left += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return folder


def _pack(found: metadata.Distribution, folder: Path) -> None:
    """Stored, not compressed: nobody carries it far."""
    tags = [line[5:] for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    tag = next((tag for tag in tags if not tag.startswith("py2")), tags[0])
    name = f"{found.metadata['Name'].replace('-', '_').replace('.', '_')}-{found.version}-{tag}.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        for file in found.files or ():
            if not any(part in file.parts for part in _SKIPPED) and file.name not in ("INSTALLER", "REQUESTED"):
                archive.write(found.locate_file(file), str(file))
