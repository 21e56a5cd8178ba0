"""Settings of the place for what is large."""

import re
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from scrapeyard.settings.section import Section

_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_PREFIX = r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*"


class BlobSettings(Section):
    """Large results, artifacts, manifests and exports."""

    url: str = Field("", description="s3://bucket/prefix; empty: a folder in the data directory.")
    endpoint: str = Field("", description="S3-compatible server other than Amazon's, e.g. https://s3.example.com.")
    region: str = Field("", description="S3 region.")
    access_key: SecretStr = Field(SecretStr(""), description="S3 access key; empty: the machine's own credentials.")
    secret_key: SecretStr = Field(SecretStr(""), description="S3 secret key.")

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        place = urlsplit(self.url)
        if self.url and (place.scheme != "s3" or not re.fullmatch(_BUCKET, place.netloc) or place.query):
            raise ValueError("url: write s3://bucket or s3://bucket/prefix")
        if self.url and place.path.strip("/") and not re.fullmatch(_PREFIX, place.path.strip("/")):
            raise ValueError("url: the prefix may have letters, digits and . _ - between its slashes")
        if not self.url and (self.endpoint or self.access_key.get_secret_value()):
            raise ValueError("endpoint and keys are set, but url is not; write s3://bucket/prefix")
        if self.endpoint and urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise ValueError("endpoint: write a URL, e.g. https://s3.example.com")
        if bool(self.access_key.get_secret_value()) != bool(self.secret_key.get_secret_value()):
            raise ValueError("access_key and secret_key: set both, or neither")
        return self
