"""The steps of `builtin/actions`: one struct for each. Input check, JSON Schema and docs are made of them.

Names and meanings follow `engines/browser/operations.py`, where a step and an operation do the same. A text may hold
`{{name}}`: the value of a variable, or of what was extracted before.
"""

import re
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from scrapeyard.engines.browser import operations as browser
from scrapeyard.engines.browser.port import ContextOptions

MAX_STEPS: Final = 1000
"""Steps in an input, in all lists together."""
MAX_DEPTH: Final = 10
"""Levels of steps in steps."""
MAX_PERFORMED: Final = 10_000
MAX_UPLOAD: Final = 10 * 1024 * 1024
"""Bytes of the files of one upload."""
NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
FILE_NAME: Final = r"^[A-Za-z0-9{][A-Za-z0-9._{}-]{0,127}$"

Selector = Annotated[browser.Selector, Meta(description="The element: CSS, `text=…`, `xpath=…`, `role=…`, `a >> b`.")]
MaybeSelector = Annotated[
    str, Meta(max_length=browser.MAX_SELECTOR, description="The element, written as in the other steps.")
]
Name = Annotated[str, Meta(pattern=NAME, description="Where the result has it, under `data`; `{{name}}` from now on.")]
FileName = Annotated[
    str, Meta(pattern=FILE_NAME, description="Name of the artifact; the same name again replaces the first.")
]
WaitUntil = Annotated[browser.LoadState, Meta(description="What counts as loaded.")]
Pixels = Annotated[float | None, Meta(description="Pixels from the element's left or upper edge; null: its middle.")]
Steps = Annotated[tuple["Step", ...], Meta(max_length=MAX_STEPS)]


def _tag(name: str) -> str:
    """`WaitForStep` is `wait_for`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Step")).lower()


class ActionStep(Struct, frozen=True, kw_only=True, tag_field="do", tag=_tag, forbid_unknown_fields=True):
    """What all steps have in common."""

    optional: Annotated[bool, Meta(description="Go on if the step fails; its outcome says so.")] = False
    timeout: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None,
        Meta(description="Seconds that it may take; null: as `browser.timeout` says."),
    ] = None
    frame: Annotated[
        tuple[browser.Selector, ...],
        Meta(max_length=10, description="Selectors of the iframes that lead to the element, the outermost first."),
    ] = ()


class GotoStep(ActionStep, frozen=True, kw_only=True):
    """Open a URL."""

    url: Annotated[browser.Url, Meta(min_length=1, description="Absolute, or relative to the page that is open.")]
    wait_until: WaitUntil = "load"
    referer: Annotated[browser.Url, Meta(description="The page that the browser says it comes from.")] = ""


class BackStep(ActionStep, frozen=True, kw_only=True):
    """Go back to the page before."""

    wait_until: WaitUntil = "load"


class ForwardStep(ActionStep, frozen=True, kw_only=True):
    """Go forward again."""

    wait_until: WaitUntil = "load"


class ReloadStep(ActionStep, frozen=True, kw_only=True):
    """Load the page again."""

    wait_until: WaitUntil = "load"


class ClickStep(ActionStep, frozen=True, kw_only=True):
    """Click an element once it is visible and still."""

    selector: Selector
    button: Annotated[browser.Button, Meta(description="Of the mouse.")] = "left"
    count: Annotated[int, Meta(ge=1, le=3, description="2 is a double click.")] = 1
    x: Pixels = None
    y: Pixels = None
    modifiers: Annotated[
        tuple[browser.Modifier, ...], Meta(max_length=5, description="Keys that are held down meanwhile.")
    ] = ()
    force: Annotated[bool, Meta(description="Do not wait until it can be clicked.")] = False


class HoverStep(ActionStep, frozen=True, kw_only=True):
    """Move the mouse over an element."""

    selector: Selector
    x: Pixels = None
    y: Pixels = None


class FillStep(ActionStep, frozen=True, kw_only=True):
    """Set the text of an input at once. The text appears in no outcome and in no error."""

    selector: Selector
    text: Annotated[browser.Text, Meta(description="The new text; the old one is replaced.")]


class TypeStep(ActionStep, frozen=True, kw_only=True):
    """Type a text key by key. The text appears in no outcome and in no error."""

    selector: Selector
    text: Annotated[str, Meta(max_length=10_000, description="What is typed, after the text that is there.")]
    delay: Annotated[float, Meta(ge=0, le=10, description="Seconds between two keys.")] = 0


class PressStep(ActionStep, frozen=True, kw_only=True):
    """Press a key or a combination."""

    key: Annotated[str, Meta(min_length=1, max_length=100, description="`Enter`, `Tab`, `Control+A`, …")]
    selector: MaybeSelector = ""


class SelectStep(ActionStep, frozen=True, kw_only=True):
    """Choose options of a `<select>`."""

    selector: Selector
    values: Annotated[
        tuple[browser.Text, ...], Meta(min_length=1, max_length=1000, description="Values or labels of the options.")
    ]


class CheckStep(ActionStep, frozen=True, kw_only=True):
    """Set a checkbox or a radio button."""

    selector: Selector


class UncheckStep(ActionStep, frozen=True, kw_only=True):
    """Clear a checkbox."""

    selector: Selector


class UploadFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file: its bytes as base64, or the URL to fetch them from."""

    name: Annotated[str, Meta(min_length=1, max_length=255, description="The file's name, as the page sees it.")]
    base64: Annotated[str, Meta(max_length=MAX_UPLOAD * 4 // 3 + 4, description="Its bytes.")] = ""
    url: Annotated[browser.Url, Meta(description="Fetched with the engine, as any page.")] = ""
    content_type: Annotated[str, Meta(max_length=200, description="What kind of file it is.")] = (
        "application/octet-stream"
    )


class UploadStep(ActionStep, frozen=True, kw_only=True):
    """Choose files for a file input."""

    selector: Selector
    files: Annotated[tuple[UploadFile, ...], Meta(max_length=browser.MAX_FILES, description="None: clear the input.")]


class DownloadStep(ActionStep, frozen=True, kw_only=True):
    """Click an element, or open a URL, and keep the file that this downloads as an artifact."""

    selector: MaybeSelector = ""
    url: Annotated[browser.Url, Meta(description="Opened instead of a click.")] = ""
    file: Annotated[
        str, Meta(pattern=rf"^$|{FILE_NAME}", description="Name of the artifact; empty: as the site names the file.")
    ] = ""
    name: Annotated[str, Meta(pattern=rf"^$|{NAME}", description="Where `data` has its name, URL and size.")] = ""


class WaitForStep(ActionStep, frozen=True, kw_only=True):
    """Wait for one thing: an element, a text, a URL, an answer, a state of loading, an expression, or some seconds."""

    selector: MaybeSelector = ""
    state: Annotated[browser.ElementState, Meta(description="With `selector`: what is waited for.")] = "visible"
    count: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)] | None,
        Meta(description="With `selector`: until so many, or more, are there."),
    ] = None
    text: Annotated[str, Meta(max_length=10_000, description="A text that is seen anywhere in the page.")] = ""
    url: Annotated[str, Meta(max_length=2048, description="A pattern of the page's URL, such as `**/account*`.")] = ""
    response: Annotated[
        str, Meta(max_length=2048, description="A pattern of the URL of an answer that the page gets.")
    ] = ""
    load: Annotated[
        Literal["", "load", "domcontentloaded", "networkidle"],
        Meta(description="A state of loading; `networkidle`: no request for half a second."),
    ] = ""
    expression: Annotated[browser.Text, Meta(description="JavaScript that becomes true.")] = ""
    seconds: Annotated[
        Annotated[float, Meta(ge=0, le=600)] | None, Meta(description="So many seconds, whatever happens.")
    ] = None
    name: Annotated[
        str, Meta(pattern=rf"^$|{NAME}", description="With `response`: where `data` has the body, JSON if it is.")
    ] = ""


class ScrollStep(ActionStep, frozen=True, kw_only=True):
    """Scroll an element into view, the page by some pixels, or to an end."""

    selector: MaybeSelector = ""
    x: Annotated[float, Meta(description="Pixels to the right.")] = 0
    y: Annotated[float, Meta(description="Pixels down.")] = 0
    to: Annotated[Literal["", "top", "bottom"], Meta(description="An end of the page.")] = ""
    rounds: Annotated[
        int, Meta(ge=1, le=1000, description="With `to`: again so often at most, until the page grows no longer.")
    ] = 1


class ExtractStep(ActionStep, frozen=True, kw_only=True):
    """Take data from the page: one value, a list of values, or a list of records."""

    name: Name
    selector: Selector
    what: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="`text` (as it is seen), `text_content`, `html` (with the element), `inner_html`, `value`, "
            "`checked`, `visible`, or `@name` for an attribute.",
        ),
    ] = "text"
    many: Annotated[bool, Meta(description="A list with every match; otherwise the first, or null.")] = False
    fields: Annotated[
        dict[str, Annotated[str, Meta(max_length=browser.MAX_SELECTOR)]],
        Meta(
            max_length=200,
            description="For records: field → CSS selector within the element, with `::text` or `::attr(name)` behind "
            "it; empty: the element itself.",
        ),
    ] = field(default_factory=dict)
    limit: Annotated[int, Meta(ge=1, le=100_000, description="Maximum elements.")] = 10_000
    append: Annotated[bool, Meta(description="Add to the list that is there, as in a loop over pages.")] = False
    required: Annotated[bool, Meta(description="Fail if nothing matches.")] = False


class ScreenshotStep(ActionStep, frozen=True, kw_only=True):
    """Keep a picture of the window, the whole page or an element as an artifact."""

    file: FileName = "screenshot.png"
    selector: MaybeSelector = ""
    full_page: Annotated[bool, Meta(description="The whole page, not only what the window shows.")] = False
    format: Annotated[Literal["png", "jpeg"], Meta(description="Of the picture.")] = "png"


class PdfStep(ActionStep, frozen=True, kw_only=True):
    """Keep the page as a PDF artifact."""

    file: FileName = "page.pdf"
    format: Annotated[str, Meta(max_length=20, description="Of the paper.")] = "A4"
    landscape: Annotated[bool, Meta(description="Whether the paper lies on its side.")] = False
    background: Annotated[bool, Meta(description="Whether backgrounds are printed.")] = True


class EvaluateStep(ActionStep, frozen=True, kw_only=True):
    """Run JavaScript in the page."""

    expression: Annotated[browser.Text, Meta(min_length=1, description="An expression, or a function of `arg`.")]
    arg: Annotated[Any, Meta(description="Given to the function.")] = None
    name: Annotated[str, Meta(pattern=rf"^$|{NAME}", description="Where `data` has its value; empty: nowhere.")] = ""


class DialogsStep(ActionStep, frozen=True, kw_only=True):
    """Say what happens to dialogs from now on; at first they are dismissed."""

    accept: Annotated[bool, Meta(description="Accept them; otherwise dismiss them.")] = True
    text: Annotated[str, Meta(max_length=10_000, description="The answer to a prompt.")] = ""


class SwitchTabStep(ActionStep, frozen=True, kw_only=True):
    """Go on in another tab."""

    tab: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(description="Its number, from 0; null: wait for one that the page opens."),
    ] = None


class CloseTabStep(ActionStep, frozen=True, kw_only=True):
    """Close the tab and go on in the first one."""


class SetStep(ActionStep, frozen=True, kw_only=True):
    """Set variables."""

    variables: Annotated[
        dict[Annotated[str, Meta(pattern=NAME)], Any],
        Meta(min_length=1, max_length=100, description="Name → value; `{{name}}` in texts is replaced by it."),
    ]


class Condition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition: an element, a text, a URL, a variable, or an expression."""

    element: Annotated[str, Meta(max_length=browser.MAX_SELECTOR, description="True if one is visible.")] = ""
    text: Annotated[str, Meta(max_length=10_000, description="True if the page shows it.")] = ""
    url: Annotated[str, Meta(max_length=2048, description="True if the page's URL matches this pattern.")] = ""
    expression: Annotated[browser.Text, Meta(description="True if this JavaScript is.")] = ""
    variable: Annotated[
        str, Meta(max_length=200, description="A variable, such as `count` or `item.price`, that `is` … `value`.")
    ] = ""
    is_: Annotated[
        Literal["==", "!=", "<", "<=", ">", ">=", "contains", "set"],
        Meta(description="How `variable` is compared; `set`: it is there and neither null nor empty."),
    ] = field(default="set", name="is")
    value: Annotated[Any, Meta(description="What `variable` is compared with.")] = None
    not_: Annotated[bool, Meta(description="True if the condition is not.")] = field(default=False, name="not")


When = Annotated[Condition, Meta(description="One of `element`, `text`, `url`, `expression`, `variable`.")]


class IfStep(ActionStep, frozen=True, kw_only=True):
    """Take one way or the other."""

    condition: When
    then: Annotated[Steps, Meta(description="Steps if it is true.")] = ()
    else_: Annotated[Steps, Meta(description="Steps if it is not.")] = field(default=(), name="else")


class WhileStep(ActionStep, frozen=True, kw_only=True):
    """Repeat steps as long as a condition is true."""

    condition: When
    steps: Annotated[Steps, Meta(min_length=1, description="What is repeated.")]
    limit: Annotated[
        int, Meta(ge=1, le=MAX_PERFORMED, description="Rounds at most; the condition still true then is no failure.")
    ] = 100


class ForEachStep(ActionStep, frozen=True, kw_only=True):
    """Repeat steps for each element, or for each value of a list."""

    selector: MaybeSelector = ""
    items: Annotated[Any, Meta(description='A list, or a variable that holds one: `"{{names}}"`.')] = None
    as_: Annotated[
        str,
        Meta(pattern=NAME, description="The variable with the value, or with a selector of the element."),
    ] = field(default="item", name="as")
    index: Annotated[str, Meta(pattern=NAME, description="The variable with the round, from 0.")] = "index"
    steps: Annotated[Steps, Meta(min_length=1, description="What is repeated.")]
    limit: Annotated[int, Meta(ge=1, le=MAX_PERFORMED, description="Rounds at most.")] = 1000


class SolveCaptchaStep(ActionStep, frozen=True, kw_only=True):
    """Solve a captcha, where policy allows it: a picture of text, or a checkbox."""

    selector: Annotated[
        str,
        Meta(
            max_length=browser.MAX_SELECTOR,
            description="The picture, with `into`; empty: the checkbox of Turnstile, reCAPTCHA or hCaptcha.",
        ),
    ] = ""
    into: Annotated[
        str, Meta(max_length=browser.MAX_SELECTOR, description="The input that its text is filled into.")
    ] = ""
    name: Annotated[str, Meta(pattern=rf"^$|{NAME}", description="Where `data` has the text or the token.")] = ""


Step = (
    GotoStep | BackStep | ForwardStep | ReloadStep | ClickStep | HoverStep | FillStep | TypeStep | PressStep
    | SelectStep | CheckStep | UncheckStep | UploadStep | DownloadStep | WaitForStep | ScrollStep | ExtractStep
    | ScreenshotStep | PdfStep | EvaluateStep | DialogsStep | SwitchTabStep | CloseTabStep | SetStep | IfStep
    | WhileStep | ForEachStep | SolveCaptchaStep
)  # fmt: skip

Screenshots = Literal["none", "failure", "each"]


class ActionsInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps in a browser."""

    url: Annotated[browser.Url, Meta(description="Opened before the first step; empty: the steps open something.")] = ""
    steps: Annotated[Steps, Meta(description="What is done, in order.")] = ()
    variables: Annotated[
        dict[Annotated[str, Meta(pattern=NAME)], Any],
        Meta(max_length=100, description="Values for `{{name}}` in the texts of the steps."),
    ] = field(default_factory=dict)
    browser: Annotated[ContextOptions, Meta(description="What the browser looks like to pages.")] = ContextOptions()
    screenshots: Annotated[
        Screenshots, Meta(description="Pictures that are kept: none, of a failing step, or of each step.")
    ] = "failure"


def nested(step: ActionStep) -> dict[str, tuple["Step", ...]]:
    """The lists of steps within a step, by their names in JSON."""
    if isinstance(step, IfStep):
        return {"then": step.then, "else": step.else_}
    return {"steps": step.steps} if isinstance(step, WhileStep | ForEachStep) else {}
