"""The web under measurement: nginx on loopback with one page of 18 KB or many, and wrk as the yardstick."""

import contextlib
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.processes import StartFailed, free_port

ITEMS = 43
_READY_SECONDS = 10.0
_CONFIG = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 300;
  default_type text/html; charset utf-8;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ root {folder}/site; index page.html; try_files $uri /page.html =404; }}
  }}
}}
"""


def page() -> str:
    """A shop's listing: forty-three products with four fields each, and what stands around them."""
    links = "".join(f'<li><a href="/category/{number}">Category {number}</a></li>' for number in range(24))
    head = (
        "<title>Kettles | Practice shop</title>"
        '<meta name="description" content="Kettles, from small to large."><link rel="canonical" href="/kettles">'
    )
    items = "".join(map(_item, range(ITEMS)))
    body = f"<nav><ul>{links}</ul></nav><h1>Kettles</h1>\n{items}<footer>All prices with tax.</footer>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'


def _item(number: int) -> str:
    stock = "In stock" if number % 3 else "Sold out"
    return (
        f'<article class="product" data-sku="SKU-{number:05}">'
        f'<a class="name" href="/product/{number}">Enamel kettle no. {number}</a>'
        f'<p class="about">Holds {number % 7 + 1} litres, whistles when it boils, comes in {number % 5 + 2} colours and'
        " lasts long. Made of steel that is easy to clean, with a handle that stays cool.</p>"
        f'<span class="price">€ {number * 3 + 19}.90</span><span class="stock">{stock}</span>'
        f'<img src="/image/{number}.jpg" alt="Kettle {number}"></article>\n'
    )


@contextlib.contextmanager
def site(folder: Path, files: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a site, served by nginx: these files, by their names, and `page.html` for every other path. Raises
    StartFailed with the remedy when there is no nginx."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        raise StartFailed("nginx is not installed: apt-get install nginx-light wrk")
    port = free_port()
    (folder / "site").mkdir(parents=True)
    for name, text in (files or {"page.html": page()}).items():
        (folder / "site" / name).write_text(text, "utf-8")
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port), "utf-8")
    folder.chmod(0o755)
    server = subprocess.Popen([nginx, "-c", str(config), "-p", str(folder)], stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    try:
        _await(url)
        yield url
    finally:
        server.terminate()
        server.wait()


def wrk(url: str, *, connections: int, seconds: float) -> float:
    """Requests a second by wrk with one thread: what the server and this machine give at most."""
    program = shutil.which("wrk")
    if program is None:
        raise StartFailed("wrk is not installed: apt-get install nginx-light wrk")
    arguments = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", url]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=seconds + 30)
    found = re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout)
    if found is None:
        raise StartFailed(f"wrk said nothing useful: {done.stdout[-300:]}")
    return float(found[1])


def _await(url: str) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise StartFailed(f"nginx does not answer: {error}") from None
            time.sleep(0.02)
        else:
            return
