"""The results of the built-in scrapers, as JSON Schema."""

from typing import Any

TEXT: dict[str, Any] = {"type": ["string", "null"]}
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
TABLE: dict[str, Any] = {"type": "object"}


def told(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """With a description."""
    return {**schema, "description": description}


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


ENVELOPE: dict[str, Any] = {
    "status": {"type": "integer", "description": "What the site answered; any status is a result."},
    "url": {"type": "string", "description": "As asked."},
    "final_url": {"type": "string", "description": "After redirects."},
    "content_type": TEXT,
}
"""What every result begins with."""

PRODUCT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "price": told(NUMBER, "What it costs now."),
        "currency": told(TEXT, "ISO 4217 code."),
        "list_price": told(NUMBER, "What it cost before, where that is published."),
        "high_price": told(NUMBER, "The upper end, where the price is a range."),
        "availability": {"enum": ["InStock", "OutOfStock", None]},
        "availability_detail": told(TEXT, "schema.org's word: `PreOrder`, `LimitedAvailability`, …"),
        "sku": TEXT,
        "gtin": told(TEXT, "EAN, UPC or ISBN-13 with a right check digit."),
        "mpn": TEXT,
        "brand": TEXT,
        "category": TEXT,
        "condition": TEXT,
        "description": TEXT,
        "breadcrumbs": TEXTS,
        "images": TEXTS,
        "attributes": {"type": "object", "additionalProperties": {"type": "string"}},
        "rating": optional(TABLE),
        "variants": {"type": "array", "items": TABLE},
        "sources": told(
            {"type": "object", "additionalProperties": {"type": "string"}},
            "Where each answer is from: json-ld, microdata, rdfa, opengraph, script, attributes, page, url, assumed.",
        ),
    },
}
PRODUCT["required"] = list(PRODUCT["properties"])
