"""What can be done with a page in a browser: one struct for each operation, checked wherever one arrives.

A script's frames, the steps of `builtin/actions` and recordings all become these; the process that holds the browser
performs them. Names and meanings follow Playwright's. `do` names the operation on the wire. What each returns stands in
its docstring: a JSON value, or raw bytes.
"""

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

MAX_SELECTOR: Final = 4096
MAX_TEXT: Final = 1024 * 1024
MAX_FILES: Final = 20
Selector = Annotated[str, Meta(min_length=1, max_length=MAX_SELECTOR)]
"""As Playwright reads it: CSS (open shadow roots are pierced), `text=…`, `xpath=…` or `//…`, `role=…`; and of the
recorder's forms `aria/…`, `pierce/…`, `text/…`, `xpath/…`. Parts joined by ` >> ` or ` >>> ` lead inwards."""
Url = Annotated[str, Meta(max_length=16 * 1024)]
Pattern = Annotated[str, Meta(min_length=1, max_length=2048)]
"""Of a URL: `*` stands for any characters but `/`, `**` for any; the whole URL must match. A pattern that begins with
`*/` matches at any depth."""
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Seconds = Annotated[float, Meta(ge=0, le=3600)]
LoadState = Literal["load", "domcontentloaded", "networkidle", "commit"]
ElementState = Literal["visible", "hidden", "attached", "detached"]
Button = Literal["left", "right", "middle", "back", "forward"]
"""Only Chromium presses `back` and `forward`."""
Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]


def _tag(name: str) -> str:
    """`WaitForUrl` is `wait_for_url` on the wire."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Operation(Struct, frozen=True, kw_only=True, tag_field="do", tag=_tag, forbid_unknown_fields=True):
    """What all have in common."""

    tab: Annotated[int, Meta(ge=0, le=100)] = 0
    """Number of the tab, in the order in which they were opened; 0 is the first."""
    frame: Annotated[tuple[Selector, ...], Meta(max_length=10)] = ()
    """Selectors of the iframes that lead to the element, from the outermost; empty: the page itself. A number selects a
    child frame by its place."""
    timeout: Seconds | None = None
    """None: the context's own. A wait that takes longer fails with `browser_timeout`."""


class Goto(Operation, frozen=True, kw_only=True):
    """Open a URL. Returns `{url, status, headers}` of the main document after redirects; status 0 for one that no
    server answered (`about:blank`)."""

    url: Url
    wait_until: LoadState = "load"
    referer: Url = ""
    quiet: Seconds = 0
    """After that, wait until the page's scripts have requested nothing for so long, 5 seconds at most; 0: do not."""


class Back(Operation, frozen=True, kw_only=True):
    """As `Goto`; null if there is no such page."""

    wait_until: LoadState = "load"


class Forward(Operation, frozen=True, kw_only=True):
    """As `Back`."""

    wait_until: LoadState = "load"


class Reload(Operation, frozen=True, kw_only=True):
    """As `Goto`."""

    wait_until: LoadState = "load"


class Click(Operation, frozen=True, kw_only=True):
    """Click an element when it is visible and still. Returns null, as all that follow unless they say."""

    selector: Selector
    button: Button = "left"
    count: Annotated[int, Meta(ge=1, le=3)] = 1
    x: float | None = None
    """Offset from the element's left edge in pixels; None: its middle. Likewise `y`."""
    y: float | None = None
    modifiers: tuple[Modifier, ...] = ()
    delay: Seconds = 0
    """Between press and release."""
    force: bool = False
    """Without waiting until it can be clicked."""


class Hover(Operation, frozen=True, kw_only=True):
    """Move the mouse over an element."""

    selector: Selector
    x: float | None = None
    y: float | None = None


class Fill(Operation, frozen=True, kw_only=True):
    """Set the text of an input at once."""

    selector: Selector
    text: Text


class Type(Operation, frozen=True, kw_only=True):
    """Type a text key by key into an element."""

    selector: Selector
    text: Annotated[str, Meta(max_length=10_000)]
    delay: Seconds = 0
    """Between two keys."""


class Press(Operation, frozen=True, kw_only=True):
    """Press a key or a combination (`Enter`, `Control+A`), in an element or where the focus is."""

    key: Annotated[str, Meta(min_length=1, max_length=100)]
    selector: Annotated[str, Meta(max_length=MAX_SELECTOR)] = ""
    move: Literal["press", "down", "up"] = "press"
    """`down` and `up`: only that half of it."""


class Select(Operation, frozen=True, kw_only=True):
    """Choose options of a `select` by value or label. Returns the values chosen."""

    selector: Selector
    values: Annotated[tuple[Text, ...], Meta(max_length=1000)]


class Check(Operation, frozen=True, kw_only=True):
    """Set a checkbox or a radio button."""

    selector: Selector
    checked: bool = True


class Change(Operation, frozen=True, kw_only=True):
    """Set whatever kind of control it is to a value, as a person would: an input, a select, a checkbox (`true`), an
    editable element. For recordings, which do not tell the kind."""

    selector: Selector
    value: Text


class FilePart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of an upload. Its bytes follow in the raw part, in order."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    size: Annotated[int, Meta(ge=0)]
    content_type: Annotated[str, Meta(max_length=200)] = "application/octet-stream"


class Upload(Operation, frozen=True, kw_only=True):
    """Choose files for a file input. The raw part holds their bytes."""

    selector: Selector
    files: Annotated[tuple[FilePart, ...], Meta(max_length=MAX_FILES)]


class Download(Operation, frozen=True, kw_only=True):
    """Click an element, or open a URL, and take the file that this downloads. Returns `{name, url, size}` and its bytes
    as raw part, at most `max_bytes`."""

    selector: Annotated[str, Meta(max_length=MAX_SELECTOR)] = ""
    url: Url = ""
    max_bytes: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] = 16 * 1024 * 1024


class Scroll(Operation, frozen=True, kw_only=True):
    """Scroll an element into view, the page by so many pixels, or to an end."""

    selector: Annotated[str, Meta(max_length=MAX_SELECTOR)] = ""
    x: float = 0
    y: float = 0
    absolute: bool = False
    """Scroll the page, or the element, to `x`, `y` instead of by them."""
    to: Literal["", "top", "bottom"] = ""
    rounds: Annotated[int, Meta(ge=1, le=1000)] = 1
    """With `to`: again so many times at most, until the page grows no longer. Returns how often it grew."""


class Wait(Operation, frozen=True, kw_only=True):
    """Wait so many seconds."""

    seconds: Annotated[float, Meta(ge=0, le=600)]


class WaitFor(Operation, frozen=True, kw_only=True):
    """Wait for an element, or until so many are there."""

    selector: Selector
    state: ElementState = "visible"
    count: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    compare: Literal["==", ">=", "<="] = ">="
    attributes: dict[str, str] = msgspec.field(default_factory=dict)
    """That the element has besides."""
    properties: dict[str, Any] = msgspec.field(default_factory=dict)


class WaitForText(Operation, frozen=True, kw_only=True):
    """Wait until a text is seen anywhere in the page."""

    text: Annotated[str, Meta(min_length=1, max_length=10_000)]


class WaitForUrl(Operation, frozen=True, kw_only=True):
    """Wait until the page's URL matches. Returns it."""

    pattern: Pattern


class WaitForResponse(Operation, frozen=True, kw_only=True):
    """Wait for an answer to a request of the page; one that came since the last operation counts. Returns it as
    `Responses` does, with its body as raw part."""

    pattern: Pattern


class WaitForLoad(Operation, frozen=True, kw_only=True):
    """Wait for a state of loading."""

    state: LoadState = "load"


class WaitForFunction(Operation, frozen=True, kw_only=True):
    """Wait until a JavaScript expression is true."""

    expression: Text
    arg: Any = None


class Evaluate(Operation, frozen=True, kw_only=True):
    """Run a JavaScript expression or function in the page. Returns its value as JSON."""

    expression: Text
    arg: Any = None


class Content(Operation, frozen=True, kw_only=True):
    """The page as HTML, as it is now. Raw: UTF-8. Returns `{url, status, type}` of this document, which a script may
    have put in the place of the one that was opened; status 0: unknown."""


class Read(Operation, frozen=True, kw_only=True):
    """Read elements. Returns a list with one value for each that matches, at most `limit`."""

    selector: Selector
    what: Annotated[str, Meta(min_length=1, max_length=200)] = "text"
    """`text` (as it is seen), `text_content`, `html` (with the element), `inner_html`, `value`, `checked`, `visible`,
    `box`, `@name` (an attribute), `.name` (a property, as JSON, in any depth: `.style.color`), `tag`."""
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class Extract(Operation, frozen=True, kw_only=True):
    """Read records: for each element that matches, the fields within it. Returns a list of objects."""

    selector: Selector
    fields: Annotated[dict[str, Annotated[str, Meta(max_length=MAX_SELECTOR)]], Meta(max_length=200)]
    """Field → CSS selector within the element, with `::text` or `::attr(name)` behind it; empty or only the suffix: the
    element itself. A field that is not there is null."""
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class Screenshot(Operation, frozen=True, kw_only=True):
    """A picture of the window, the whole page or an element. Raw: the image."""

    selector: Annotated[str, Meta(max_length=MAX_SELECTOR)] = ""
    full_page: bool = False
    format: Literal["png", "jpeg"] = "png"
    quality: Annotated[int, Meta(ge=1, le=100)] | None = None


class Pdf(Operation, frozen=True, kw_only=True):
    """The page as PDF. Raw."""

    format: Annotated[str, Meta(max_length=20)] = "A4"
    landscape: bool = False
    background: bool = True


class Cookies(Operation, frozen=True, kw_only=True):
    """The context's cookies, as Playwright gives them; of `urls` only, if there are some."""

    urls: Annotated[tuple[Url, ...], Meta(max_length=100)] = ()


class SetCookies(Operation, frozen=True, kw_only=True):
    """Add cookies, as Playwright takes them."""

    cookies: Annotated[tuple[dict[str, Any], ...], Meta(max_length=1000)]


class ClearCookies(Operation, frozen=True, kw_only=True):
    """Remove all cookies."""


class Responses(Operation, frozen=True, kw_only=True):
    """Answers that the context's pages got so far. Returns `[{id, url, status, method, type, content_type, headers,
    size}]`, the oldest first; the raw part holds their bodies one after another, each `size` bytes. A body that is no
    longer to be had, or that exceeds what may be kept, has size 0 and `missing: true`."""

    pattern: Pattern = "**"
    bodies: bool = True
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class Tabs(Operation, frozen=True, kw_only=True):
    """The open tabs: `[{tab, url, title}]`."""


class NewTab(Operation, frozen=True, kw_only=True):
    """Open a tab. Returns its number."""


class WaitForTab(Operation, frozen=True, kw_only=True):
    """Wait for a tab that the page opened since the last operation. Returns its number."""


class CloseTab(Operation, frozen=True, kw_only=True):
    """Close the tab."""


class Frames(Operation, frozen=True, kw_only=True):
    """The frames of the page: `[{name, url, path}]`, where `path` is what `frame` takes."""


class Dialogs(Operation, frozen=True, kw_only=True):
    """What happens to dialogs from now on; at first they are dismissed. Returns the dialogs so far:
    `[{type, message}]`."""

    accept: bool = False
    text: Annotated[str, Meta(max_length=10_000)] = ""
    """Answer to a prompt."""


class Viewport(Operation, frozen=True, kw_only=True):
    """Set the size of the window."""

    width: Annotated[int, Meta(ge=1, le=10_000)]
    height: Annotated[int, Meta(ge=1, le=10_000)]
    scale: Annotated[float, Meta(gt=0, le=5)] = 1
    mobile: bool = False
    touch: bool = False


class Network(Operation, frozen=True, kw_only=True):
    """Emulate a slow network, or none. Bytes per second, -1: no limit; seconds of latency."""

    download: float = -1
    upload: float = -1
    latency: Seconds = 0
    offline: bool = False


AnyOperation = (
    Goto | Back | Forward | Reload | Click | Hover | Fill | Type | Press | Select | Check | Change | Upload | Download
    | Scroll | Wait | WaitFor | WaitForText | WaitForUrl | WaitForResponse | WaitForLoad | WaitForFunction | Evaluate
    | Content | Read | Extract | Screenshot | Pdf | Cookies | SetCookies | ClearCookies | Responses | Tabs | NewTab
    | WaitForTab | CloseTab | Frames | Dialogs | Viewport | Network
)  # fmt: skip

OPENING: Final = (Goto, Back, Forward, Reload, NewTab, Download)
"""Operations that open a page: each counts as a fetch of the run."""

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(AnyOperation)


def read_operation(data: bytes) -> AnyOperation:
    """From JSON. Raises msgspec.ValidationError or msgspec.DecodeError with a message for whoever wrote it."""
    found: AnyOperation = _decoder.decode(data)
    return found
