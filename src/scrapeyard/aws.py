"""URLs that name a service of Amazon, or a server that speaks as it."""

import re
from typing import Any
from urllib.parse import unquote, urlsplit


def aws_service(url: str, scheme: str) -> tuple[dict[str, Any], str]:
    """What botocore's `create_client` takes, and the path after the region. Raises ValueError, without the secret.

    `scheme://REGION` is Amazon's own; `scheme+https://KEY:SECRET@HOST:PORT/REGION` (or `+http`) a server that speaks
    as it. Without key and secret, botocore finds credentials by itself.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    named, _, carrier = parts.scheme.partition("+")
    region, _, rest = parts.path.strip("/").partition("/") if carrier else (host, "", parts.path.strip("/"))
    if named != scheme or carrier not in ("", "http", "https") or not host or parts.query or parts.fragment:
        raise ValueError("not of this form")
    if (not carrier and port) or not re.fullmatch(r"[a-z0-9-]{1,40}", region):
        raise ValueError("no region")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("a key without a secret")
    options: dict[str, Any] = {"region_name": region}
    if carrier:
        shown = f"[{host}]" if ":" in host else host
        options["endpoint_url"] = f"{carrier}://{shown}:{port}" if port else f"{carrier}://{shown}"
    if parts.username and parts.password:
        options["aws_access_key_id"] = unquote(parts.username)
        options["aws_secret_access_key"] = unquote(parts.password)
    return options, rest
