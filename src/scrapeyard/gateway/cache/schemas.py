"""What the API takes and answers about kept pages."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scrapeyard.gateway.http.patterns import SCRAPER_WANTED, Url
from scrapeyard.model.fetching import MOST

MAX_WARM = 1000


class InvalidateCall(BaseModel):
    """Which kept pages to forget. Give exactly one."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"url": "https://shop.example/p/1"}, {"site": "shop.example"}, {"all": True}]},
    )

    url: Url | None = Field(None, description="Pages that were asked for by this URL, whoever asked and how.")
    site: str | None = Field(
        None, min_length=1, max_length=253, description="Pages of this site; any host of it names it."
    )
    all: bool = Field(False, description="Every page.")

    @model_validator(mode="after")
    def _names_one(self) -> "InvalidateCall":
        if (self.url is not None) + (self.site is not None) + self.all != 1:
            raise ValueError("give exactly one of url, site and all")
        return self


class InvalidatedDocument(BaseModel):
    """What was forgotten."""

    dropped: int = Field(ge=0, description="Pages that the shared tier held; each worker's memory forgets as well.")


class WarmCall(BaseModel):
    """Pages to have ready."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        json_schema_extra={"examples": [{"urls": ["https://shop.example/p/1"], "max_age_seconds": 600}]},
    )

    urls: list[Url] = Field(min_length=1, max_length=MAX_WARM, description="One run for each.")
    scraper: str | None = Field(
        None,
        pattern=SCRAPER_WANTED,
        description="Whose requests to make; it must take `url`. Default: `builtin/page`. Private pages need it.",
    )
    max_age_seconds: float = Field(
        3600, gt=0, le=MOST, description="A page that is kept and not older than this is left as it is."
    )


class SharedDocument(BaseModel):
    """The shared tier."""

    kind: Literal["redis", "disk"]
    pages: int
    bytes: int
    limit_bytes: int
    hits: int = Field(description="In Redis of all workers; on disk since the start.")
    misses: int
    evicted: int = Field(description="Removed to make room.")


class CacheDocument(BaseModel):
    """How pages are kept, and how many there are."""

    mode: Literal["off", "through", "back", "around"] = Field(description="Unless policy says.")
    max_age_seconds: float = Field(description="How old a kept page may be unless policy says; 0: none serves.")
    memory_limit_bytes: int = Field(description="In each worker.")
    shared: SharedDocument | None = Field(description="Null: this gateway has no part in it.")
