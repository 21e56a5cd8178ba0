"""A small real identity provider: discovery, keys, and the authorization code flow with PKCE."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

RSA = rsa.generate_private_key(65537, 2048)
KEYS: dict[str, tuple[str, Any]] = {
    "r": ("RS256", RSA),
    "e": ("ES256", ec.generate_private_key(ec.SECP256R1())),
    "d": ("EdDSA", ed25519.Ed25519PrivateKey.generate()),
    "small": ("RS256", rsa.generate_private_key(65537, 1024)),
    "curve": ("ES384", ec.generate_private_key(ec.SECP384R1())),
}
CLIENT, SECRET = "yard-page", "p%ss word"


class Issuer(ThreadingHTTPServer):
    """Serves its documents, signs in one user without asking, and gives each code's token once."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.ids = list(KEYS)
        self.name = self.url
        self.reads = 0
        self.broken = False
        self.denies = False
        self.asks = False
        """Whether the user must follow a link to sign in."""
        self.secret_in: str | None = "client_secret_basic"
        """How the client proves itself; None: it has no secret."""
        self.claims: dict[str, Any] = {}
        """Of the user who signs in, over those of `token`."""
        self.codes: dict[str, dict[str, str]] = {}

    def documents(self) -> dict[str, Any]:
        """The discovery document and the keys, by path."""
        keys = [{**_jwk(*KEYS[each]), "kid": each} for each in self.ids]
        secret = {"kty": "oct", "kid": "secret", "k": b64(b"x" * 32)}
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.name,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "token_endpoint_auth_methods_supported": [self.secret_in],
            },
            "/keys": {"keys": [*keys, secret]},
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where a browser is sent back to."""
        wanted = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256"}
        if not (wanted.items() <= asked.items() and "openid" in asked["scope"].split()):
            raise ValueError(asked)
        back = {"state": asked["state"], "session_state": "more of the provider's own"}
        if self.denies:
            back |= {"error": "access_denied", "error_description": "not today\n"}
        else:
            back |= {"code": secrets.token_hex(8), "iss": self.name}
            self.codes[back["code"]] = asked
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def exchange(self, form: dict[str, str], header: str) -> dict[str, Any]:
        """The answer of the token endpoint."""
        asked = self.codes.pop(form["code"], None)
        challenge = b64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if asked is None or challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return {"error": "invalid_grant"}
        if not self._proves(form, header):
            return {"error": "invalid_client"}
        claims = {"aud": CLIENT, "nonce": asked["nonce"], **self.claims}
        return {"id_token": token(self, **claims), "access_token": "opaque", "token_type": "Bearer"}

    def _proves(self, form: dict[str, str], header: str) -> bool:
        if self.secret_in == "client_secret_basic":
            client, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            return (unquote(client), unquote(secret)) == (CLIENT, SECRET)
        given = form.get("client_secret") if self.secret_in else SECRET
        return not header and (form["client_id"], given) == (CLIENT, SECRET)


class _Answer(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        self.server.reads += place.path == "/keys"
        if place.path == "/authorize":
            self._send_back(self.server.authorize(dict(parse_qsl(place.query))))
            return
        self._answer(500 if self.server.broken else 200, self.server.documents().get(place.path))

    def _send_back(self, url: str) -> None:
        body = f'<a href="{escape(url)}">yes</a>'.encode() if self.server.asks else b""
        self.send_response(200 if body else 302)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        if not body:
            self.send_header("Location", url)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        answer = self.server.exchange(form, self.headers.get("Authorization", ""))
        self._answer(400 if "error" in answer else 200, answer)

    def _answer(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def b64(raw: bytes) -> str:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _jwk(algorithm: str, key: Any) -> dict[str, Any]:
    found: dict[str, Any] = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    return found


def token(issuer: Issuer, kid: str = "r", algorithm: str = "", key: Any = None, **claims: Any) -> str:
    """A token that the issuer signs; a claim that is None is left out."""
    now = time.time()
    whole = {"iss": issuer.url, "aud": "yard", "sub": "ann", "exp": now + 600, "iat": now, "roles": ["guest"], **claims}
    whole = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(whole, key or KEYS[kid][1], algorithm=algorithm or KEYS[kid][0], headers={"kid": kid})


@contextmanager
def serve() -> Iterator[Issuer]:
    """An issuer, until the end of the block."""
    server = Issuer()
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
