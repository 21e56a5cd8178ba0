"""Tokens of an identity provider, at the gateway's door: a small real issuer with real keys."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import ValidationError

from scrapeyard.gateway.auth.tokens import IssuerTokens
from scrapeyard.settings import OidcSettings, Settings
from tests.integration.gateway_stand import Stand, open_stand
from tests.services.issuer import KEYS, RSA, Issuer, b64, serve, token


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serve() as server:
        yield server


@asynccontextmanager
async def stand_of(folder: Path, issuer: Issuer, **more: Any) -> AsyncIterator[Stand]:
    roles = ("boss=admin", "crew=operator", "guest=viewer")
    oidc = OidcSettings(issuer=issuer.url, audience="yard", roles=roles, **more)
    async with open_stand(folder, Settings(oidc=oidc)) as stand:
        yield stand


async def status(stand: Stand, given: str, path: str = "/api/jobs") -> int:
    return (await stand.client.get(path, headers={"Authorization": f"Bearer {given}"})).status_code


async def test_tokens_of_each_algorithm_say_who_calls_and_in_which_role(tmp_path: Path, issuer: Issuer) -> None:
    async with stand_of(tmp_path, issuer) as stand:
        assert (await stand.client.get("/api/jobs")).status_code == 401, "an issuer is set, so calls must be known"
        for kid in ("r", "e", "d"):
            assert await status(stand, token(issuer, kid)) == 200
        assert issuer.reads == 1, "its keys are kept"
        guest, boss = token(issuer), token(issuer, roles=["guest", "boss"], sub="Bo B.")
        assert (await status(stand, guest, "/api/audit"), await status(stand, boss, "/api/audit")) == (403, 200)
        head = {"Authorization": f"Bearer {token(issuer, roles='crew other')}"}
        assert (await stand.client.put("/api/sites/a.example", json={"rate": 1.0}, headers=head)).status_code == 200
        rows = await _audit(stand, boss)
        assert [(row["client"], row["role"]) for row in rows if row["action"] == "put_site"] == [("ann", "operator")]


async def _audit(stand: Stand, boss: str) -> list[dict[str, Any]]:
    await stand.gateway.audit._flush()
    answer = await stand.client.get("/api/audit", headers={"Authorization": f"Bearer {boss}"})
    rows: list[dict[str, Any]] = answer.json()["rows"]
    return rows


def _unsigned(issuer: Issuer) -> str:
    _, body, _ = token(issuer).split(".")
    return f"{b64(json.dumps({'alg': 'none', 'kid': 'r'}).encode())}.{body}."


def _confused(issuer: Issuer) -> str:
    """HS256 with the public key as the secret."""
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    head = b64(json.dumps({"alg": "HS256", "kid": "r"}).encode())
    body = token(issuer).split(".")[1]
    return f"{head}.{body}.{b64(hmac.digest(pem, f'{head}.{body}'.encode(), hashlib.sha256))}"


def _tampered(issuer: Issuer) -> str:
    head, body, mark = token(issuer).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    return f"{head}.{b64(json.dumps({**claims, 'roles': ['boss']}).encode())}.{mark}"


@pytest.mark.filterwarnings("ignore:The RSA key is 1024")
async def test_tokens_that_are_not_valid_are_refused(tmp_path: Path, issuer: Issuer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    refused = {
        "unsigned": _unsigned(issuer),
        "key confusion": _confused(issuer),
        "tampered": _tampered(issuer),
        "another key": token(issuer, key=stranger),
        "key of another algorithm": token(issuer, "r", "ES256", KEYS["e"][1]),
        "secret key of the issuer": token(issuer, "secret", "HS256", b"x" * 32),
        "wrong issuer": token(issuer, iss="https://evil.example"),
        "no issuer": token(issuer, iss=None),
        "wrong audience": token(issuer, aud="others"),
        "no audience": token(issuer, aud=None),
        "expired": token(issuer, exp=time.time() - 60),
        "without an end": token(issuer, exp=None),
        "not yet": token(issuer, nbf=time.time() + 600),
        "no client": token(issuer, sub=None),
        "small key": token(issuer, "small"),
        "curve that is not taken": token(issuer, "curve"),
        "nonsense": "a.b.c",
    }
    async with stand_of(tmp_path, issuer) as stand:
        assert {name: await status(stand, each) for name, each in refused.items()} == dict.fromkeys(refused, 401)
        assert await status(stand, token(issuer, roles=["nothing"])) == 403
        assert await status(stand, token(issuer)) == 200
    async with stand_of(tmp_path, issuer, default_role="client") as stand:
        assert await status(stand, token(issuer, roles=["nothing"])) == 200


async def test_keys_are_read_again_for_a_new_one_but_not_for_every_stranger(tmp_path: Path, issuer: Issuer) -> None:
    issuer.ids = ["r"]
    now = 0.0
    async with stand_of(tmp_path, issuer) as stand:
        kind = next(each for each in stand.gateway.authenticator._kinds if isinstance(each, IssuerTokens))
        kind._keys._clock = lambda: now  # type: ignore[attr-defined]
        assert await status(stand, token(issuer, "r")) == 200
        for _ in range(20):
            assert await status(stand, token(issuer, "e")) == 401
        assert issuer.reads == 1, "not sooner than half a minute after the last time"
        issuer.ids = ["e"]
        now = 31.0
        assert await status(stand, token(issuer, "e")) == 200
        assert await status(stand, token(issuer, "r")) == 401, "the old key is withdrawn"
        assert issuer.reads == 2
        issuer.broken = True
        now = 10_000.0
        assert await status(stand, token(issuer, "e")) == 200, "while the issuer is away, its last keys serve"


async def test_without_any_keys_a_token_cannot_be_checked(tmp_path: Path, issuer: Issuer) -> None:
    issuer.name = "https://somebody.else"
    async with stand_of(tmp_path, issuer) as stand:
        assert await status(stand, token(issuer)) == 503


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"issuer": "http://id.example", "audience": "a"}, "https"),
        ({"issuer": "https://id.example"}, "audience"),
        ({"roles": ["x=king"]}, "value=role"),
    ],
)
def test_settings_that_are_not_safe_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        OidcSettings(**given)
