"""The folder that a crawl runs in: a copy of the project, in which what the crawl writes becomes artifacts."""

import contextlib
import io
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.outcomes import ArtifactError

NAME = "crawl"
_COPIED_BYTES = 16 * 1024 * 1024
"""Data files of a project that are copied, so that a crawl may change them; larger ones are links."""
_CODE = ".py"
"""Code is copied always: it looks for its files from `__file__`."""
MAX_ARTIFACTS = 100


@contextlib.contextmanager
def entered(project: Path) -> Iterator[frozenset[str]]:
    """Work in a copy of the project's folder, from which its modules are imported: a project may write beside them.

    Gives the names of what is beside that folder.
    """
    before = Path.cwd()
    place = before / NAME
    _lay_out(project, place)
    os.chdir(place)
    sys.dont_write_bytecode = True
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
    try:
        yield frozenset(path.name for path in before.iterdir())
    finally:
        os.chdir(before)
        shutil.rmtree(place, ignore_errors=True)


def _lay_out(project: Path, place: Path) -> None:
    left = _COPIED_BYTES
    place.mkdir()
    for source in sorted(project.rglob("*")):
        target = place / source.relative_to(project)
        if source.is_dir():
            target.mkdir(exist_ok=True)
        else:
            left -= source.stat().st_size if source.suffix != _CODE else 0
            if left >= 0 or source.suffix == _CODE:
                shutil.copyfile(source, target)
            else:
                target.symlink_to(source)


async def keep_files(ctx: Context, project: Path, beside: frozenset[str]) -> None:
    """Store what the crawl wrote: a file under its name, a folder as `NAME.zip`. Warns of what cannot be stored.

    Also what it wrote above the project's folder, except what was there before, `beside`, and what is hidden, as the
    caches of libraries in the home folder are.
    """
    groups: dict[str, list[Path]] = {}
    for path in (path for path in sorted(Path.cwd().rglob("*")) if _is_new(path, project)):
        groups.setdefault(path.relative_to(Path.cwd()).parts[0], []).append(path)
    above = [path for path in sorted(Path.cwd().parent.iterdir()) if path.name not in beside]
    for top in (path for path in above if not path.name.startswith(".")):
        written = [top] if top.is_file() else [path for path in sorted(top.rglob("*")) if path.is_file()]
        groups.setdefault(top.name, []).extend(path for path in written if not path.is_symlink())
    for number, (name, files) in enumerate(groups.items()):
        if number >= MAX_ARTIFACTS:
            ctx.log(f"{len(groups) - number} more files were not kept as artifacts", "warning")
            return
        await _keep(ctx, name, files)


async def _keep(ctx: Context, name: str, files: list[Path]) -> None:
    is_file = len(files) == 1 and files[0].name == name and files[0].parent in (Path.cwd(), Path.cwd().parent)
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-")[:120] or "file"
    try:
        if is_file:
            await ctx.artifact(safe, files[0].read_bytes())
        else:
            await ctx.artifact(f"{safe}.zip", _zip(files))
    except (ArtifactError, OSError, ValueError) as error:
        ctx.log(f"{name} was not kept as an artifact: {error}", "warning")


def _zip(files: list[Path]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            root = Path.cwd() if Path.cwd() in path.parents else Path.cwd().parent
            archive.write(path, path.relative_to(root))
    return raw.getvalue()


def _is_new(path: Path, project: Path) -> bool:
    """Whether the crawl wrote it: a file that the project does not have, or has with other content."""
    if path.is_symlink() or not path.is_file() or path.name.startswith("."):
        return False
    source = project / path.relative_to(Path.cwd())
    if not source.is_file() or source.stat().st_size != path.stat().st_size:
        return True
    return source.read_bytes() != path.read_bytes()
