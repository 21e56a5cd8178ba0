"""Settings about who may call: limits of clients, and the identity provider whose tokens count."""

from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.model.identity import ClientBudget, ClientLimits
from scrapeyard.settings.section import Section

RoleName = Literal["", "client", "viewer", "operator", "admin"]


class ClientSettings(Section):
    """Limits of every client whose key has none of its own. They hold for all gateways together."""

    rate: float = Field(0, ge=0, le=100_000, description="Calls a second; 0: no limit.")
    concurrency: int = Field(0, ge=0, le=100_000, description="Calls that run at once; 0: no limit.")
    body_mb: float = Field(
        0, ge=0, le=100_000, description="Megabytes of one call's body; 0: what `gateway` allows, which always holds."
    )
    queue_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Share of `gateway.max_backlog` that waiting runs of one client may take in a lane; 0: no limit.",
    )
    daily_runs: int = Field(0, ge=0, description="Runs and items of jobs in a day, in UTC; 0: no limit.")
    daily_fetches: int = Field(0, ge=0, description="Requests to the web in a day; 0: no limit.")
    daily_mb: float = Field(0, ge=0, description="Megabytes received in a day; 0: no limit.")
    daily_direct_mb: float = Field(0, ge=0, description="Megabytes without a proxy in a day; 0: no limit.")
    daily_datacenter_mb: float = Field(
        0, ge=0, description="Megabytes through datacenter proxies in a day; 0: no limit."
    )
    daily_residential_mb: float = Field(
        0, ge=0, description="Megabytes through residential proxies and unlockers in a day; 0: no limit."
    )
    daily_browser_seconds: float = Field(0, ge=0, description="Seconds of browsers in a day; 0: no limit.")
    monthly_runs: int = Field(0, ge=0, description="Runs and items of jobs in a calendar month; 0: no limit.")
    monthly_fetches: int = Field(0, ge=0, description="Requests to the web in a month; 0: no limit.")
    monthly_mb: float = Field(0, ge=0, description="Megabytes received in a month; 0: no limit.")
    monthly_direct_mb: float = Field(0, ge=0, description="Megabytes without a proxy in a month; 0: no limit.")
    monthly_datacenter_mb: float = Field(
        0, ge=0, description="Megabytes through datacenter proxies in a month; 0: no limit."
    )
    monthly_residential_mb: float = Field(
        0, ge=0, description="Megabytes through residential proxies and unlockers in a month; 0: no limit."
    )
    monthly_browser_seconds: float = Field(0, ge=0, description="Seconds of browsers in a month; 0: no limit.")
    resume_jobs: bool = Field(
        True, description="Whether jobs that a client's budget paused go on when the next day or month begins."
    )

    def as_limits(self) -> ClientLimits:
        """Convert to the model's ClientLimits."""
        names = ClientBudget.__struct_fields__
        daily, monthly = (
            ClientBudget(**{name: getattr(self, f"{period}_{name}") for name in names})
            for period in ("daily", "monthly")
        )
        return ClientLimits(
            rate=self.rate, concurrency=self.concurrency, body_mb=self.body_mb, daily=daily, monthly=monthly
        )


class OidcSettings(Section):
    """Tokens of an identity provider (OpenID Connect)."""

    issuer: str = Field(
        "", description="Address of the provider, as its tokens have it in `iss`; empty: tokens are not accepted."
    )
    audience: str = Field("", description="What tokens must have in `aud`; needed with an issuer.")
    client_claim: str = Field("sub", min_length=1, description="Claim that names the client.")
    role_claim: str = Field(
        "roles", min_length=1, description="Claim with the roles; dots lead into objects: `realm_access.roles`."
    )
    roles: tuple[str, ...] = Field(
        (), description="Which value of that claim means which role: `scraping-team=operator`. The strongest counts."
    )
    default_role: RoleName = Field(
        "", description="Role of tokens without any of these values; empty: they are refused."
    )
    leeway_seconds: float = Field(30, ge=0, le=300, description="Seconds that clocks may differ.")
    keys_seconds: float = Field(3600, ge=60, le=86_400, description="Seconds after which its keys are read again.")
    ca_file: Path | None = Field(None, description="PEM file of authorities trusted for the provider.")
    client_id: str = Field(
        "", max_length=500, description="Id of Scrapeyard at the provider, for people who sign in; empty: by key alone."
    )
    client_secret: SecretStr = Field(
        SecretStr(""), description="Secret that goes with it; empty: the provider asks for none (a public client)."
    )
    scopes: tuple[str, ...] = Field(
        ("openid", "profile"), description="What the provider is asked to tell about people who sign in."
    )

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, issuer: str) -> str:
        parts = urlsplit(issuer)
        if issuer and parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
            raise ValueError("must begin with https://; http:// is for a provider on this machine")
        return issuer

    @model_validator(mode="after")
    def _has_audience(self) -> Self:
        if self.issuer and not self.audience:
            raise ValueError("audience: set it, or tokens that the issuer made for others would count here")
        return self

    @model_validator(mode="after")
    def _can_sign_in(self) -> Self:
        if self.client_id and not self.issuer:
            raise ValueError("client_id: set issuer, too, or nobody can sign in with it")
        if "openid" not in self.scopes:
            raise ValueError("scopes: must have openid, or the provider does not tell who signs in")
        return self

    @field_validator("roles")
    @classmethod
    def _name_roles(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        for each in roles:
            value, _, role = each.rpartition("=")
            if not value or role not in ("client", "viewer", "operator", "admin"):
                raise ValueError(f"{each!r}: write value=role, the role being client, viewer, operator or admin")
        return roles


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
