"""Settings → object stores."""

import base64
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from obstore.store import HTTPStore, LocalStore, ObjectStore, S3Store

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import SourceSettings

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_RETRIES = 2
_CONNECT_SECONDS = 10.0


def web_store(url: SplitResult, headers: Mapping[str, str], timeout_seconds: float) -> ObjectStore:
    """The folder at a URL of http, https or file. `headers` are sent with every request; a redirect to another
    origin drops `Authorization`."""
    if url.scheme == "file":
        return LocalStore(Path(unquote(url.path)))
    return HTTPStore(
        urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2], fragment="")),
        client_options=_client(timeout_seconds, allow_http=url.scheme == "http", headers=headers),
        retry_config=_retry(timeout_seconds),
    )


def s3_store(settings: SourceSettings, timeout_seconds: float) -> ObjectStore:
    """The prefix of a bucket. Uses only the keys of the settings if there are any, otherwise the machine's own."""
    options: dict[str, Any] = {}
    if settings.prefix.strip("/"):
        options["prefix"] = settings.prefix.strip("/")
    if settings.endpoint:
        options |= {"endpoint": settings.endpoint, "virtual_hosted_style_request": False}
    if settings.region:
        options["region"] = settings.region
    if key := settings.access_key.get_secret_value():
        secret = settings.secret_key.get_secret_value()
        options["credential_provider"] = lambda: {
            "access_key_id": key,
            "secret_access_key": secret,
            "token": None,
            "expires_at": None,
        }
    return S3Store(
        settings.bucket,
        client_options=_client(timeout_seconds, allow_http=settings.endpoint.lower().startswith("http://")),
        retry_config=_retry(timeout_seconds),
        **options,
    )


def check_s3(settings: SourceSettings) -> None:
    """Raises SettingsInvalid, which names the key, for settings that could never work."""
    if not settings.bucket:
        raise SettingsInvalid("repository: bucket: missing; set S3_BUCKET_NAME")
    if settings.endpoint and urlsplit(settings.endpoint).scheme not in ("http", "https"):
        raise SettingsInvalid("repository: endpoint: write a URL, e.g. https://s3.example.com")
    if bool(settings.access_key.get_secret_value()) != bool(settings.secret_key.get_secret_value()):
        raise SettingsInvalid("repository: access_key and secret_key: set both, or neither")


def read_url(text: str) -> SplitResult:
    """A URL that `web_store` takes. Raises SettingsInvalid."""
    try:
        url = urlsplit(text)
        good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
        good = good or (url.scheme == "file" and url.netloc in ("", "localhost") and url.path.startswith("/"))
    except ValueError:
        good = False
    if not good:
        raise SettingsInvalid("repository: url: write the URL of an index of scrapers: http://, https:// or file:///")
    return url


def shown_url(url: SplitResult) -> str:
    """Without credentials: user, password and query are left out."""
    return urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment=""))


def login_headers(url: SplitResult, token: str) -> dict[str, str]:
    """A token as a bearer, or else the URL's user and password. Raises SettingsInvalid."""
    if token:
        if not (token.isascii() and token.isprintable()):
            raise SettingsInvalid("repository: token: has characters that no HTTP header can have")
        return {"Authorization": f"Bearer {token}"}
    if url.username is None:
        return {}
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _client(timeout_seconds: float, *, allow_http: bool, headers: Mapping[str, str] | None = None) -> "ClientConfig":
    return {
        "timeout": timedelta(seconds=timeout_seconds),
        "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, timeout_seconds)),
        "user_agent": "scrapeyard",
        "allow_http": allow_http,
        "default_headers": dict(headers or {}),
    }


def _retry(timeout_seconds: float) -> "RetryConfig":
    return {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=timeout_seconds)}
