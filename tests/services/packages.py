"""Tiny installed packages: a module, its metadata and its entry points, as an installer leaves them."""

import hashlib
import textwrap
from pathlib import Path

MODULE = '''
from scrapeyard_sdk import scraper


@scraper("parcel/echo", version="1.0.0", limits={"wall_seconds": 5}, config={"greeting": "hello \\u00e9 \\x7f"})
def echo(ctx, text: str, times: int = 1) -> dict:
    """Says it again.

    And more that is not shown.
    """
    return {"text": text * times, "greeting": ctx.config["greeting"]}
'''


def install(site: Path, name: str, modules: dict[str, str], entries: dict[str, str], version: str = "1.0.0") -> None:
    """Write a package `name` into the folder `site`; an older one of that name is replaced."""
    for old in site.glob(f"{name}-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    folder = site / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").touch()
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(textwrap.dedent(text), "utf-8")
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    points = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[scrapeyard.scrapers]\n{points}")
    record = "".join(
        f"{file.relative_to(site)},sha256={hashlib.sha256(file.read_bytes()).hexdigest()},\n"
        for file in sorted(folder.rglob("*.py"))
    )
    (info / "RECORD").write_text(record)
