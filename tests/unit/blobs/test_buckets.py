"""A bucket's URL decides the provider; its keys go to that provider alone."""

import json
from typing import Any

import pytest
from obstore.store import AzureStore, GCSStore, S3Store
from pydantic import ValidationError

from scrapeyard.blobs.buckets import Bucket, open_bucket
from scrapeyard.settings import BlobSettings

NOBODY = {"client_email": "", "private_key": "", "private_key_id": ""}
SERVICE_ACCOUNT = json.dumps({**NOBODY, "gcs_base_url": "https://g.example", "disable_oauth": True})


def opened(url: str, **more: str) -> Any:
    return open_bucket(Bucket(url=url, **more), timeout_seconds=5, retries=0)


@pytest.mark.parametrize(
    ("url", "more", "kind"),
    [
        ("s3://scrapes/all", {"region": "eu-central-1", "access_key": "a", "secret_key": "b"}, S3Store),
        ("gs://scrapes/all", {"secret_key": SERVICE_ACCOUNT}, GCSStore),
        ("az://scrapes/all", {"access_key": "account", "secret_key": "a2V5"}, AzureStore),
    ],
)
def test_the_scheme_is_the_provider(url: str, more: dict[str, str], kind: type) -> None:
    store = opened(url, **more)
    assert isinstance(store, kind)
    assert store.prefix == "all"


def test_azure_is_given_account_and_endpoint() -> None:
    store = opened("az://scrapes", access_key="account", secret_key="a2V5", endpoint="http://127.0.0.1:1/account")
    assert store.config["account_name"] == "account"
    assert store.config["endpoint"] == "http://127.0.0.1:1/account"


def test_google_is_given_an_endpoint() -> None:
    store = opened("gs://scrapes", secret_key=SERVICE_ACCOUNT, endpoint="https://g.example")
    assert store.config["base_url"] == "https://g.example"


@pytest.mark.parametrize("url", ["ftp://scrapes", "gs://", "az://UPPER", "s3://b?x=1", "gs://scrapes/a b"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="url: "):
        BlobSettings(url=url)


def test_google_needs_no_access_key() -> None:
    assert BlobSettings(url="gs://scrapes", secret_key=SERVICE_ACCOUNT).url == "gs://scrapes"
    with pytest.raises(ValidationError, match="set both"):
        BlobSettings(url="az://scrapes", secret_key="a2V5")
