"""Calls of Git hosts: recognised by their headers, and believed when they know the secret."""

import hashlib
import hmac

import pytest

from scrapeyard.errors import Refusal
from scrapeyard.gateway.scrapers.refresh import event_of

BODY = b'{"ref": "refs/heads/main"}'
SECRET = "p\xe4ss"
SIGNED = hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()
PLAIN = SECRET.encode().decode("latin-1")
"""The secret as Starlette reads it from a header."""

GOOD = [
    ({"x-github-event": "push", "x-hub-signature-256": f"sha256={SIGNED}"}, "push"),
    ({"x-github-event": "ping", "x-hub-signature-256": f"sha256={SIGNED}"}, "ping"),
    ({"x-gitlab-event": "Tag Push Hook", "x-gitlab-token": PLAIN}, "tag push hook"),
    ({"x-gitea-event": "push", "x-gitea-signature": SIGNED}, "push"),
    ({"x-forgejo-event": "push", "x-forgejo-signature": SIGNED}, "push"),
    ({"x-gitea-event": "create", "x-gitea-signature": "0" * 64, "x-hub-signature-256": f"sha256={SIGNED}"}, "create"),
    ({"x-gitlab-token": PLAIN}, "push"),
]
BAD = [
    {"x-github-event": "push"},
    {"x-github-event": "push", "x-hub-signature-256": ""},
    {"x-github-event": "push", "x-hub-signature-256": f"sha1={SIGNED}"},
    {"x-github-event": "push", "x-hub-signature-256": "sha256=" + "0" * 64},
    {"x-github-event": "push", "x-hub-signature-256": "sha256=\xff"},
    {"x-gitlab-event": "Push Hook", "x-gitlab-token": PLAIN[:-1]},
    {"x-gitlab-token": ""},
    {"x-gitea-event": "push", "x-gitea-signature": SIGNED[:-1]},
]


@pytest.mark.parametrize(("headers", "event"), GOOD)
def test_a_host_that_knows_the_secret_is_believed(headers: dict[str, str], event: str) -> None:
    assert event_of(headers, BODY, SECRET) == event


@pytest.mark.parametrize("headers", BAD)
def test_a_host_that_does_not_know_it_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Refusal) as caught:
        event_of(headers, BODY, SECRET)
    assert (caught.value.status, caught.value.refusal_code) == (401, "hook_refused")
    assert SECRET not in caught.value.message


def test_a_signature_of_another_body_is_refused() -> None:
    with pytest.raises(Refusal):
        event_of({"x-hub-signature-256": f"sha256={SIGNED}"}, BODY + b" ", SECRET)


@pytest.mark.parametrize("headers", BAD)
def test_without_a_secret_every_host_is_heard(headers: dict[str, str]) -> None:
    assert event_of(headers, BODY, "") is not None


def test_any_other_call_is_no_hook() -> None:
    assert event_of({"content-type": "application/json"}, b"", SECRET) is None
