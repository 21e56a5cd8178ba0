"""Draw the pictures of the terminal that the documentation shows: `make pictures`.

Starts a server and the practice shop on their usual ports, runs each command, and writes what it printed as SVG.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
SERVER, SHOP = "127.0.0.1:8000", "127.0.0.1:8800"
WIDTH = 100
MAX_LINES = 28
PICTURES = {
    "first-page": [f"scrapeyard scrape {SHOP}/product/1 -o page.md", "head -n 9 page.md"],
    "fields": [f"scrapeyard scrape {SHOP}/product/1 --field title=h1 --field price=.price --field sku=.sku"],
    "crawl": [
        f"scrapeyard crawl {SHOP} --limit 40 --allow-private -o site/",
        "ls site site/category",
        "head -n 9 site/category/toys.md",
    ],
    "explain": ["scrapeyard scrape http://127.0.0.1:9/ || true", "scrapeyard runs explain last"],
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, _program("demo-site", SHOP, folder), _program("up", SERVER, folder):
        for name, commands in PICTURES.items():
            _draw(name, commands, Path(folder))


def _draw(name: str, commands: list[str], folder: Path) -> None:
    console = Console(record=True, width=WIDTH, file=(folder / "screen").open("w"))
    for command in commands:
        console.print(Text(f"$ {command}", style="bold"))
        ran = subprocess.run(  # noqa: S602 - our own words
            command, shell=True, cwd=folder, env=_environment(), capture_output=True, text=True, check=True
        )
        for line in (ran.stderr + ran.stdout).splitlines()[:MAX_LINES]:
            console.print(Text.from_ansi(line))
    drawn = console.export_svg(title="scrapeyard")
    (HERE / f"{name}.svg").write_text(_without_network(drawn), "utf-8")


def _without_network(drawn: str) -> str:
    """rich loads its font from the web; the reader's own monospace font does."""
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    return re.sub(r"font-family: [^;]*;", "font-family: monospace;", drawn)


@contextmanager
def _program(role: str, address: str, folder: str) -> Iterator[None]:
    options = ["--allow-private", "--data-dir", f"{folder}/data"] if role == "up" else []
    command = [str(BIN / "scrapeyard"), role, "--port", address.rpartition(":")[2], *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        try:
            _wait(f"http://{address}/")
            yield
        finally:
            program.terminate()


def _wait(url: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(url):  # noqa: S310 - on this machine
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}


if __name__ == "__main__":
    main()
