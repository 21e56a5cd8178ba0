"""Calls of Git hosts after a push: which host it is, and whether it knows our secret."""

import hashlib
import hmac
from collections.abc import Mapping

from scrapeyard.gateway.http.problems import Refusal

EVENTS = ("x-github-event", "x-gitea-event", "x-forgejo-event", "x-gogs-event", "x-gitlab-event")
SIGNATURES = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature", "x-gogs-signature")
"""An HMAC of the body by SHA-256 in hex, the first with `sha256=` before it."""
TOKEN = "x-gitlab-token"  # noqa: S105  a header's name
"""The secret as it is."""
HEADERS = (*EVENTS, *SIGNATURES, TOKEN)


def event_of(headers: Mapping[str, str], body: bytes, secret: str) -> str | None:
    """What happened at the host (`push`, `ping`, …); None when this is no call of a Git host. Raises Refusal (401) when
    there is a secret and the call does not prove that it knows it."""
    given = [name for name in HEADERS if name in headers]
    if not given:
        return None
    if secret and not _knows(headers, body, secret.encode()):
        raise Refusal("hook_refused", 401, "the hook's signature or token does not fit repository.hook_secret")
    return next((headers[name].lower() for name in EVENTS if name in headers), "push")


def _knows(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    signed = hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
    signatures = [headers[name].removeprefix("sha256=") for name in SIGNATURES if name in headers]
    proven = [hmac.compare_digest(_sent(signature), signed) for signature in signatures]
    proven += [hmac.compare_digest(_sent(headers[TOKEN]), secret)] if TOKEN in headers else []
    return any(proven)


def _sent(header: str) -> bytes:
    """The bytes that came; a header is read as Latin-1 whatever it holds."""
    return header.encode("latin-1")
