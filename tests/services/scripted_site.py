"""A site whose pages need a browser, on a free loopback port."""

from base64 import b64decode
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import ClassVar, Self

from tests.services.threads import ThreadedServer

SHELL = b"""<!doctype html><html><head><title>Shop</title><script type="module" src="/fill.js"></script></head>
<body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>"""
ENDLESS = b"""<!doctype html><html><head><title>Endless</title></head><body><main><ul id="list"></ul>
<p id="foot">more</p></main><script>let n = 0;
const item = i => `<li style="height:400px"><a href="/p/${i}">Thing number ${i}</a> <b>&euro;${i}.50</b></li>`;
const grow = () => { if (n < 20) for (let i = 0; i < 5; i++) list.insertAdjacentHTML('beforeend', item(++n)) };
grow(); new IntersectionObserver(e => e[0].isIntersecting && grow()).observe(foot)</script></body></html>"""
"""A list of twenty things, five more each time one has scrolled to its end."""
GROWING = b"""<!doctype html><html><head><title>Growing</title></head><body>
<form action="/sent"><button>Show more</button></form>
<main><ul id="list"></ul><p><button id="more">Load 5 more products</button></p></main>
<footer><button onclick="fetch('/footer')">Show more</button></footer><script>let n = 0;
const item = i => `<li><a href="/p/${i}">Thing number ${i}</a> <b>&euro;${i}.50</b>
  <button onclick="fetch('/opened')">Show more</button></li>`;
const add = () => { for (let i = 0; i < 5; i++) list.insertAdjacentHTML('beforeend', item(++n)) };
add(); more.onclick = () => fetch('/items.json').then(each => each.json()).then(() => {
  add(); if (n > 19) more.remove() })</script></body></html>"""
"""A list of twenty things, five more at each press of a button. Others say the same and are of something else."""
FILL = b"""fetch("/items.json").then(each => each.json()).then(items => {
  document.querySelector("#root").innerHTML =
    items.map(each => `<li class="item">${each.name} for ${each.price} euros</li>`).join("");
});"""
CHALLENGE = b"""<!doctype html><html><head><title>Just a moment...</title></head><body><h1>Checking your browser</h1>
<p>Enable JavaScript and cookies to continue.</p>
<script>document.cookie = "passed=" + 42 * 42 + "; path=/"; setTimeout(() => location.reload(), 200);</script>
</body></html>"""
SLOW = b"""<!doctype html><title>Slow</title><div id="root"></div><script>
fetch("/slow.json").then(each => each.json()).then(items => { root.innerHTML = `<p>${items.length} things</p>`; });
</script>"""
LOGIN = b"""<!doctype html><title>Log in</title><form><input name="user"><button>Log in</button></form><script>
document.forms[0].onsubmit = () => {
  document.cookie = `user=${document.forms[0].user.value}; path=/`;
  location.href = "/cookies";
  return false;
};</script>"""
PAPER = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF"
DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
LEAVES = b"<!doctype html><title>Old</title><script>setTimeout(() => { location.href = '/gone'; }, 20)</script>"
BEHIND = b"<html><title>Shop</title><body><h1>behind the check</h1>" + b"<p>A lamp for 12 euros.</p>" * 20


class ScriptedSite:
    """Serves until it is left. `asked` are the paths and `heard` their headers, in order."""

    ITEMS: ClassVar = b"[" + b",".join(b'{"name": "thing %d", "price": %d}' % (n, n) for n in range(30)) + b"]"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slow = Event()
        """`/slow.json` is answered once it is set."""
        self.heard: list[dict[str, str]] = []
        handler = type("Handler", (_Handler,), {"site": self})
        self._server = ThreadedServer(handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """With a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    site: ScriptedSite
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.site.asked.append(path)
        self.site.heard.append({name.lower(): value for name, value in self.headers.items()})
        cookies = self.headers.get("cookie", "")
        if path == "/moved":
            self._answer(302, b"", location="/shell")
        elif path == "/challenge":
            passed = "passed=1764" in cookies
            self._answer(200 if passed else 403, BEHIND if passed else CHALLENGE)
        elif path == "/slow.json":
            self.site.slow.wait(60)
            self._answer(200, self.site.ITEMS, "application/json")
        elif path == "/cookies":
            self._answer(200, f"<p>{cookies}</p>".encode())
        elif path == "/set-cookie":
            self._answer(200, b"<script>document.cookie = 'from-script=1; path=/'</script>")
        elif path == "/set-http-cookie":
            self._answer(200, b"set", set_cookie="from-server=1; Path=/; HttpOnly")
        else:
            self._answer(*_PAGES.get(path, (404, b"<h1>There is no such page</h1>", "text/html")))

    def _answer(self, status: int, body: bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


_PAGES = {
    "/": (200, b"<h1>Home</h1>", "text/html"),
    "/shell": (200, SHELL, "text/html"),
    "/endless": (200, ENDLESS, "text/html"),
    "/growing": (200, GROWING, "text/html"),
    "/login": (200, LOGIN, "text/html"),
    "/slow": (200, SLOW, "text/html"),
    "/leaves": (200, LEAVES, "text/html"),
    "/gone": (410, b"<h1>No longer sold</h1>", "text/html"),
    "/paper.pdf": (200, PAPER, "application/pdf"),
    "/dot.png": (200, DOT, "image/png"),
    "/pack.zip": (200, b"PK\x03\x04", "application/zip"),
    "/fill.js": (200, FILL, "text/javascript"),
    "/items.json": (200, ScriptedSite.ITEMS, "application/json"),
    "/private": (200, b"<h1>Private</h1>", "text/html"),
    "/robots.txt": (200, b"User-agent: *\nDisallow: /private\n", "text/plain"),
}
