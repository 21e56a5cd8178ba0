"""Firecrawl's actions as steps of `builtin/actions`, and what they left as Firecrawl tells it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_SCROLL = (
    "(arg) => (arg.selector ? document.querySelector(arg.selector) : window)"
    ".scrollBy(0, (arg.direction === 'up' ? -1 : 1) * window.innerHeight)"
)
_Selector = Annotated[str, Field(min_length=1, max_length=4096)]


class _Act(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class WaitAction(_Act):
    """Wait some time, or for an element."""

    type: Literal["wait"]
    milliseconds: int | None = Field(None, ge=0, le=300_000)
    selector: _Selector | None = None

    @model_validator(mode="after")
    def _waits_for_one(self) -> "WaitAction":
        if (self.milliseconds is None) == (self.selector is None):
            raise ValueError("give milliseconds or a selector")
        return self


class ShotAction(_Act):
    """Take a picture."""

    type: Literal["screenshot"]
    full_page: bool | None = None
    quality: Literal[100] | None = Field(None, description="Pictures are PNG, which loses nothing.")
    viewport: None = Field(None, description="The window keeps its size; give it with the format `screenshot`.")


class ClickAction(_Act):
    """Click an element, or all that match."""

    type: Literal["click"]
    selector: _Selector
    all: bool | None = None


class WriteAction(_Act):
    """Type into the element that has the focus."""

    type: Literal["write"]
    text: str = Field(max_length=10_000)


class PressAction(_Act):
    """Press a key."""

    type: Literal["press"]
    key: str = Field(min_length=1, max_length=100)


class ScrollAction(_Act):
    """Scroll the page or an element by the height of the window."""

    type: Literal["scroll"]
    direction: Literal["up", "down"] = "down"
    selector: _Selector | None = None


class HtmlAction(_Act):
    """Take the page as it is now."""

    type: Literal["scrape"]


class ScriptAction(_Act):
    """Run JavaScript in the page."""

    type: Literal["executeJavascript"]
    script: str = Field(min_length=1, max_length=100_000)


class PaperAction(_Act):
    """Print the page as a PDF."""

    type: Literal["pdf"]
    format: Literal["A0", "A1", "A2", "A3", "A4", "A5", "A6", "Letter", "Legal", "Tabloid", "Ledger"] | None = None
    landscape: bool | None = None
    scale: None = Field(None, description="Pages are printed at their size.")


Action = Annotated[
    WaitAction
    | ShotAction
    | ClickAction
    | WriteAction
    | PressAction
    | ScrollAction
    | HtmlAction
    | ScriptAction
    | PaperAction,
    Field(discriminator="type"),
]


def steps_of(actions: list[Action]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The steps, and the variables that hold their texts: a text may itself have `{{…}}` in it."""
    steps: list[dict[str, Any]] = []
    variables: dict[str, Any] = {}
    for number, action in enumerate(actions):

        def held(text: str, number: int = number) -> str:
            if "{{" not in text:
                return text
            variables[f"text_{number}"] = text
            return f"{{{{text_{number}}}}}"

        steps += _steps(number, action, held)
    return steps, variables


def _steps(number: int, action: Action, held: Any) -> list[dict[str, Any]]:
    match action:
        case WaitAction(milliseconds=int(milliseconds)):
            return [{"do": "wait_for", "seconds": milliseconds / 1000}]
        case WaitAction():
            return [{"do": "wait_for", "selector": held(action.selector)}]
        case ShotAction():
            return [{"do": "screenshot", "file": f"action-{number}.png", "full_page": bool(action.full_page)}]
        case ClickAction(all=True):
            click = {"do": "click", "selector": "{{item}}"}
            return [{"do": "for_each", "selector": held(action.selector), "steps": [click]}]
        case ClickAction():
            return [{"do": "click", "selector": held(action.selector)}]
        case WriteAction():
            return [{"do": "type", "selector": ":focus", "text": held(action.text)}]
        case PressAction():
            return [{"do": "press", "key": action.key}]
        case ScrollAction():
            asked = {"direction": action.direction, "selector": action.selector or ""}
            return [{"do": "evaluate", "expression": _SCROLL, "arg": asked}]
        case HtmlAction():
            return [
                {"do": "extract", "name": f"html_{number}", "selector": "html", "what": "html"},
                {"do": "evaluate", "name": f"url_{number}", "expression": "location.href"},
            ]
        case ScriptAction():
            return [{"do": "evaluate", "name": f"value_{number}", "expression": held(action.script)}]
        case PaperAction():
            paper = {"format": action.format or "A4", "landscape": bool(action.landscape)}
            return [{"do": "pdf", "file": f"action-{number}.pdf", **paper}]


def results_of(found: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any] | None:
    """What the actions left: pictures and PDFs as data URIs (`files`), pages and values. None: nothing."""
    numbered = sorted(found.items(), key=lambda each: int(each[0].rpartition("_")[2]))
    pages = [(name, value) for name, value in numbered if name.startswith("html_")]
    left = {
        "screenshots": [files[name] for name in _in_order(files, ".png")],
        "scrapes": [{"url": found.get(name.replace("html_", "url_"), ""), "html": html} for name, html in pages],
        "javascriptReturns": [
            {"type": _type(value), "value": value} for name, value in numbered if name.startswith("value_")
        ],
        "pdfs": [files[name] for name in _in_order(files, ".pdf")],
    }
    return left if any(left.values()) else None


def _in_order(files: Mapping[str, str], ending: str) -> list[str]:
    named = [name for name in files if name.startswith("action-") and name.endswith(ending)]
    return sorted(named, key=lambda name: int(name.removeprefix("action-").removesuffix(ending)))


def _type(value: Any) -> str:
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "undefined"}
    return kinds.get(type(value), "object")
