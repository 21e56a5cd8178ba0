"""Whether a page is an empty shell that its scripts fill, so that only a browser sees its content."""

import re

from scrapeyard.engines.blocks.rules import Block
from scrapeyard.engines.blocks.words import visible_text
from scrapeyard.engines.port import FetchResponse

_WITHIN = 64 * 1024
_FEW = 200
"""Characters to read; a page with more is no shell."""
_NOTHING = 10
"""Characters to read; a page with scripts and less is a shell, however it is built."""
_MOUNT = re.compile(
    rb"<(?:div|main|section|body)\b[^<>]*\bid\s{0,3}=\s{0,3}[\"']?"
    rb"(?:root|app|application|main-app|react-root|app-root|__next|__nuxt|___gatsby|svelte|q-app|ember\d{0,6}|spa)"
    rb"[\"']?[^<>]*>\s{0,200}(?:<!--[^<>]{0,200}-->\s{0,200})?</"
    rb"|<([a-z]{1,30}-(?:root|app))\b[^<>]{0,200}>\s{0,200}</",
    re.IGNORECASE,
)
"""An empty element that a framework fills."""
_NEEDS_SCRIPTS = re.compile(
    rb"<noscript[^<>]*>[^<]{0,200}(?:<[a-z/][^<>]*>[^<]{0,200}){0,6}(?:javascript|java script)", re.IGNORECASE
)
_SCRIPT = re.compile(
    rb"<script\b(?![^<>]*\btype\s{0,3}=\s{0,3}[\"']?(?:application/(?:ld\+)?json|text/(?:template|x-)|importmap))",
    re.IGNORECASE,
)
"""One that a browser runs, not data or a template."""
EMPTY_SHELL = Block(kind="shell", reason="the page is empty until its scripts run", confidence=0.5)


def recognise_shell(response: FetchResponse) -> Block | None:
    """A doubtful block of the kind `shell`; None: there is something to read, or nothing that scripts would fill."""
    if response.status != 200 or not response.body:
        return None
    kind = next((value for name, value in response.headers if name.lower() == "content-type"), "text/html")
    top = response.body[:_WITHIN]
    if "html" not in kind or _SCRIPT.search(top) is None:
        return None
    if not visible_text(response.body, response.encoding, 4 * _FEW).whole:
        return None  # most pages: they have enough to read, whatever is in `noscript`
    seen = visible_text(_without_noscript(response.body), response.encoding, 2 * _FEW)
    if not seen.whole or len(seen.text) >= _FEW:
        return None
    if len(seen.text) >= _NOTHING and _MOUNT.search(top) is None and _NEEDS_SCRIPTS.search(top) is None:
        return None
    return EMPTY_SHELL


def adds_content(shell: FetchResponse, page: FetchResponse) -> bool:
    """Whether a browser's page has more to read than the shell."""
    before = visible_text(_without_noscript(shell.body), shell.encoding, 4 * _FEW).text
    after = visible_text(_without_noscript(page.body), page.encoding, 4 * _FEW).text
    return len(after) >= len(before) + 40


def _without_noscript(body: bytes) -> bytes:
    return re.sub(rb"<noscript\b.*?</noscript>", b" ", body, flags=re.IGNORECASE | re.DOTALL)
