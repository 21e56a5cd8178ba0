"""The forms of a page, filled and submitted as a browser does it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from scrapeyard_sdk.fetch import File, multipart
from scrapeyard_sdk.node import Node

if TYPE_CHECKING:
    from typing import Unpack

    from scrapeyard_sdk.fetch import FetchOptions

_NO_VALUE = frozenset({"button", "reset", "submit", "image", "file"})
_CONTROLS = "input, select, textarea, button"


class Form:
    """One form. `fields` has what a browser would send now, hidden fields and preset values among them."""

    def __init__(
        self,
        node: Node,
        *,
        join: Callable[[str], str],
        encoding: str,
        fetch: Callable[..., Any],
        controls: Iterable[Node],
    ) -> None:
        """`join` makes an action an absolute URL, `encoding` is that of the page, `fetch` gets a page."""
        self.node = node
        self.url = join(node.attr("action") or "")
        self.method = _method(node.attr("method"))
        self.is_multipart = _is_multipart(node.attr("enctype"))
        self._join = join
        self._encoding = encoding
        self._fetch = fetch
        self._controls = [each for each in controls if not _is_disabled(each)]
        self.fields: list[tuple[str, str]] = [pair for each in self._controls for pair in _values(each)]

    def __repr__(self) -> str:
        return f"<Form {self.method} {self.url}>"

    def submit(
        self, values: Mapping[str, Any] | None = None, *, button: str | None = None, **options: "Unpack[FetchOptions]"
    ) -> Any:
        """Send the form through the engine; returns the page. Await it in an `async def` script.

        `values` replace the form's own: text, a list for several values, True or False for a check box, None to leave a
        field out; for a file, what `files` of `fetch` takes. `button` names the button to press, by name or value;
        otherwise the first one. Its `formaction`, `formmethod` and `formenctype` replace the form's. Further options as
        of `fetch`. Raises ValueError for a button that is not there.
        """
        pressed = self._pressed(button)
        fields, files = self._filled(values or {})
        fields += [] if pressed is None else _pressed_values(pressed)
        return self._fetch(*self._request(pressed, fields, files), **options)

    def _request(
        self, pressed: Node | None, fields: list[tuple[str, str]], files: list[tuple[str, File]]
    ) -> tuple[str, dict[str, Any]]:
        """The address, and the options that carry the fields."""
        said = {} if pressed is None else pressed.attrs
        url = self._join(said["formaction"]) if "formaction" in said else self.url
        if (_method(said["formmethod"]) if "formmethod" in said else self.method) == "GET":
            if files:
                raise ValueError("a form whose method is GET cannot send files")
            return urlunsplit(urlsplit(url)._replace(query=self._encoded(fields), fragment="")), {"method": "GET"}
        if files or (_is_multipart(said["formenctype"]) if "formenctype" in said else self.is_multipart):
            pairs = [(name, value.encode(self._encoding, "xmlcharrefreplace")) for name, value in fields]
            kind, body = multipart(pairs, files)
        else:
            kind, body = "application/x-www-form-urlencoded", self._encoded(fields).encode()
        return url, {"method": "POST", "body": body, "headers": {"content-type": kind}}

    def _encoded(self, fields: list[tuple[str, str]]) -> str:
        return urlencode(fields, encoding=self._encoding, errors="xmlcharrefreplace")

    def _filled(self, values: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, File]]]:
        fields, files = [(name, value) for name, value in self.fields if name not in values], []
        of_files = {each.attr("name") for each in self._controls if _kind(each) == "file"}
        for name, value in values.items():
            for each in value if isinstance(value, list) else [value]:
                if name in of_files or isinstance(each, (bytes, tuple)):
                    files.append((name, each))
                elif isinstance(each, bool):
                    fields += [(name, self._checked_value(name))] if each else []
                elif each is not None:
                    fields.append((name, str(each)))
        return fields, files

    def _checked_value(self, name: str) -> str:
        boxes = (each for each in self._controls if each.attr("name") == name and _kind(each) == "checkbox")
        box = next(boxes, None)
        return "on" if box is None else box.attr("value", "on") or "on"

    def _pressed(self, button: str | None) -> Node | None:
        buttons = [each for each in self._controls if _is_submit(each)]
        if button is None:
            return next(iter(buttons), None)
        for each in buttons:
            if button in (each.attr("name"), each.attr("value"), each.text()):
                return each
        raise ValueError(f"the form has no button {button[:100]!r}")


def _method(said: str | None) -> str:
    return "POST" if (said or "").strip().lower() == "post" else "GET"


def _is_multipart(said: str | None) -> bool:
    return (said or "").strip().lower() == "multipart/form-data"


def _kind(control: Node) -> str:
    if control.tag == "input":
        return (control.attr("type") or "text").strip().lower()
    return (control.attr("type") or "submit").strip().lower() if control.tag == "button" else control.tag


def _is_submit(control: Node) -> bool:
    return _kind(control) in ("submit", "image")


def _pressed_values(button: Node) -> list[tuple[str, str]]:
    """What a pressed button sends: an image the place of the click, any other its value if it has a name."""
    name = button.attr("name") or ""
    if _kind(button) == "image":
        return [(f"{name}.{axis}" if name else axis, "0") for axis in "xy"]
    return [(name, button.attr("value") or "")] if name else []


def _is_disabled(control: Node) -> bool:
    if control.attr("disabled") is not None:
        return True
    above = control.parent
    while above is not None:
        if above.tag == "fieldset" and above.attr("disabled") is not None:
            return True
        above = above.parent
    return False


def _values(control: Node) -> Iterator[tuple[str, str]]:
    """What a control sends as it stands: nothing without a name, unless it is checked, or if it is a button."""
    name, kind = control.attr("name") or "", _kind(control)
    if not name or kind in _NO_VALUE:
        return
    if kind == "select":
        yield from ((name, value) for value in _chosen(control))
    elif kind == "textarea":
        yield name, _content(control)
    elif kind not in ("checkbox", "radio"):
        yield name, control.attr("value") or ""
    elif control.attr("checked") is not None:
        yield name, control.attr("value", "on") or ""


def _chosen(select: Node) -> list[str]:
    options = [each for each in select.css("option") if each.attr("disabled") is None]
    chosen = [each for each in options if each.attr("selected") is not None]
    if select.attr("multiple") is None:
        chosen = chosen[-1:] or options[:1]
    return [each.text() if (value := each.attr("value")) is None else value for each in chosen]


def _content(area: Node) -> str:
    """The words of a text area; its first line break is not part of them, and all are sent as CR LF."""
    text = "".join(area.css("textarea::text").getall()).removeprefix("\n")
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def controls_of(form: Node, root: Node | None) -> list[Node]:
    """The controls inside a form that name no other, and those elsewhere that name this one."""
    own, identity = form.css(_CONTROLS), form.attr("id")
    mine = [each for each in own if each.attr("form") in (None, "", identity)]
    if not identity or root is None:
        return mine
    inside = set(own)
    return mine + [each for each in root.css(_CONTROLS) if each.attr("form") == identity and each not in inside]
