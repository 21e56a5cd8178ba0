"""What one source says of the product."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(kw_only=True)
class Finding:
    """One source's answer; None and empty for what it does not tell."""

    source: str
    name: str | None = None
    price: Decimal | None = None
    list_price: Decimal | None = None
    high_price: Decimal | None = None
    currency: str | None = None
    availability: str | None = None
    """In schema.org's words."""
    sku: str | None = None
    codes: list[str] = field(default_factory=list)
    """Everything that stands under a label for `sku`."""
    gtin: str | None = None
    mpn: str | None = None
    brand: str | None = None
    category: str | None = None
    description: str | None = None
    condition: str | None = None
    images: list[str] = field(default_factory=list)
    rating: dict[str, Any] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    variants: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the page itself says it is about; sources are held against it."""

    url: str
    names: tuple[str, ...]
    """Heading, Open Graph title, title: the likeliest first."""
    place: str
    """Country, as in the domain; empty when unknown."""
