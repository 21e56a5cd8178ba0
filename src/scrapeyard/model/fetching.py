"""How a run may fetch: what a call, a job or a manifest asks for, and what it may use up."""

import re
from typing import Annotated, Any, Literal, Self, cast, get_args, get_origin, get_type_hints
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

ProxyScheme = Literal["http", "https", "socks5", "socks5h"]
SCHEMES: tuple[str, ...] = get_args(ProxyScheme)
MAX_URL = 2048
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]{2,45}\]")


class ProxyAddress(Struct, frozen=True, kw_only=True):
    """Address and credentials of a proxy. Its `repr` hides the credentials."""

    scheme: ProxyScheme
    """`socks5`: names are resolved locally; `socks5h`: by the proxy, as http and https proxies do."""
    host: str
    """An IPv6 address includes its brackets."""
    port: int
    user: str = ""
    password: str = ""

    @property
    def endpoint(self) -> str:
        """`host:port`, without secrets."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """URL with the credentials."""
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user or self.password else ""
        return f"{self.scheme}://{login}{self.endpoint}"

    def __repr__(self) -> str:
        return f"ProxyAddress({self.scheme}://{'***@' if self.user or self.password else ''}{self.endpoint})"

    __str__ = __repr__


def read_proxy_url(text: str) -> ProxyAddress:
    """Parse a proxy URL. Raises ValueError saying what to write instead; the message reveals only the scheme."""
    if not 0 < len(text) <= MAX_URL or not text.isprintable() or " " in text:
        raise ValueError(f"must be 1 to {MAX_URL} characters without spaces")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("not a URL; write http://user:password@host:port") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(f"{parts.scheme[:20]!r} is not known; write one of {', '.join(SCHEMES)} before ://")
    _, _, place = parts.netloc.rpartition("@")
    host = place.rpartition(":")[0]
    if not port or _HOST.fullmatch(host) is None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("write scheme://user:password@host:port and nothing behind it")
    return ProxyAddress(
        scheme=cast("ProxyScheme", parts.scheme),
        host=host.lower(),
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def read_endpoint(text: str) -> tuple[str, int]:
    """Parse `host:port`. Raises ValueError."""
    address = read_proxy_url(f"http://{text}") if "@" not in text else None
    if address is None or text != f"{text.rpartition(':')[0]}:{address.port}":
        raise ValueError("write host:port")
    return address.host, address.port


CacheMode = Literal["off", "through", "back", "around"]
RobotsMode = Literal["ignore", "obey"]
BackoffKind = Literal["linear", "exponential"]
Profile = Literal["chrome", "firefox", "safari", "none"]
CaptchaMode = Literal["off", "local", "vendor"]
MaskAs = Literal["mask", "hash"]
MASK = r"^(none|(email|phone|card|national_id|ip|own)(,(email|phone|card|national_id|ip|own)){0,5})$"
"""Kinds of personal data, with commas between."""
MASK_PLACES = ("results", "logs", "html", "artifacts", "exports")
MASK_IN = r"^(results|logs|html|artifacts|exports)(,(results|logs|html|artifacts|exports)){0,4}$"
"""Where it is masked, with commas between."""
POOL = r"^[a-z0-9][a-z0-9_-]{0,31}$"
"""Name of a pool of proxies."""
MOST = 10**12
"""Maximum of any number without a smaller limit of its own."""
_DAY = 86_400
_TWO_LETTERS = r"^[A-Za-z]{2}$"


class Rule(Struct, frozen=True):
    """Valid values of a field in a call or manifest, which check them; decoding stored rows and messages does not."""

    description: str
    kind: Any = None
    """int, float, bool, str, or a Literal or StrEnum of texts. None for the first type of the field's annotation."""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    pattern: str | None = None
    form: str = ""
    """The pattern in words, for error messages."""


RETRIES = Rule("Further attempts after the first.", int, ge=0, le=20)
TIMEOUT_SECONDS = Rule("Shortens the scraper's own wall clock, never lengthens it.", float, gt=0, le=_DAY)


def rules_of(struct: type[Struct]) -> dict[str, Rule]:
    """The rule of each field, with its kind. Nested structs are left out: their fields have rules of their own."""
    hints = get_type_hints(struct, include_extras=True)
    return {name: _with_kind(hint) for name, hint in hints.items() if get_origin(hint) is Annotated}


def _with_kind(hint: Any) -> Rule:
    rule: Rule = hint.__metadata__[0]
    types = get_args(hint.__origin__) or (hint.__origin__,)
    return replace(rule, kind=rule.kind or types[0])


class _Wishes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options, each of which may be left unset by its default."""

    def over(self, weaker: Self) -> Self:
        """These options, with unset ones taken from the weaker ones. Field by field, also within nested structs."""
        if weaker == type(weaker)():
            return self
        open_fields = type(self)()
        changes: dict[str, Any] = {}
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(weaker, name)
            if isinstance(mine, _Wishes):
                changes[name] = mine.over(theirs)
            elif mine == getattr(open_fields, name):
                changes[name] = theirs
        return replace(self, **changes)


class BudgetLimits(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """What may be used up before fetching stops with `fetch_budget`, or models are asked no more. None: no limit of its
    own."""

    requests: Annotated[int | None, Rule("Requests to the web, redirects included.", ge=1, le=MOST)] = None
    megabytes: Annotated[float | None, Rule("Received, as on the wire.", gt=0, le=MOST)] = None
    residential_megabytes: Annotated[
        float | None, Rule("The part of it that came through residential or unlocking proxies.", ge=0, le=MOST)
    ] = None
    seconds: Annotated[float | None, Rule("Spent in requests; those at once add up.", gt=0, le=MOST)] = None
    ai_tokens: Annotated[int | None, Rule("Tokens that models read and write.", ge=0, le=MOST)] = None
    ai_cost: Annotated[
        float | None, Rule("What models cost, in the currency of the operator's prices.", ge=0, le=MOST)
    ] = None


class Backoff(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """How long to wait before another attempt, unless the site says. Open: 5, 10, 20, 40, … s, at most five minutes.

    The second wait is `factor` times the first. From there a linear back-off keeps adding the same difference, and an
    exponential one keeps multiplying: factor 3 gives 5, 15, 25 … or 5, 15, 45 … s.
    """

    kind: Annotated[BackoffKind | Literal[""], Rule("How the wait grows; default: exponential.")] = ""
    first_seconds: Annotated[float | None, Rule("Before the second attempt; default: 5.", ge=0, le=_DAY)] = None
    factor: Annotated[
        float | None,
        Rule("How many times the first wait the second one is; default: 2.", ge=1, le=100),
    ] = None
    cap_seconds: Annotated[float | None, Rule("No wait is longer; default: 300.", ge=0, le=_DAY)] = None

    def seconds(self, attempt: int) -> float:
        """Wait after this attempt failed (the first is 1), without jitter."""
        first = 5.0 if self.first_seconds is None else self.first_seconds
        cap = 300.0 if self.cap_seconds is None else self.cap_seconds
        factor = 2.0 if self.factor is None else self.factor
        again = attempt - 1
        times = 1 + again * (factor - 1) if self.kind == "linear" else factor ** min(again, 32)
        return min(first * times, cap)


SWEPT_KINDS = ("results", "artifacts", "html", "logs")
"""What retention removes of a run or job that itself stays."""
_MOST_DAYS = 3650


class RetentionPolicy(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """How long what a run or job leaves is kept, in days after its end. None: the operator's setting."""

    days: Annotated[float | None, Rule("The run or job with all it left.", gt=0, le=_MOST_DAYS)] = None
    results_days: Annotated[
        float | None, Rule("Results; of a job its manifests, changes and exports too.", gt=0, le=_MOST_DAYS)
    ] = None
    artifacts_days: Annotated[float | None, Rule("Artifacts that are not HTML.", gt=0, le=_MOST_DAYS)] = None
    html_days: Annotated[float | None, Rule("Artifacts that are HTML, kept pages too.", gt=0, le=_MOST_DAYS)] = None
    logs_days: Annotated[float | None, Rule("What scripts wrote.", gt=0, le=_MOST_DAYS)] = None


class FetchPolicy(_Wishes, frozen=True, kw_only=True, omit_defaults=True):
    """What a run's fetches do when the script does not say. Empty and None: the platform's setting."""

    robots: Annotated[RobotsMode | Literal[""], Rule("What robots.txt means.")] = ""
    cache: Annotated[CacheMode | Literal[""], Rule("Which pages are kept, and where.")] = ""
    max_age_seconds: Annotated[float | None, Rule("A kept page not older than this serves.", ge=0, le=MOST)] = None
    connect_seconds: Annotated[
        float | None, Rule("To connect, TLS included; at most `http.connect_seconds`.", gt=0, le=_DAY)
    ] = None
    request_seconds: Annotated[
        float | None,
        Rule("For one request with all its redirects; at most `http.total_seconds`.", gt=0, le=_DAY),
    ] = None
    profile: Annotated[str, Rule("Browser to look like.", Profile)] = ""
    proxy: Annotated[
        str, Rule("Name of a pool; `none` for no proxy.", pattern=POOL, form='the name of a pool, or "none"')
    ] = ""
    country: Annotated[
        str, Rule("Where the exit is, as two letters.", pattern=_TWO_LETTERS, form='two letters, e.g. "us"')
    ] = ""
    state: Annotated[
        str,
        Rule(
            "Its state, as two letters; needs a country.",
            pattern=_TWO_LETTERS,
            form='a state\'s two letters, e.g. "ny"',
        ),
    ] = ""
    city: Annotated[
        str,
        Rule(
            "Its city; needs a country.",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9 .'-]{0,59}$",
            form='letters, digits and spaces, at most 60, e.g. "new york"',
        ),
    ] = ""
    escalate: Annotated[bool | None, Rule("Whether a block leads to other profiles, proxies and the solver.")] = None
    allow_residential: Annotated[
        bool | None, Rule("Whether residential and unlocking proxies may be used; default: yes.")
    ] = None
    captcha: Annotated[
        str, Rule("Whether captchas may be solved: not, by the local model, by the vendor as well.", CaptchaMode)
    ] = ""
    mask: Annotated[
        str,
        Rule(
            "Personal data to mask in what the run leaves, with commas between: `email`, `phone`, `card`, "
            "`national_id`, `ip`, `own` (the operator's patterns); `none` for nothing.",
            pattern=MASK,
            form='kinds with commas between, e.g. "email,phone", or "none"',
        ),
    ] = ""
    mask_as: Annotated[
        Literal["mask", "hash", ""],
        Rule("Replace by the kind alone, or with a token that is the same for the same value.", MaskAs),
    ] = ""
    mask_in: Annotated[
        str,
        Rule(
            "Where it is masked, with commas between: `results` (and with them exports, snapshots and webhooks), "
            "`logs` (and errors, progress and `explain`), `html`, other `artifacts`, and files that are exported "
            "(`exports`, which leaves the results as they are); default: everywhere.",
            pattern=MASK_IN,
            form='places with commas between, e.g. "results,logs"',
        ),
    ] = ""
    budget: BudgetLimits = BudgetLimits()
    backoff: Backoff = Backoff()
    retention: RetentionPolicy = RetentionPolicy()
    isolation: Literal["run", ""] = ""
    """`run`: a child of its own, even if the manifest allows one that served earlier calls. Only calls set it."""
