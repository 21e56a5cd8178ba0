"""Settings → object stores."""

import base64
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from obstore.store import HTTPStore, LocalStore, ObjectStore

from scrapeyard.blobs.buckets import Bucket, client_options, open_bucket, retry_options
from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import SourceSettings

_RETRIES = 2


def web_store(url: SplitResult, headers: Mapping[str, str], timeout_seconds: float) -> ObjectStore:
    """The folder at a URL of http, https or file. `headers` are sent with every request; a redirect to another
    origin drops `Authorization`."""
    if url.scheme == "file":
        return LocalStore(Path(unquote(url.path)))
    return HTTPStore(
        urlunsplit(url._replace(netloc=url.netloc.rpartition("@")[2], fragment="")),
        client_options={
            **client_options(timeout_seconds, allow_http=url.scheme == "http"),
            "default_headers": dict(headers),
        },
        retry_config=retry_options(timeout_seconds, _RETRIES),
    )


def bucket_store(settings: SourceSettings, timeout_seconds: float) -> ObjectStore:
    """The prefix of a bucket."""
    bucket = Bucket(
        url=bucket_url(settings),
        endpoint=settings.endpoint,
        region=settings.region,
        access_key=settings.access_key.get_secret_value(),
        secret_key=settings.secret_key.get_secret_value(),
        ca_file=settings.ca_file,
    )
    return open_bucket(bucket, timeout_seconds=timeout_seconds, retries=_RETRIES)


def bucket_url(settings: SourceSettings) -> str:
    """`s3://bucket/prefix`."""
    return f"{settings.type or 's3'}://{settings.bucket}/{settings.prefix.strip('/')}".rstrip("/")


def check_bucket(settings: SourceSettings) -> None:
    """Raises SettingsInvalid, which names the key, for settings that could never work."""
    if not settings.bucket:
        raise SettingsInvalid("repository: bucket: missing; set S3_BUCKET_NAME")
    if settings.endpoint and urlsplit(settings.endpoint).scheme not in ("http", "https"):
        raise SettingsInvalid("repository: endpoint: write a URL, e.g. https://s3.example.com")
    has_one, has_both = settings.access_key.get_secret_value(), settings.secret_key.get_secret_value()
    if settings.type != "gs" and bool(has_one) != bool(has_both):
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
