"""Buckets by URL: `s3://` (Amazon and compatible stores), `gs://` (Google), `az://` (Azure)."""

import ssl
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from scrapeyard.errors import SettingsInvalid

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_CONNECT_SECONDS: Final = 10.0


class Bucket(Struct, frozen=True, kw_only=True):
    """A prefix of a bucket and the keys to it. Without keys, the machine's own credentials are used."""

    url: str
    """`s3://bucket/prefix`."""
    endpoint: str = ""
    """A server other than the provider's own."""
    region: str = ""
    access_key: str = ""
    """S3: the access key; Azure: the account's name."""
    secret_key: str = ""
    """S3: the secret key; Azure: the account's key; Google: a service account's key, as JSON."""
    ca_file: Path | None = None
    """PEM file of authorities that are trusted beside the machine's own."""


def open_bucket(bucket: Bucket, *, timeout_seconds: float, retries: int) -> ObjectStore:
    """The bucket's prefix as a store. Does not contact the server yet. Raises SettingsInvalid."""
    place = urlsplit(bucket.url)
    options: dict[str, Any] = {"prefix": place.path.strip("/")} if place.path.strip("/") else {}
    options |= {
        "client_options": client_options(
            timeout_seconds, allow_http=bucket.endpoint.lower().startswith("http://"), ca_file=bucket.ca_file
        ),
        "retry_config": retry_options(timeout_seconds, retries),
    }
    match place.scheme:
        case "gs":
            return GCSStore(place.netloc, **options, **_google(bucket))
        case "az":
            return AzureStore(place.netloc, **options, **_azure(bucket))
        case _:
            return S3Store(place.netloc, **options, **_amazon(bucket))


def client_options(timeout_seconds: float, *, allow_http: bool, ca_file: Path | None = None) -> "ClientConfig":
    """How a store's HTTP client behaves. Raises SettingsInvalid if the authorities cannot be read."""
    options: ClientConfig = {
        "timeout": timedelta(seconds=timeout_seconds),
        "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, timeout_seconds)),
        "user_agent": "scrapeyard",
        "allow_http": allow_http,
    }
    if ca_file is not None:
        options["root_certificate"] = _authorities(ca_file)
    return options


def _authorities(file: Path) -> bytes:
    try:
        found = file.read_bytes()
        ssl.create_default_context(cadata=found.decode("ascii"))
    except (OSError, ValueError) as error:  # also of an ssl.SSLError, which is an OSError
        raise SettingsInvalid(f"ca_file: {file} has no certificates in PEM form that can be used: {error}") from None
    return found


def retry_options(timeout_seconds: float, retries: int) -> "RetryConfig":
    """How often a request is repeated; all repetitions together end in time."""
    return {"max_retries": retries, "retry_timeout": timedelta(seconds=timeout_seconds)}


def _amazon(bucket: Bucket) -> dict[str, Any]:
    options: dict[str, Any] = {"region": bucket.region} if bucket.region else {}
    if bucket.endpoint:
        options |= {"endpoint": bucket.endpoint, "virtual_hosted_style_request": False}
    if bucket.access_key:
        pair = {"access_key_id": bucket.access_key, "secret_access_key": bucket.secret_key}
        # A provider, since keys given as options would be joined with a session token of the environment.
        options["credential_provider"] = lambda: {**pair, "token": None, "expires_at": None}
    return options


def _google(bucket: Bucket) -> dict[str, Any]:
    options = {"base_url": bucket.endpoint} if bucket.endpoint else {}
    return options | ({"service_account_key": bucket.secret_key} if bucket.secret_key else {})


def _azure(bucket: Bucket) -> dict[str, Any]:
    options = {"endpoint": bucket.endpoint} if bucket.endpoint else {}
    keys = {"account_name": bucket.access_key, "account_key": bucket.secret_key}
    return options | (keys if bucket.secret_key else {})
