"""Sign-in at an identity provider: the authorization code flow of OpenID Connect, with PKCE, state and nonce.

Between the two requests of a browser a short-lived signed cookie has only the id of the attempt. State, nonce and PKCE
verifier are keyed hashes of it, so any gateway may answer the second request, and none of them stands in the cookie.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from scrapeyard.errors import Refusal, Unavailable
from scrapeyard.gateway.auth.issuer import IssuerKeys
from scrapeyard.gateway.auth.tokens import IssuerTokens
from scrapeyard.model.audit import cleaned
from scrapeyard.model.identity import Identity, Pepper
from scrapeyard.settings import OidcSettings

ATTEMPT_SECONDS: Final = 600
_MOST_TOLD: Final = 200


class SignInAttempt(Struct, frozen=True, kw_only=True):
    """What a browser keeps while its user is at the provider."""

    id: str
    until: int
    next: str
    """The path of ours that is opened in the end."""


class ProviderSignIn:
    """Sends browsers to the provider of the settings, and takes them back."""

    def __init__(
        self, settings: OidcSettings, keys: IssuerKeys, tokens: IssuerTokens, pepper: Pepper, clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._tokens = tokens
        self._pepper = pepper
        self._clock = clock

    async def begin(self, callback: str, after: str) -> tuple[str, str]:
        """The address at the provider, and the value of the cookie. Raises Unavailable."""
        place = await self._authorize_endpoint()
        attempt = SignInAttempt(id=secrets.token_hex(16), until=int(self._clock()) + ATTEMPT_SECONDS, next=after)
        challenge = hashlib.sha256(self._secret("verifier", attempt).encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": callback,
            "scope": " ".join(self._settings.scopes),
            "state": self._secret("state", attempt),
            "nonce": self._secret("nonce", attempt),
            "code_challenge": urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        words = urlsafe_b64encode(msgspec.json.encode(attempt)).decode()
        cookie = f"{words}.{self._pepper.sign('sign-in', words)}"
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked, quote_via=quote)}", cookie

    async def _authorize_endpoint(self) -> str:
        try:
            place = self._keys.endpoint(await self._keys.discovered(), "authorization_endpoint")
        except ValueError as error:
            raise Unavailable(f"nobody can sign in at the identity provider: {error}") from None
        if not place:
            raise Unavailable("nobody can sign in at the identity provider: it names no authorization_endpoint")
        return place

    async def finish(self, cookie: str | None, given: Mapping[str, str], callback: str) -> tuple[Identity, str]:
        """Who signed in, and the path to open. `given` is the query that the provider sent the browser back with.
        Raises Refusal (401, 403) or Unavailable."""
        attempt = self._attempt(cookie)
        if not hmac.compare_digest(given.get("state", "").encode(), self._secret("state", attempt).encode()):
            raise failed("the state is not that of a sign-in which this browser began")
        if given.get("iss", self._settings.issuer) != self._settings.issuer:
            raise failed("the answer comes from another identity provider")
        if "code" not in given:
            raise failed(f"the identity provider says: {_told(given)}")
        claims = await self._claims(await self._exchanged(given["code"], callback, attempt), attempt)
        return self._tokens.identity(claims), attempt.next

    def _attempt(self, cookie: str | None) -> SignInAttempt:
        words, _, signature = (cookie or "").rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._pepper.sign("sign-in", words).encode()):
            raise failed("this browser has begun no sign-in, or keeps no cookies")
        attempt = msgspec.json.decode(urlsafe_b64decode(words), type=SignInAttempt)
        if self._clock() >= attempt.until:
            raise failed(f"it took longer than {ATTEMPT_SECONDS // 60} minutes")
        return attempt

    async def _exchanged(self, code: str, callback: str, attempt: SignInAttempt) -> str:
        """The id token for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "client_id": self._settings.client_id,
            "code_verifier": self._secret("verifier", attempt),
        }
        basic, secret = None, self._settings.client_secret.get_secret_value()
        if secret and await self._takes_basic():
            basic = (quote(self._settings.client_id, safe=""), quote(secret, safe=""))
        elif secret:
            form["client_secret"] = secret
        status, answer = await self._keys.exchange(form, basic)
        if status != 200 or not isinstance(answer.get("id_token"), str):
            raise failed(f"the identity provider gives no id token (status {status}): {_told(answer)}")
        return str(answer["id_token"])

    async def _takes_basic(self) -> bool:
        """Whether the client's secret goes into a header, as is usual, or into the form."""
        ways = (await self._keys.discovered()).get("token_endpoint_auth_methods_supported")
        return not isinstance(ways, list) or "client_secret_basic" in ways

    async def _claims(self, token: str, attempt: SignInAttempt) -> dict[str, Any]:
        claims = await self._tokens.verified(token, self._settings.client_id)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), self._secret("nonce", attempt).encode()):
            raise failed("the id token was made for another sign-in")
        if claims.get("azp", self._settings.client_id) != self._settings.client_id:
            raise failed("the id token was made for another client")
        return claims

    def _secret(self, use: str, attempt: SignInAttempt) -> str:
        return self._pepper.sign("sign-in", f"{use} {attempt.id}")


def failed(detail: str) -> Refusal:
    """The answer to a sign-in that did not succeed."""
    return Refusal("sign_in_failed", 403, detail)


def _told(answer: Mapping[str, Any]) -> str:
    words = [str(answer[name]) for name in ("error", "error_description") if name in answer]
    return cleaned(": ".join(words)[:_MOST_TOLD]) or "nothing"
