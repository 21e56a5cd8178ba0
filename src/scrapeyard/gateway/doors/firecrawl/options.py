"""What a Firecrawl call asks of a page: its options, checked, and what they are to `builtin/document`."""

import re
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from scrapeyard.errors import BadRequest
from scrapeyard.gateway.doors.door import session_of
from scrapeyard.gateway.doors.firecrawl.actions import Action, steps_of
from scrapeyard.gateway.http.patterns import Url

DEVICE: Final = "iPhone 15"
"""What `mobile` looks like."""
MAX_SECONDS: Final = 300.0
_PARTS: Final = {
    "markdown": "markdown",
    "content": "markdown",
    "html": "html",
    "rawHtml": "raw_html",
    "links": "links",
    "images": "images",
    "product": "product",
}
"""Formats that are parts of a page, and what `builtin/page` calls them."""
_ELSEWHERE: Final = {
    "branding": "there is no reader of brands",
    "menu": "there is no reader of menus",
    "query": "questions about a page are not answered; ask for `json` with a prompt",
    "question": "questions about a page are not answered; ask for `json` with a prompt",
    "highlights": "highlights are not made; ask for `json` with a prompt",
    "audio": "sound is not read",
    "video": "films are not read",
    "rawBase64": "bytes are not sent as base64; ask for `rawHtml`",
}
_MASK: Final = "email,phone,card,national_id,ip"
_BARE: Final = re.compile(r"\s*(?:localhost|[^\s/?#:@.]+\.[^\s/?#:@]+)(?::\d+)?(?:[/?#]\S*)?\s*")


def _with_scheme(given: object) -> object:
    return f"http://{given.strip()}" if isinstance(given, str) and _BARE.fullmatch(given) else given


PageUrl = Annotated[Url, BeforeValidator(_with_scheme)]
"""An address as Firecrawl takes it: `example.com/page` is `http://example.com/page`."""


class FirecrawlBody(BaseModel):
    """What bodies have in common. A field that is not known is refused, never left out."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=False)

    origin: str | None = Field(None, max_length=200, description="Who wrote the client; it has no effect.")
    integration: str | None = Field(None, max_length=200, description="Likewise.")


class JsonFormat(BaseModel):
    """Data to a schema, or to a sentence."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    type: Literal["json"] = "json"
    prompt: str | None = Field(None, min_length=1, max_length=2000)
    data_schema: dict[str, Any] | None = Field(None, alias="schema")
    system_prompt: str | None = None
    check_prompt_injection: bool | None = None
    agent: dict[str, Any] | None = None

    def extract(self) -> dict[str, Any]:
        """What `builtin/document` calls it. Raises BadRequest."""
        _refuse_set(self, {"agent": "there is no agent", "check_prompt_injection": "pages are not checked for that"})
        _refuse_set(self, {"system_prompt": "models are told the same whoever asks; give `prompt`"})
        if self.data_schema is not None:
            return {"schema": self.data_schema}
        if self.prompt is None:
            raise BadRequest("json needs a schema or a prompt")
        return {"prompt": self.prompt}


class Window(BaseModel):
    """The size of the browser's window."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(ge=1, le=7680)
    height: int = Field(ge=1, le=4320)


class ScreenshotFormat(BaseModel):
    """A picture of the page."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    type: Literal["screenshot"] = "screenshot"
    full_page: bool = False
    quality: Literal[100] | None = Field(None, description="Pictures are PNG, which loses nothing.")
    viewport: Window | None = None


class TrackingFormat(BaseModel):
    """What changed since the last time."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    type: Literal["changeTracking"] = "changeTracking"
    modes: list[Literal["git-diff", "json"]] = Field(default_factory=list, max_length=2)
    data_schema: None = Field(None, alias="schema", description="Only texts are compared.")
    prompt: None = None
    tag: str | None = Field(None, max_length=100)

    @field_validator("modes")
    @classmethod
    def _are_texts(cls, given: list[str]) -> list[str]:
        if "json" in given:
            raise ValueError("only texts are compared: `git-diff`")
        return given


class _Attribute(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    selector: str = Field(min_length=1, max_length=1000)
    attribute: str = Field(min_length=1, max_length=100)


class AttributesFormat(BaseModel):
    """Attributes of elements."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["attributes"] = "attributes"
    selectors: list[_Attribute] = Field(min_length=1, max_length=50)


class VisitorPlace(BaseModel):
    """Where a visitor comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    country: str | None = Field(None, pattern=r"^[A-Za-z]{2}$")
    languages: list[Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]] | None = Field(
        None, max_length=10
    )


class BrowserProfile(BaseModel):
    """Cookies and storage that are kept between calls."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=128)
    save_changes: Literal[True] = Field(True, description="What pages change is always kept.")


_Milliseconds = Annotated[int, Field(ge=0, le=10**12)]


class FirecrawlOptions(BaseModel):
    """The options of a page, in both versions."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    formats: list[Any] | None = Field(None, max_length=30)
    headers: dict[str, str] | None = Field(None, max_length=50)
    include_tags: list[str] | None = Field(None, max_length=50)
    exclude_tags: list[str] | None = Field(None, max_length=50)
    only_main_content: bool = True
    timeout: int | None = Field(None, ge=1, le=int(MAX_SECONDS * 1000))
    wait_for: int | None = Field(None, ge=0, le=int(MAX_SECONDS * 1000))
    mobile: bool = False
    actions: list[Action] | None = Field(None, max_length=50)
    location: VisitorPlace | None = None
    skip_tls_verification: bool | None = None
    """Certificates are checked all the same; a page whose certificate is not valid says so."""
    remove_base64_images: bool = Field(True, alias="removeBase64Images")
    block_ads: bool = True
    proxy: Literal["basic", "stealth", "enhanced", "auto"] | None = None
    max_age: _Milliseconds | None = None
    store_in_cache: bool = True
    fast_mode: bool = False
    profile: BrowserProfile | None = None
    redact_pii: bool | dict[str, Any] | None = Field(None, alias="redactPII")
    json_options: JsonFormat | None = None
    extract: JsonFormat | None = None
    change_tracking_options: TrackingFormat | None = None
    parsers: list[Any] | None = Field(None, max_length=5)
    parse_pdf: bool = Field(True, alias="parsePDF")
    min_age: Any = None
    lockdown: bool | None = None
    use_mock: Any = None
    agent: Any = None
    check_prompt_injection: bool | None = None
    threat_protection: Any = None
    audit_metadata: Any = None
    domain_tools: bool | None = None
    tool_detail: Any = None
    zero_data_retention: bool | None = None
    atsv: bool | None = None


_NOT_HERE: Final = {
    "min_age": "pages are not served from the cache alone; give maxAge",
    "lockdown": "pages are not served from the cache alone; give maxAge",
    "use_mock": "there are no mock pages",
    "agent": "there is no agent",
    "check_prompt_injection": "pages are not checked for that",
    "threat_protection": "there is no such service; `http.allow_hosts` and scrapers' `allowed_hosts` limit hosts",
    "audit_metadata": "the audit names the key that calls",
    "domain_tools": "there are no tools of domains",
    "tool_detail": "there are no tools of domains",
    "zero_data_retention": "what a run leaves is removed by policy; use POST /api/scrape with policy.retention",
    "atsv": "there is no such option",
}


def _refuse_set(model: BaseModel, reasons: dict[str, str]) -> None:
    """Raises BadRequest for a field that asks for what there is not."""
    for name, reason in reasons.items():
        if getattr(model, name) not in (None, False):
            raise BadRequest(f"{to_camel(name)} is not available here: {reason}")


class DocumentWish(Struct, frozen=True, kw_only=True):
    """What is done for a page, and how its answer is written."""

    input: dict[str, Any]
    """Of `builtin/document`, without the URL."""
    policy: dict[str, Any]
    seconds: float | None
    """Until the answer is no longer waited for; None: the version's own."""
    formats: tuple[str, ...]
    """As the answer names them."""
    track: TrackingFormat | None = None
    warnings: tuple[str, ...] = ()


def wanted(options: FirecrawlOptions) -> DocumentWish:
    """Turn options into a call. Raises BadRequest for what there is not."""
    _refuse_set(options, _NOT_HERE)
    _check_parsers(options)
    asked = _Formats(options)
    parts = list(dict.fromkeys(asked.parts))
    given: dict[str, Any] = {"formats": parts, "only_main": options.only_main_content, **asked.more}
    for name in ("headers", "include_tags", "exclude_tags"):
        if value := getattr(options, name):
            given[name] = value
    _add_browser(given, options, asked)
    if options.location is not None and options.location.languages and "browser" not in given:
        given.setdefault("headers", {}).setdefault("Accept-Language", ", ".join(options.location.languages))
    if options.fast_mode and "steps" not in given and "browser" not in given:
        given["engine"] = "http"
    return DocumentWish(
        input=given,
        policy=_policy(options, acts=bool(options.actions)) | ({"max_age_seconds": 0} if asked.track else {}),
        seconds=options.timeout / 1000 if options.timeout else None,
        formats=tuple(asked.names),
        track=asked.track,
        warnings=tuple(asked.warnings),
    )


def _check_parsers(options: FirecrawlOptions) -> None:
    if options.parsers == [] or not options.parse_pdf:
        raise BadRequest("documents are always read; the bytes of one are not sent as base64")
    for parser in options.parsers or ():
        kind = parser.get("type") if isinstance(parser, dict) else parser
        if kind != "pdf" or (isinstance(parser, dict) and len(parser) > 1):
            raise BadRequest('parsers: only "pdf" is known, without options')


def _add_browser(given: dict[str, Any], options: FirecrawlOptions, asked: "_Formats") -> None:
    """Steps and the look of a browser, where one is needed."""
    steps, variables = steps_of(options.actions or [])
    if options.wait_for:
        steps.insert(0, {"do": "wait_for", "seconds": options.wait_for / 1000})
    if asked.screenshot is not None:
        steps.append({"do": "screenshot", "file": "screenshot.png", "full_page": asked.screenshot.full_page})
    look: dict[str, Any] = {"device": DEVICE} if options.mobile else {}
    if options.location is not None and options.location.languages:
        look |= {"locale": options.location.languages[0]} if steps or look else {}
    if options.block_ads and (steps or look or options.profile):
        look["block"] = ["tracker"]
    if steps or options.profile is not None:
        window = asked.screenshot.viewport if asked.screenshot else None
        size = {"width": window.width, "height": window.height} if window else {}
        given |= {"steps": steps, "context": {**look, **size}}
        given |= {"variables": variables} if variables else {}
        given |= {"session": session_of(options.profile.name)} if options.profile else {}
    elif look:
        given["browser"] = look


def _policy(options: FirecrawlOptions, *, acts: bool) -> dict[str, Any]:
    policy: dict[str, Any] = {"retries": 0 if acts else 1}
    if options.max_age is not None:
        policy["max_age_seconds"] = options.max_age / 1000
    if not options.store_in_cache:
        policy["cache"] = "off"
    if options.location is not None and options.location.country:
        policy["country"] = options.location.country.lower()
    if options.proxy == "basic":
        policy["allow_residential"] = False
    elif options.proxy in ("stealth", "enhanced"):
        policy |= {"escalate": True, "allow_residential": True}
    if isinstance(options.redact_pii, dict):
        raise BadRequest("redactPII is true or false here: every kind of personal data that is known is masked")
    if options.redact_pii:
        policy["mask"] = _MASK
    return policy


class _Formats:
    """The formats of a call, sorted."""

    def __init__(self, options: FirecrawlOptions) -> None:
        self.names: list[str] = []
        self.parts: list[str] = []
        self.more: dict[str, Any] = {}
        self.screenshot: ScreenshotFormat | None = None
        self.track: TrackingFormat | None = None
        self.warnings: list[str] = []
        self._options = options
        for given in options.formats if options.formats is not None else ["markdown"]:
            self._add(given)

    def _add(self, given: Any) -> None:
        kind, asked = (given, {}) if isinstance(given, str) else _kind(given)
        if kind in _ELSEWHERE:
            raise BadRequest(f"the format {kind} is not available here: {_ELSEWHERE[kind]}")
        self.names.append("screenshot" if kind == "screenshot@fullPage" else kind)
        if kind in _PARTS:
            _no_more(kind, asked)
            self.parts.append(_PARTS[kind])
        elif kind in ("json", "extract"):
            self._json(kind, asked)
        elif kind in ("screenshot", "screenshot@fullPage"):
            self.screenshot = _read(ScreenshotFormat, asked or {"fullPage": kind.endswith("fullPage")})
        elif kind == "summary":
            _no_more(kind, asked)
            self.more["summary"] = True
        elif kind == "changeTracking":
            self.track = _read(TrackingFormat, asked) if asked else self._options.change_tracking_options
            self.track = self.track or TrackingFormat()
            self.parts.append("markdown")
            if self._options.max_age:
                self.warnings.append("changeTracking: pages are fetched anew; maxAge is not used")
        elif kind == "attributes":
            found = _read(AttributesFormat, asked)
            self.more["attributes"] = [each.model_dump() for each in found.selectors]
        else:
            raise BadRequest(f"the format {str(kind)[:50]!r} is not known")

    def _json(self, kind: str, asked: dict[str, Any]) -> None:
        options = self._options
        given = _read(JsonFormat, asked) if asked else options.json_options or options.extract
        if given is None:
            raise BadRequest(f"the format {kind} needs a schema or a prompt, in jsonOptions or in the format itself")
        self.more["extract"] = given.extract()
        if given.data_schema is not None and given.prompt is not None:
            self.warnings.append("json: the schema says what is wanted; the prompt beside it is not used")


def _kind(given: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        raise BadRequest("a format is a name, or an object with `type`")
    rest = {name: value for name, value in given.items() if value is not None}
    return given["type"], rest


def _no_more(kind: str, asked: dict[str, Any]) -> None:
    if asked.keys() - {"type"}:
        raise BadRequest(f"the format {kind} has no options; {sorted(asked.keys() - {'type'})[0]!r} is not known")


_Model = TypeVar("_Model", bound=BaseModel)


def _read(kind: type[_Model], given: dict[str, Any]) -> _Model:
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"formats: {given.get('type', kind.__name__)}: {place}: {first['msg']}") from None
