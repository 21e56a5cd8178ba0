"""What the API takes and answers about pools of proxies. Secrets go in and never come out."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_URLS = 10_000
Kind = Literal["list", "brightdata"]
ProxyClass = Literal["datacenter", "residential", "unlocker"]
Rotation = Literal["request", "session", "site"]


class PoolCall(BaseModel):
    """A pool, whole. Of a pool that is there, `urls` and `password` may be left out: they stay as they are."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={
            "examples": [
                {"urls": ["http://user:password@proxy.example:8080", "socks5h://proxy.example:1080"]},
                {
                    "kind": "brightdata",
                    "proxy_class": "residential",
                    "customer": "hl_12345678",
                    "zone": "residential1",
                    "password": "…",
                    "country": "us",
                    "rotation": "session",
                },
            ]
        },
    )

    kind: Kind = Field("list", description="A plain list, or a vendor's template.")
    proxy_class: ProxyClass = Field("datacenter", description="What it costs: its place among the tiers.")
    urls: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MAX_URLS,
        description="http, https, socks5 or socks5h URLs, with credentials. For a list.",
        json_schema_extra={"writeOnly": True},
    )
    host: str = Field("", max_length=300, description="Vendor's endpoint, host:port; empty: its usual one.")
    customer: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's account.")
    zone: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's zone.")
    password: str | None = Field(
        None, max_length=500, description="Vendor's password for the zone.", json_schema_extra={"writeOnly": True}
    )
    country: str = Field("", pattern=r"^([A-Za-z]{2})?$", description="Exit country, unless a policy names another.")
    rotation: Rotation = Field("request", description="When another exit is taken.")
    exits: int = Field(20, ge=1, le=1000, description="Exits of a vendor's zone that are used in turn.")
    cooldown_seconds: float = Field(60, gt=0, le=86_400, description="How long a proxy that failed rests.")
    ca_file: str | None = Field(
        None, max_length=1000, description="PEM file on the workers, of authorities trusted through this pool."
    )


class UseDocument(BaseModel):
    """What went through."""

    requests: int
    failures: int = Field(description="Requests without an answer.")
    bytes: int = Field(description="Received.")


class RestingDocument(BaseModel):
    """How the pool does in one worker."""

    worker: str
    exits: int
    resting: int
    names: list[str] = Field(description="Of exits that rest, at most 50.")


class PoolDocument(BaseModel):
    """A pool, without its secrets."""

    name: str
    tier: int = Field(description="1 is the cheapest; blocks lead to the next.")
    source: Literal["settings", "api"]
    kind: Kind
    proxy_class: ProxyClass
    rotation: Rotation
    country: str
    exits: int = Field(description="How many there are to choose from.")
    endpoints: list[str] = Field(description="host:port, at most 100 of them.")
    customer: str
    zone: str
    cooldown_seconds: float
    ca_file: str | None
    changed_at: str | None = Field(description="Null for a pool of the settings.")
    health: list[RestingDocument] = Field(description="Of workers that told lately.")
    today: UseDocument = Field(description="Since midnight UTC.")
    month: UseDocument = Field(description="Of the last 30 days.")


class ClassUseDocument(UseDocument):
    """What went through proxies of one class."""

    proxy_class: str = Field(description="`direct`: without a proxy.")


class PoolsDocument(BaseModel):
    """Every pool, the cheapest first, and what all fetches received in the last 30 days."""

    pools: list[PoolDocument]
    by_class: list[ClassUseDocument]
