"""What `builtin/extract` takes and returns. Its code stands in `extraction`, which loads slowly."""

from typing import Any, Literal, get_args

from scrapeyard.builtin.requests import REQUEST, URL
from scrapeyard.builtin.selecting import FIELDS as SELECTORS

Kind = Literal["text", "number", "integer", "bool", "url", "date"]
KINDS: tuple[str, ...] = get_args(Kind)
MAX_FIELDS = 50
MAX_DESCRIPTION = 500
MAX_HTML = 10_000_000
"""Characters of a page that is given."""
MAX_EXAMPLES = 5
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_TYPES = "|".join((*KINDS, "string", "boolean"))
FIELDS: dict[str, Any] = {
    "if": {"type": "string"},
    "then": {"type": "string", "minLength": 1, "maxLength": 10_000},
    "else": {
        "type": "object",
        "minProperties": 1,
        "maxProperties": MAX_FIELDS,
        "additionalProperties": {
            "if": {"type": "string"},
            "then": {"type": "string", "pattern": rf"^(?:{_TYPES})(?:\[\])?$"},
            "else": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "pattern": rf"^(?:{_TYPES})(?:\[\])?$"},
                    "description": {"type": "string", "maxLength": MAX_DESCRIPTION},
                    "required": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
        },
    },
    "description": "What is wanted: `title, price: number, in_stock: bool, subtitle?, images: url[]`, or a table of "
    "names with a type or with `type`, `description` and `required`. Types: `text`, `number`, `integer`, `bool`, "
    "`url`, `date`; with `[]` for a list. A field with `?` is optional.",
}
AI: dict[str, Any] = {
    "type": "object",
    "properties": {
        "provider": {"type": "string", "maxLength": 64, "description": "One of `ai.providers`; `none`: no model."},
        "model": {"type": "string", "maxLength": 200, "description": "Name of a provider's model."},
        "samples": {
            "type": "integer",
            "minimum": 1,
            "maximum": 5,
            "description": "How often the model is asked; more make confidence better and cost more.",
        },
    },
    "additionalProperties": False,
    "description": "Which model is asked, if one is needed. Default: the operator's first.",
}
OPTIONS: dict[str, Any] = {
    "schema": {
        "type": "object",
        "description": "A JSON schema of the data, instead of `fields`: an object of plain values, lists and objects.",
    },
    "fields": FIELDS,
    "prompt": {
        "type": "string",
        "minLength": 1,
        "maxLength": 2000,
        "description": "What is wanted as a sentence, instead of `fields`; a model turns it into fields.",
    },
    "examples": {
        "type": "array",
        "maxItems": MAX_EXAMPLES,
        "items": {
            "type": "object",
            "properties": {
                "url": URL,
                "html": {"type": "string", "minLength": 1, "maxLength": MAX_HTML},
                "values": {"type": "object", "minProperties": 1, "maxProperties": MAX_FIELDS},
            },
            "required": ["values"],
            "anyOf": [{"required": ["url"]}, {"required": ["html"]}],
            "additionalProperties": False,
        },
        "description": "Pages of the same kind with their values, as the pages write them: the pattern learns of them.",
    },
    "fallback": {**SELECTORS, "description": "CSS selectors or XPaths by field, for what nothing else finds."},
    "ai": AI,
    "sure": {**_SHARE, "description": "Confidence that is enough. Default: the operator's `ai.sure`, 0.85."},
    "least": {**_SHARE, "description": "Values below this confidence are left out of `data`. Default: `ai.least`."},
    "invented": {
        "type": "string",
        "enum": ["flag", "refuse"],
        "description": "What becomes of a model's value that does not stand in the page: it is flagged and has a low "
        "confidence, or it is left out. Default: `ai.invented`.",
    },
    "learn": {"type": "boolean", "default": True, "description": "Whether answers teach the site's pattern."},
}
EXTRACT_INPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {**URL, "description": "The page to fetch; with `html`, the address that the page has."},
        "html": {"type": "string", "minLength": 1, "maxLength": MAX_HTML, "description": "A page that you have."},
        **OPTIONS,
        **REQUEST,
    },
    "anyOf": [{"required": ["url"]}, {"required": ["html"]}],
    "oneOf": [{"required": ["fields"]}, {"required": ["schema"]}, {"required": ["prompt"]}],
    "additionalProperties": False,
}
FIELD_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {"description": "Null: not found."},
        "confidence": {**_SHARE, "description": "How sure it is; 0 for a field that was not found."},
        "evidence": {
            "type": ["object", "null"],
            "properties": {
                "text": {"type": "string", "description": "As the page has it; of a list, its first value."},
                "selector": {
                    "type": "string",
                    "description": "XPath of the node that has the text, or your own selector. XPaths fit the HTML as "
                    "the server sends it.",
                },
                "json_path": {
                    "type": ["string", "null"],
                    "description": "JSONPath of the text in the JSON of the node; null: it stands in the node itself.",
                },
            },
            "description": "Where the value stands. Null: nowhere, or no node is known that has it.",
        },
        "how": {"enum": ["structured", "pattern", "model", "fallback", None]},
        "flags": {
            "type": "array",
            "items": {"type": "string"},
            "description": "`not_in_page`: a model gave it and the page does not have it; `disputed`: another way "
            "found another value.",
        },
    },
}
EXTRACT_OUTPUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": ["string", "null"], "description": "As asked."},
        "final_url": {"type": ["string", "null"], "description": "After redirects."},
        "status": {
            "type": ["integer", "null"],
            "description": "What the site answered; null for a page that was given.",
        },
        "data": {"type": ["object", "null"], "description": "The values. They fit `schema`, if one was given."},
        "fields": {"type": "object", "additionalProperties": FIELD_OUTPUT},
        "pattern": {
            "type": ["object", "null"],
            "properties": {
                "id": {"type": "string"},
                "version": {"type": "integer"},
                "status": {"enum": ["learning", "ready", "stale"]},
                "examples": {"type": "integer", "description": "Answered pages that it was learned from."},
            },
            "description": "The learned pattern of pages of this kind.",
        },
        "taught": {"type": "integer", "description": "How many of `examples` the pattern keeps."},
        "model": {
            "type": ["object", "null"],
            "properties": {
                "name": {"type": "string"},
                "calls": {"type": "integer", "description": "Answers, those of the cache included."},
                "cached": {"type": "integer"},
                "tokens": {"type": "integer"},
                "cost": {"type": "number"},
            },
            "description": "What was asked of a model; null: nothing.",
        },
        "warnings": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["url", "final_url", "status", "data", "fields", "pattern", "model", "warnings"],
}
