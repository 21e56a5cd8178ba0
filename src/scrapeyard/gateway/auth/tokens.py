"""Tokens of an identity provider (JWT) as credentials, and what their claims mean here."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import jwt
from starlette.types import Scope

from scrapeyard.errors import Refusal
from scrapeyard.gateway.auth.credentials import unauthenticated
from scrapeyard.gateway.auth.issuer import IssuerKeys
from scrapeyard.model.identity import CLIENT_NAME, Identity, Role
from scrapeyard.settings import OidcSettings

_STRENGTH: Final = (Role.ADMIN, Role.OPERATOR, Role.VIEWER, Role.CLIENT)
_REQUIRED: Final = ["exp", "iss", "aud"]


class IssuerTokens:
    """Credentials: tokens that the issuer of the settings has signed for this audience."""

    def __init__(self, settings: OidcSettings, keys: IssuerKeys | None = None) -> None:
        self._settings = settings
        self._keys = keys or IssuerKeys(settings)
        self._roles = {value: Role(role) for value, _, role in (each.rpartition("=") for each in settings.roles)}

    @property
    def in_use(self) -> bool:
        """Whether an issuer is set."""
        return bool(self._settings.issuer)

    async def identify(self, token: str | None, scope: Scope) -> Identity | None:  # noqa: ARG002  the port's signature
        """Who calls; None if the request carries no token of this form. Raises Refusal: 401 for a token that is not
        valid, 403 for one whose claims give no role."""
        if token is None or token.count(".") != 2 or not self.in_use:
            return None
        return self.identity(await self.verified(token, self._settings.audience))

    async def verified(self, token: str, audience: str) -> dict[str, Any]:
        """The claims of a token of the issuer for this audience. Raises Refusal (401) if it is not valid."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._keys.find(key_id)
            if key is None:
                raise unauthenticated("the token is signed with a key that the identity provider does not have")
            return jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=audience,
                issuer=self._settings.issuer,
                leeway=self._settings.leeway_seconds,
                options={"require": _REQUIRED},
            )
        except jwt.PyJWTError as error:
            raise unauthenticated(f"the token is not valid: {error}") from None

    def identity(self, claims: Mapping[str, Any]) -> Identity:
        """Who the claims say calls. Raises Refusal: 401 if they name nobody, 403 if they give no role."""
        name = _claim(claims, self._settings.client_claim)
        if not isinstance(name, str) or not name:
            raise unauthenticated(f"the token has no claim {self._settings.client_claim} that names the client")
        return Identity(client=client_name(self._settings.issuer, name), role=self._role(claims))

    def _role(self, claims: Mapping[str, Any]) -> Role:
        given = _claim(claims, self._settings.role_claim)
        values = given if isinstance(given, list) else str(given or "").split()
        found = {self._roles[value] for value in values if isinstance(value, str) and value in self._roles}
        for role in _STRENGTH:
            if role in found:
                return role
        if not self._settings.default_role:
            raise Refusal("forbidden", 403, f"no value of the token's claim {self._settings.role_claim} is a role here")
        return Role(self._settings.default_role)


def client_name(issuer: str, name: str) -> str:
    """The client that a claim names: the claim itself if it can be a name, else `user-` and a digest."""
    if CLIENT_NAME.fullmatch(name):
        return name
    return f"user-{hashlib.sha256(f'{issuer} {name}'.encode()).hexdigest()[:20]}"


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """A claim, also inside of objects: `realm_access.roles`. None if there is none."""
    if path in claims:
        return claims[path]
    at: Any = claims
    for part in path.split("."):
        at = at.get(part) if isinstance(at, dict) else None
    return at
