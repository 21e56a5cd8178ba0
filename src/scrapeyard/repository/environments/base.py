"""What the SDK itself needs in a child, copied from our own installation into every environment.

Copied rather than installed: it is here already, in the version that we were tested with, and needs no index. A scraper
that requires it itself gets it from the resolver, held to the same version.
"""

import shutil
from importlib import metadata
from pathlib import Path

NEEDED = ("selectolax",)


def pins() -> tuple[str, ...]:
    """Name and version of each, as a resolver's constraints."""
    return tuple(f"{name}=={metadata.version(name)}" for name in NEEDED)


def copy_to(packages: Path, already: frozenset[str]) -> None:
    """Copy each that the environment has not `already`. Raises OSError."""
    for name in NEEDED:
        if name not in already:
            _copy(metadata.distribution(name), packages)


def _copy(distribution: metadata.Distribution, packages: Path) -> None:
    for file in distribution.files or ():
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or not source.is_file():
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
