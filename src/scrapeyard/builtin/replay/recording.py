"""A recording, as the Recorder of Chrome's DevTools exports it: the schema of @puppeteer/replay.

Properties that newer recorders add are accepted and ignored.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from scrapeyard.builtin.struct_schemas import input_schema
from scrapeyard.engines.browser.operations import MAX_SELECTOR, MAX_TEXT
from scrapeyard.engines.browser.port import ContextOptions
from scrapeyard.errors import InputInvalid

MAX_STEPS: Final = 1000
Milliseconds = Annotated[float, Meta(ge=0, le=600_000)]
Part = Annotated[str, Meta(min_length=1, max_length=MAX_SELECTOR)]
Chain = Annotated[tuple[Part, ...], Meta(min_length=1, max_length=10)]
Selectors = Annotated[
    tuple[Part | Chain, ...],
    Meta(
        min_length=1,
        max_length=50,
        description="Alternatives: the first that matches is taken. A list of selectors leads inwards, through shadow "
        "roots. CSS, or `aria/…`, `text/…`, `xpath/…`, `pierce/…`.",
    ),
]
Offset = Annotated[float | None, Meta(description="Pixels from the element's left or upper edge; null: its middle.")]
DeviceType = Annotated[
    Literal["mouse", "pen", "touch"], Meta(description="What was used; all are replayed as a mouse.")
]
Button = Annotated[Literal["primary", "auxiliary", "secondary", "back", "forward"], Meta(description="Of the mouse.")]
Key = Annotated[str, Meta(min_length=1, max_length=100, description="The key, such as `Enter`, `a` or `KeyA`.")]


def _tag(name: str) -> str:
    """`SetViewport` is `setViewport`, and `RecordedClick` is `click`."""
    name = name.removeprefix("Recorded")
    return name[0].lower() + name[1:]


class AssertedEvent(Struct, frozen=True, kw_only=True):
    """What happened after the step."""

    type: Annotated[Literal["navigation"], Meta(description="Another page was opened.")]
    url: Annotated[str, Meta(max_length=16 * 1024, description="Of that page; empty: any.")] = ""
    title: Annotated[str, Meta(max_length=10_000, description="Of that page; empty: any.")] = ""


class RecordedStep(Struct, frozen=True, kw_only=True, tag_field="type", tag=_tag, rename="camel"):
    """What all steps have in common."""

    timeout: Annotated[Milliseconds | None, Meta(description="Milliseconds; null: the recording's.")] = None
    asserted_events: Annotated[
        tuple[AssertedEvent, ...], Meta(max_length=20, description="What the step waits for at its end.")
    ] = ()
    target: Annotated[
        str, Meta(max_length=16 * 1024, description="`main`, or the URL of the tab or of the frame that is meant.")
    ] = "main"


class FramedStep(RecordedStep, frozen=True, kw_only=True):
    """In a frame."""

    frame: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=1000)], ...],
        Meta(max_length=10, description="Places of the frames that lead to the element, from the outermost."),
    ] = ()


class ElementStep(FramedStep, frozen=True, kw_only=True):
    """With an element."""

    selectors: Selectors


class SetViewport(RecordedStep, frozen=True, kw_only=True):
    """Set the size of the window."""

    width: Annotated[float, Meta(ge=1, le=10_000, description="In pixels.")]
    height: Annotated[float, Meta(ge=1, le=10_000, description="In pixels.")]
    device_scale_factor: Annotated[float, Meta(ge=0, le=5, description="Pixels of the screen for one of the page.")] = 1
    is_mobile: Annotated[bool, Meta(description="Whether pages see a mobile device.")] = False
    has_touch: Annotated[bool, Meta(description="Whether pages see a touch screen.")] = False
    is_landscape: Annotated[bool, Meta(description="Whether the screen lies on its side.")] = False


class EmulateNetworkConditions(RecordedStep, frozen=True, kw_only=True):
    """Make the network slow."""

    download: Annotated[float, Meta(description="Bytes in a second; below 0: no limit.")]
    upload: Annotated[float, Meta(description="Bytes in a second; below 0: no limit.")]
    latency: Annotated[Milliseconds, Meta(description="Milliseconds.")]


class Navigate(RecordedStep, frozen=True, kw_only=True):
    """Open a URL."""

    url: Annotated[str, Meta(min_length=1, max_length=16 * 1024, description="Where to.")]


class RecordedClick(ElementStep, frozen=True, kw_only=True):
    """Click an element."""

    offset_x: Offset = None
    offset_y: Offset = None
    button: Button = "primary"
    device_type: DeviceType = "mouse"
    duration: Annotated[Milliseconds, Meta(description="Milliseconds between press and release.")] = 50


class DoubleClick(ElementStep, frozen=True, kw_only=True):
    """Click an element twice."""

    offset_x: Offset = None
    offset_y: Offset = None
    button: Button = "primary"
    device_type: DeviceType = "mouse"


class RecordedHover(ElementStep, frozen=True, kw_only=True):
    """Move the mouse over an element."""


class KeyDown(RecordedStep, frozen=True, kw_only=True):
    """Press a key and hold it."""

    key: Key


class KeyUp(RecordedStep, frozen=True, kw_only=True):
    """Release a key."""

    key: Key


class RecordedChange(ElementStep, frozen=True, kw_only=True):
    """Set the value of a control."""

    value: Annotated[str, Meta(max_length=MAX_TEXT, description="The value; it appears in no outcome.")]


class RecordedScroll(FramedStep, frozen=True, kw_only=True):
    """Scroll the page, or an element, to a place."""

    selectors: Annotated[
        tuple[Part | Chain, ...], Meta(max_length=50, description="Of the element; none: the page.")
    ] = ()
    x: Annotated[float, Meta(description="Pixels from the left.")] = 0
    y: Annotated[float, Meta(description="Pixels from the top.")] = 0


class Close(RecordedStep, frozen=True, kw_only=True):
    """Close a tab."""


class WaitForElement(ElementStep, frozen=True, kw_only=True):
    """Wait until so many elements are there."""

    operator: Annotated[Literal[">=", "==", "<="], Meta(description="How their number is compared.")] = ">="
    count: Annotated[int, Meta(ge=0, le=100_000, description="How many.")] = 1
    visible: Annotated[bool, Meta(description="False: wait until that is not so.")] = True
    attributes: Annotated[
        dict[str, str | None], Meta(max_length=100, description="Attributes that all of them have.")
    ] = field(default_factory=dict)
    properties: Annotated[
        dict[str, Any], Meta(max_length=100, description="Properties that all of them have, in any depth.")
    ] = field(default_factory=dict)


class WaitForExpression(FramedStep, frozen=True, kw_only=True):
    """Wait until JavaScript is true."""

    expression: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT, description="An expression, or a promise.")]


class CustomStep(FramedStep, frozen=True, kw_only=True):
    """A step of an extension of the recorder. It is skipped, with a note."""

    name: Annotated[str, Meta(max_length=200, description="Of the step.")]
    parameters: Annotated[Any, Meta(description="What the extension keeps for it.")] = None


AnyStep = (
    SetViewport | EmulateNetworkConditions | Navigate | RecordedClick | DoubleClick | RecordedHover | KeyDown | KeyUp
    | RecordedChange | RecordedScroll | Close | WaitForElement | WaitForExpression | CustomStep
)  # fmt: skip


class Recording(Struct, frozen=True, kw_only=True, rename="camel"):
    """A recording as it was exported, and how to replay it."""

    title: Annotated[str, Meta(max_length=10_000, description="Of the recording.")] = ""
    timeout: Annotated[
        Milliseconds | None, Meta(description="Milliseconds of each step that names none; null: 5,000.")
    ] = None
    selector_attribute: Annotated[
        str, Meta(max_length=200, description="The attribute that the recorder made selectors of.")
    ] = ""
    steps: Annotated[tuple[AnyStep, ...], Meta(max_length=MAX_STEPS, description="What is done, in order.")] = ()
    browser: Annotated[ContextOptions, Meta(description="What the browser looks like to pages.")] = ContextOptions()
    screenshots: Annotated[
        Literal["none", "failure", "each"],
        Meta(description="Pictures that are kept: none, of a failing step, or of each step."),
    ] = "failure"
    strict: Annotated[
        bool, Meta(description="Fail if a step leads to another URL or title than recorded; otherwise that is a note.")
    ] = False


REPLAY_INPUT: dict[str, Any] = {
    **input_schema(Recording),
    "if": {"anyOf": [{"required": ["steps"]}, {"not": {"required": ["type"]}}]},
    "then": {"required": ["steps"]},
    "else": {"$ref": "#/$defs/Steps/items"},
}
"""A recording, or one step alone, as the recorder exports it."""


def read_recording(given: dict[str, Any]) -> Recording:
    """The recording of an input that fits REPLAY_INPUT. Raises InputInvalid with the place of the fault."""
    if "steps" not in given and "type" in given:
        given = {"title": str(given["type"]), "steps": [given]}
    try:
        return msgspec.convert(given, Recording)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputInvalid(str(error)) from None


def chains(selectors: tuple[str | tuple[str, ...], ...]) -> list[str]:
    """Each alternative as one selector."""
    return [each if isinstance(each, str) else " >>> ".join(each) for each in selectors]
