"""What an identity provider says of itself: its keys and addresses, found by its discovery document, kept, and read
again when they change."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
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
_AWAY: Final = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, msgspec.MsgspecError)
"""How reading from an issuer fails: it does not answer, or answers nonsense."""


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
        self._found: Mapping[str, Any] = {}
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

    async def discovered(self) -> Mapping[str, Any]:
        """The discovery document. Raises Unavailable if it was never read."""
        if self._is_old():
            async with self._reading:
                if self._is_old():
                    await self._read()
        if self._read_at is None:
            raise Unavailable("the identity provider does not answer, so that nobody can sign in there")
        return self._found

    def endpoint(self, found: Mapping[str, Any], name: str) -> str:
        """An address of a discovery document. Raises ValueError if it is not safe."""
        place = str(found.get(name, ""))
        if self._settings.issuer.startswith("https:") and not place.startswith("https:"):
            raise ValueError(f"its {name} does not begin with https://")
        return place

    async def exchange(self, form: Mapping[str, str], basic: tuple[str, str] | None) -> tuple[int, dict[str, Any]]:
        """Send a form to the token endpoint: status and answer. Raises Unavailable if the issuer does not answer."""
        found = await self.discovered()
        try:
            async with self._client() as client:
                place = self.endpoint(found, "token_endpoint")
                return await _json(client, "POST", place, data=dict(form), auth=basic or httpx.USE_CLIENT_DEFAULT)
        except _AWAY as error:
            log.warning("auth.issuer_away", issuer=self._settings.issuer, error=str(error) or type(error).__name__)
            raise Unavailable("the identity provider does not answer, so that nobody can sign in there") from None

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        verify = ssl.create_default_context(cafile=self._settings.ca_file)
        async with asyncio.timeout(FETCH_SECONDS), httpx.AsyncClient(verify=verify, trust_env=False) as client:
            yield client

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
            async with self._client() as client:
                found = await _document(client, self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if found.get("issuer") != self._settings.issuer:
                    raise ValueError(f"it calls itself {str(found.get('issuer'))[:200]!r}")
                self._keys = _public(await _document(client, self.endpoint(found, "jwks_uri")))
                self._found = found
        except _AWAY as error:
            log.warning("auth.issuer_away", issuer=self._settings.issuer, error=str(error) or type(error).__name__)
            return
        self._read_at = self._tried_at


async def _document(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    status, document = await _json(client, "GET", url)
    if status != 200:
        raise ValueError(f"{url} answers {status}")
    return document


async def _json(client: httpx.AsyncClient, method: str, url: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """Status and answer of the issuer. Redirects are not followed."""
    body = b""
    async with client.stream(method, url, headers={"Accept": "application/json"}, **more) as answer:
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise ValueError(f"{url} has more than {MAX_BYTES} bytes")
    return answer.status_code, msgspec.json.decode(body, type=dict[str, Any])


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
