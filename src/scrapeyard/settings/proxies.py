"""Settings of proxies, in pools."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from scrapeyard.model.fetching import POOL, read_endpoint, read_proxy_url
from scrapeyard.settings.section import Section


class ProxyPool(Section):
    """One pool of proxies; [[proxies.pools]] in the file."""

    name: str = Field(..., pattern=POOL, description="How policies name it.")
    kind: Literal["list", "brightdata"] = Field("list", description="A plain list, or a vendor's template.")
    proxy_class: Literal["datacenter", "residential", "unlocker"] = Field("datacenter", description="What it costs.")
    urls: tuple[SecretStr, ...] = Field(
        (), max_length=10_000, description="http, https, socks5 or socks5h URLs, with credentials."
    )
    host: str = Field("", description="Vendor's endpoint, host:port; empty: its usual one.")
    customer: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's account.")
    zone: str = Field("", pattern=r"^[A-Za-z0-9_]{0,64}$", description="Vendor's zone.")
    password: SecretStr = Field(SecretStr(""), description="Vendor's password for the zone.")
    country: str = Field(
        "", pattern=r"^([A-Za-z]{2})?$", description="Exit country, as two letters; policies may name another."
    )
    rotation: Literal["request", "session", "site"] = Field("request", description="When another exit is taken.")
    exits: int = Field(20, ge=1, le=1000, description="Exits of a vendor's zone that are used in turn.")
    cooldown_seconds: float = Field(
        60, gt=0, le=86_400, description="How long a proxy that failed rests; doubles while it goes on failing."
    )
    ca_file: Path | None = Field(
        None, description="PEM file of authorities trusted through this pool beside the usual ones."
    )

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.name == "none":
            raise ValueError("name: `none` stands for no proxy; call the pool otherwise")
        vendor = (self.customer, self.zone, self.password.get_secret_value())
        if self.kind == "list":
            self._check_list(any((*vendor, self.host)))
        elif self.urls or not all(vendor):
            raise ValueError("kind is brightdata: set customer, zone and password, and no urls")
        elif self.host:
            read_endpoint(self.host)
        return self

    def _check_list(self, names_vendor: bool) -> None:
        if names_vendor or not self.urls:
            raise ValueError("kind is list: set urls, and none of host, customer, zone and password")
        for place, url in enumerate(self.urls):
            try:
                read_proxy_url(url.get_secret_value())
            except ValueError as error:
                raise ValueError(f"urls.{place}: {error}") from None


class ProxySettings(Section):
    """Proxies."""

    pools: tuple[ProxyPool, ...] = Field((), description="In order of cost, the cheapest first: that is the tier.")
    default: str = Field("none", description="Pool used unless policy says; `none`: no proxy.")

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [pool.name for pool in self.pools]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two pools are called {name}; give each a name of its own")
        if re.match(POOL, self.default) is None:
            raise ValueError("default: not the name of a pool; write one, or `none`")
        return self
