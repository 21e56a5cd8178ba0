"""Draw the pictures of the terminal and of the page that the documentation shows: `make pictures`.

Starts a server and the practice shop on their usual ports, runs each command, and writes what it printed as SVG. Then
it opens the page in a browser, if there is one, and writes what it shows as PNG.
"""

import json
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

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from scrapeyard.engines.browser.found import find_browser
from scrapeyard.gateway.page import BUILT, INDEX
from scrapeyard.settings import BrowserSettings

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
        _photograph()


def _photograph() -> None:
    """What the page shows of a page of the shop, and of a job that is half done."""
    browser = find_browser(BrowserSettings())
    if browser.missing or not (BUILT / INDEX).exists():
        sys.stderr.write("The page is not photographed: it needs `make page` and a browser\n")
        return
    shop = f"http://{SHOP}"
    items = [f"{shop}/product/{n % 200 + 1}?v={n}" for n in range(600)] + [f"{shop}/status/500?n={n}" for n in range(9)]
    policy = {"rate": 12, "retries": 0, "breaker": {"enabled": False}}
    job = {"name": "shop-prices", "scraper": "builtin/page", "items": [*items[-9:], *items[:-9]], "policy": policy}
    job_id = _post("/api/jobs", job)["id"]
    run = _post("/api/scrape", {"url": f"{shop}/product/1", "formats": ["markdown", "raw_html", "product", "headers"]})[
        "id"
    ]
    shots = {"page-try": f"/try?url={shop}/product/1&run={run}", "page-job": f"/jobs/{job_id}?tab=items"}
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.executable or None, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 720}, locale="en")
        for name, path in shots.items():
            page.goto(f"http://{SERVER}{path}")
            page.wait_for_selector("main .skeleton", state="detached")
            page.wait_for_timeout(16_000 if name == "page-job" else 1500)
            page.screenshot(path=HERE / f"{name}.png")
        chromium.close()


def _post(path: str, body: dict[str, object]) -> dict[str, str]:
    asked = urllib.request.Request(
        f"http://{SERVER}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as answer:  # noqa: S310 - on this machine
        found: dict[str, str] = json.load(answer)
    return found


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
