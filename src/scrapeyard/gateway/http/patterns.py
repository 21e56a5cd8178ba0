"""Patterns that requests are validated with, a description of each, and what answers share."""

import re
from typing import Annotated

from msgspec import Meta
from pydantic import BeforeValidator, Field

from scrapeyard.engines.http.url import spell_url
from scrapeyard_sdk.state import STATE_KEY

RUN_ID = r"^run_[0-9a-f]{32}$"


WORKER_ID = r"^worker_[0-9A-Za-z_-]{1,64}$"


NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"


SCRAPER_ID = r"^[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}$"


SCRAPER_WANTED = r"^[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}(@[0-9A-Za-z^~<>=*+._ |-]{1,200})?$"


VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*$"


VERSION_WANTED = r"^[0-9A-Za-z^~<>=*+._ |-]{1,200}$"


CHANNEL = r"^([a-wyz]|[a-z][a-z0-9_-]{1,31})$"


URL = r"^https?://[^\s\x00-\x1f]+$"


CHOSEN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


JOB_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


DOMAIN = r"^[^\s/@\x00-\x1f]{1,253}$"


FORMS = {
    RUN_ID: "a run's id, as the call that began it answered",
    NAME: "lower-case letters, digits, '.', '_' and '-', e.g. shop",
    SCRAPER_ID: "site/task in lower case, e.g. shop/product",
    SCRAPER_WANTED: "site/task in lower case, perhaps with @ and a version, range or channel, e.g. shop/product@^1.4",
    VERSION: "an exact version, e.g. 1.4.2",
    VERSION_WANTED: "a version, a range or a channel, e.g. 1.4.2, ^1.4 or stable",
    CHANNEL: "a channel's name in lower-case letters, e.g. stable",
    JOB_ID: "a job's id, as the call that made it answered",
    CHOSEN_ID: "letters, digits, '.', '_' and '-', at most 64, the first a letter or digit, e.g. test-001",
    STATE_KEY: "1 to 128 letters, digits and . _ ~ -, the first a letter or digit, e.g. last_seen",
    DOMAIN: "a host's name without http://, e.g. shop.example",
    URL: "a URL with http:// or https://, without spaces",
}
"""Description of each pattern."""


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def no_number(given: object) -> object:
    """Reject a bare number as a time: it could mean seconds or milliseconds. Times must be ISO 8601."""
    if given is not None and not (isinstance(given, str) and _DAY.match(given)):
        raise ValueError("write ISO 8601, as 2026-01-31T09:30:00Z")
    return given


EXAMPLE_TIME = "2026-01-31T09:30:00.125Z"


EXAMPLE_ID = "run_0199f0c2a1b43f0e9d8c7b6a5f4e3d2c"


def _spelled(given: object) -> object:
    return spell_url(given) if isinstance(given, str) else given


Url = Annotated[str, BeforeValidator(_spelled), Field(pattern=URL, max_length=8192)]
"""Taken as a browser takes it: blanks around it and capitals in its scheme do no harm."""


OBJECT = Meta(extra_json_schema={"type": "object"})
"""An answer's part that is a JSON object and not described further."""


NEXT = Meta(description="Give it as `cursor` for the next page; null on the last.")
"""Where the next page of an answer begins."""


EXPORT_ID = r"^export_[0-9a-f]{32}(-[a-z]{2,10}-[a-z]{2,10})?$"


EXAMPLE_JOB = "job_0199f0c2a1b43f0e9d8c7b6a5f4e3d2c"


KEY_PATTERN = r"^[\x21-\x7e]{1,255}$"
