"""Keys as the API takes and shows them."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert
from pydantic import BaseModel, ConfigDict, Field, field_validator

from scrapeyard.gateway.auth.permissions import Permission
from scrapeyard.model.identity import CLIENT_NAME, KEY_ID, ApiKey, ClientLimits, Identity, Role
from scrapeyard.model.instants import instant
from scrapeyard.model.lanes import SCRAPER_PATTERN

CLIENT = f"^{CLIENT_NAME.pattern}$"
EXAMPLE_KEY = "key_0199f0c2a1b43f0e9d8c7b6a5f4e3d2c"
EXAMPLE_PATH = "/api/exports/export_0199f0c2a1b43f0e9d8c7b6a5f4e3d2c/download"
_DAY = 86_400.0
_Count = Annotated[int, Field(ge=0, le=2**53)]
_Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BudgetCall(_Call):
    """What a client may use in one day or one month. 0: no limit."""

    runs: _Count = Field(0, description="Runs, and items of jobs.")
    fetches: _Count = Field(0, description="Requests to the web.")
    mb: _Amount = Field(0, description="Megabytes received.")
    direct_mb: _Amount = Field(0, description="Megabytes without a proxy.")
    datacenter_mb: _Amount = Field(0, description="Megabytes through datacenter proxies.")
    residential_mb: _Amount = Field(0, description="Megabytes through residential proxies and unlockers.")
    browser_seconds: _Amount = Field(0, description="Seconds that browser contexts are open.")


class LimitsCall(_Call):
    """How much a client may ask for. 0: no limit."""

    rate: _Amount = Field(0, description="Calls per second.")
    concurrency: _Count = Field(0, description="Runs at once.")
    body_mb: _Amount = Field(0, description="Megabytes of one call's body, within what the gateway takes.")
    daily: BudgetCall = Field(BudgetCall(), description="Of each day, in UTC.")
    monthly: BudgetCall = Field(BudgetCall(), description="Of each month, in UTC.")


class KeyCall(_Call):
    """A key to make."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "shop-team", "role": "client", "scrapers": ["shop/*"]}]}
    )

    name: str = Field(pattern=CLIENT, description="What people call the key.")
    client: str | None = Field(
        None, pattern=CLIENT, description="Who owns what is created with it; default: the name of the key."
    )
    role: Role = Field(description="What it may do.")
    scrapers: list[str] = Field(
        [], max_length=100, description="Patterns of the scrapers that it may call; [] for all."
    )
    expires_days: float | None = Field(
        None, gt=0, le=3660, allow_inf_nan=False, description="Days until it ends; null: never."
    )
    limits: LimitsCall = Field(LimitsCall(), description="How much its client may ask for.")

    @field_validator("scrapers")
    @classmethod
    def _fit(cls, patterns: list[str]) -> list[str]:
        for each in patterns:
            if SCRAPER_PATTERN.fullmatch(each) is None:
                raise ValueError(f"{each[:80]!r} is no pattern; write site/task with * for any, e.g. shop/*")
        return patterns

    def draft(self, now: float) -> ApiKey:
        """The key without what only its making knows: id and hash."""
        return ApiKey(
            id="",
            name=self.name,
            client=self.client or self.name,
            role=self.role,
            scrapers=tuple(self.scrapers),
            limits=convert(self.limits.model_dump(), ClientLimits),
            digest="",
            pepper_id="",
            created_at=now,
            changed_at=now,
            expires_at=None if self.expires_days is None else now + self.expires_days * _DAY,
        )


class RotateCall(_Call):
    """How a key is replaced."""

    overlap_seconds: float = Field(
        86_400, ge=0, le=90 * _DAY, allow_inf_nan=False, description="Seconds that the old key works on."
    )


class LinkCall(_Call):
    """What a link opens."""

    path: str = Field(
        pattern=r"^/[\x21-\x7e]{1,2000}$",
        description="Path and query of a download or a stream, as answers name it.",
        examples=[EXAMPLE_PATH],
    )
    seconds: int = Field(300, ge=1, le=3600, description="How long it can be opened.")


class IdentityDocument(Struct, frozen=True, kw_only=True):
    """Who calls."""

    client: Annotated[str, Meta(description="Owns what is created with the key; empty while nobody is asked for one.")]
    role: Role
    scrapers: Annotated[list[str], Meta(description="Patterns of the scrapers that it may call; [] for all.")]
    limits: ClientLimits

    @classmethod
    def of(cls, identity: Identity) -> "IdentityDocument":
        """An identity as it is shown."""
        return cls(client=identity.client, role=identity.role, scrapers=list(identity.scrapers), limits=identity.limits)


class SignInCall(_Call):
    """How to sign in."""

    key: str = Field(min_length=1, max_length=200, description="The key.", examples=["sy_…"])


class SessionDocument(Struct, frozen=True, kw_only=True):
    """Who has signed in with a browser, and what a page must know to serve them."""

    auth_required: Annotated[bool, Meta(description="Whether callers must be known; else everybody may do everything.")]
    signed_in: Annotated[
        bool, Meta(description="Whether the caller may call: known by a session or a key, or not asked.")
    ]
    client: Annotated[str, Meta(description="Owns what is created; empty while nobody is asked, or nobody signed in.")]
    role: Annotated[Role | None, Meta(description="What the caller may do; null: not signed in.")]
    scrapers: Annotated[list[str], Meta(description="Patterns of the scrapers that it may call; [] for all.")]
    permissions: Annotated[
        list[Permission], Meta(description="What the role allows; docs/permissions.md lists routes.")
    ]
    expires_at: Annotated[str | None, Meta(description="When the session ends; null: there is none.")]
    csrf_token: Annotated[str | None, Meta(description="To send as X-CSRF-Token; null: there is no session.")]
    ways: Annotated[list[Literal["key", "oidc"]], Meta(description="How people can sign in.")]
    oidc_url: Annotated[
        str | None, Meta(description="What to open to sign in at the identity provider; null: none is set.")
    ]


class KeyDocument(IdentityDocument, frozen=True, kw_only=True):
    """A key, without its secret, which nobody knows but who made it."""

    id: Annotated[str, Meta(pattern=KEY_ID, examples=[EXAMPLE_KEY])]
    name: Annotated[str, Meta(description="What people call the key.")]
    created_at: str
    expires_at: Annotated[str | None, Meta(description="When it ends; null: never.")]
    revoked_at: Annotated[str | None, Meta(description="When it was revoked; null: it was not.")]
    replaced_by: Annotated[str | None, Meta(description="The key that replaces it; null: none.")]
    last_used_at: Annotated[str | None, Meta(description="To the minute; null: never.")]
    usable: Annotated[bool, Meta(description="Whether calls may use it now.")]


class NewKeyDocument(KeyDocument, frozen=True, kw_only=True):
    """A key that was made just now."""

    secret: Annotated[str, Meta(description="Send it with each call. It is shown this once.", examples=["sy_…"])]


class KeysDocument(Struct, frozen=True, kw_only=True):
    """Every key, the newest first."""

    keys: Annotated[list[KeyDocument], Meta(description="The keys.")]


class LinkDocument(Struct, frozen=True, kw_only=True):
    """A link that a browser can open."""

    url: Annotated[str, Meta(description="Path and query, with a signature.", examples=[EXAMPLE_PATH + "?link=…"])]
    expires_at: Annotated[str, Meta(description="Until when it can be opened.")]


def key_fields(key: ApiKey, now: float) -> dict[str, Any]:
    """The fields of a document of a key."""
    return {
        "id": key.id,
        "name": key.name,
        "client": key.client,
        "role": key.role,
        "scrapers": list(key.scrapers),
        "limits": key.limits,
        "created_at": instant(key.created_at),
        "expires_at": instant(key.expires_at),
        "revoked_at": instant(key.revoked_at),
        "replaced_by": key.replaced_by or None,
        "last_used_at": instant(key.last_used_at),
        "usable": not key.fault(now),
    }
