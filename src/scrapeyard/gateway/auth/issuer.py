"""The keys of an identity provider: found by its discovery document, kept, and read again when they change."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
import jwt
import msgspec
from msgspec import Struct

from scrapeyard.errors import Unavailable
from scrapeyard.settings import OidcSettings
from scrapeyard.telemetry.events import get_log

log = get_log("auth")
FETCH_SECONDS: Final = 5.0
MAX_BYTES: Final = 1_000_000
MAX_KEYS: Final = 100
UNKNOWN_SECONDS: Final = 30.0
"""Keys are not read again sooner for a token with an unknown key: anybody can make such tokens."""
MIN_RSA_BITS: Final = 2048
_ALGORITHMS: Final = {("RSA", ""): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The algorithm of each type of key. The key decides it, never the token. Secret keys (`oct`) are not accepted."""


class IssuerKey(Struct, frozen=True):
    """A public key, and the one algorithm that it verifies."""

    key: Any
    algorithm: str


class IssuerKeys:
    """Keys of one issuer. While it is away, those that were read last serve."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: Mapping[str, IssuerKey] = {}
        self._read_at: float | None = None
        self._tried_at: float | None = None
        self._reading = asyncio.Lock()

    async def find(self, key_id: str | None) -> IssuerKey | None:
        """The key of a token; None if the issuer has none such. Without an id, the only key. Raises Unavailable if the
        issuer's keys were never read."""
        if self._is_old() or (self._known(key_id) is None and self._may_read()):
            async with self._reading:
                if self._is_old() or (self._known(key_id) is None and self._may_read()):
                    await self._read()
        if self._read_at is None:
            raise Unavailable("the identity provider does not answer, so that no token can be checked")
        return self._known(key_id)

    def _known(self, key_id: str | None) -> IssuerKey | None:
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    def _is_old(self) -> bool:
        old = self._read_at is None or self._clock() - self._read_at > self._settings.keys_seconds
        return old and self._may_read()

    def _may_read(self) -> bool:
        pause = UNKNOWN_SECONDS if self._read_at is not None else 1.0
        return self._tried_at is None or self._clock() - self._tried_at >= pause

    async def _read(self) -> None:
        self._tried_at = self._clock()
        try:
            verify = ssl.create_default_context(cafile=self._settings.ca_file)
            async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient(verify=verify, trust_env=False) as client:
                found = await _json(client, self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if found.get("issuer") != self._settings.issuer:
                    raise ValueError(f"it calls itself {str(found.get('issuer'))[:200]!r}")
                place = str(found.get("jwks_uri", ""))
                if self._settings.issuer.startswith("https:") and not place.startswith("https:"):
                    raise ValueError("its jwks_uri does not begin with https://")
                self._keys = _public(await _json(client, place))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, msgspec.MsgspecError) as error:
            log.warning("auth.issuer_away", issuer=self._settings.issuer, error=str(error) or type(error).__name__)
            return
        self._read_at = self._tried_at


async def _json(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """A document of the issuer. Redirects are not followed."""
    body = b""
    async with client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
        if answer.status_code != 200:
            raise ValueError(f"{url} answers {answer.status_code}")
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise ValueError(f"{url} has more than {MAX_BYTES} bytes")
    return msgspec.json.decode(body, type=dict[str, Any])


def _public(document: Mapping[str, Any]) -> dict[str, IssuerKey]:
    """The keys that can verify signatures, by id. Others are left out."""
    given = document.get("keys")
    found: dict[str, IssuerKey] = {}
    for each in given[:MAX_KEYS] if isinstance(given, list) else ():
        if isinstance(each, dict) and (key := _key(each)) is not None:
            found[str(each.get("kid", ""))] = key
    return found


def _key(given: Mapping[str, Any]) -> IssuerKey | None:
    algorithm = _ALGORITHMS.get((given.get("kty", ""), given.get("crv", "")))
    if algorithm is None or given.get("use", "sig") != "sig" or given.get("alg", algorithm) != algorithm:
        return None
    public = {name: value for name, value in given.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")}
    try:
        key = jwt.PyJWK(public, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if algorithm == "RS256" and key.key_size < MIN_RSA_BITS:
        return None
    return IssuerKey(key, algorithm)
