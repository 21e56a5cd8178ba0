"""Settings of scrapers: where they come from, the packages that they require, and where large results are stored."""

import re
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from scrapeyard.settings.section import Section, branch

SCHEMES = ("s3", "gs", "az")
"""Kinds of buckets: Amazon and compatible stores, Google, Azure."""


class SourceSettings(Section):
    """One repository of scrapers."""

    type: Literal["", "folder", "git", "http", "s3", "gs", "az"] = Field(
        "", description="Kind of repository; empty: none."
    )
    name: str = Field("", description="Name in listings; empty: its URL without credentials.")
    url: SecretStr = Field(
        SecretStr(""), description="Folder, any URL that git understands, or the URL of the index; not for buckets."
    )
    path: str = Field("", description="Folder inside a Git repository that holds the scrapers; empty: all of it.")
    branch: str = Field("", description="Git branch; empty: the repository's default branch.")
    history: int = Field(50, ge=1, le=10_000, description="Commits of the branch to search for older versions.")
    token: SecretStr = Field(SecretStr(""), description="Password for Git over https, bearer token for http.")
    key_file: Path | None = Field(None, description="Private key for Git over ssh.")
    known_hosts: Path | None = Field(None, description="Host keys for Git over ssh; empty: the user's own file.")
    bucket: str = Field("", description="Bucket of S3 or Google, container of Azure.")
    region: str = Field("", description="S3 region.")
    prefix: str = Field("", description="Prefix before every key of the bucket.")
    endpoint: str = Field("", description="Server of the bucket other than Amazon's, Google's or Azure's.")
    access_key: SecretStr = Field(
        SecretStr(""), description="S3 access key or Azure account; empty: the machine's own credentials."
    )
    secret_key: SecretStr = Field(
        SecretStr(""), description="S3 secret key, Azure account key, or Google service account key (JSON)."
    )
    ca_file: Path | None = Field(
        None, description="PEM file of authorities trusted for the bucket's server, beside the machine's own."
    )

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        """S3 variables alone are no error: other programs read them too."""
        url = bool(self.url.get_secret_value())
        if url and not self.type:
            raise ValueError("url is set, but type is not; set type to folder, git, http, s3, gs or az")
        if self.type in ("folder", "git", "http") and not url:
            raise ValueError(f"type is {self.type}, but url is not set")
        if self.type in SCHEMES and (url or not self.bucket):
            raise ValueError(f"type is {self.type}: set bucket, and endpoint instead of url for a server of your own")
        return self


USUAL_SCRAPERS = Path("scrapers")
"""The folder with scrapers that commands use where nothing names one."""


class RepositorySettings(Section):
    """Where scrapers come from, in order of precedence: `scrapers`, `source`, `more`, `uploads`, installed packages."""

    scrapers: Path | None = Field(
        None, description="Folder with scrapers. It is watched: its files may change at any time."
    )
    refresh_seconds: float = Field(2, gt=0, description="Seconds between two checks of the folder.")
    source: SourceSettings = branch()
    more: tuple[SourceSettings, ...] = Field(
        (), description="Further repositories: [[repository.more]] sections in the file, with the keys of `source`."
    )
    poll_seconds: float = Field(
        30, gt=0, description="Seconds between two checks of a repository that is not a folder."
    )
    timeout_seconds: float = Field(
        60, gt=0, description="Maximum seconds for one check of a repository or one download."
    )
    versions: int = Field(20, ge=1, le=10_000, description="Newest versions of each scraper to keep ready.")
    cache_mb: float = Field(2048, gt=0, description="Disk space for copies of scrapers.")
    default: str = Field("builtin/page", description="Scraper that runs when a call gives only a URL.")
    public_keys: tuple[str, ...] = Field(
        (), description="Ed25519 keys (base64). If any is set, every scraper from a repository must be signed."
    )
    hook_secret: SecretStr = Field(
        SecretStr(""), description="Secret shared with the Git host that calls /api/scrapers/refresh after a push."
    )
    secrets_file: Path | None = Field(None, description="TOML file with the secrets granted to each scraper.")
    uploads: Path | None = Field(
        None,
        description="Folder where projects uploaded through the API and the scrapyd door are stored and served from; "
        "several gateways and workers share it. Empty: uploads are refused.",
    )
    installed: bool = Field(True, description="Whether scrapers of installed Python packages are offered.")


class EnvironmentSettings(Section):
    """Python packages that scrapers require."""

    build_seconds: float = Field(
        300, gt=0, description="Maximum seconds to resolve and install one set of requirements."
    )
    max_mb: float = Field(1024, gt=0, description="Maximum size of one environment.")
    cache_mb: float = Field(
        10_240,
        gt=0,
        description="Maximum size of all environments, checked after each build; the least recently used is removed "
        "first, one used in the last minute never.",
    )
    builds: int = Field(1, ge=1, le=16, description="Environments built at once.")
    retry_seconds: float = Field(300, gt=0, description="Seconds before a failed build is tried again.")
    index_url: SecretStr = Field(SecretStr(""), description="Package index; empty: as uv is configured.")
    find_links: tuple[Path, ...] = Field((), description="Local folders with wheels, besides the index.")
    offline: bool = Field(False, description="Whether only find_links and uv's cache are used.")

    @field_validator("find_links")
    @classmethod
    def _are_folders(cls, places: tuple[Path, ...]) -> tuple[Path, ...]:
        """uv accepts no hashes from a page of links, and nothing is installed without hashes."""
        if any(":/" in str(place) for place in places):
            raise ValueError("write folders of this machine; for a server of packages, set environments.index_url")
        return places


_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_PREFIX = r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*"


class BlobSettings(Section):
    """Large results, artifacts, manifests and exports."""

    url: str = Field("", description="s3://bucket/prefix, also gs:// or az://; empty: a folder in the data directory.")
    endpoint: str = Field(
        "", description="Server other than Amazon's, Google's or Azure's, e.g. https://s3.example.com."
    )
    region: str = Field("", description="S3 region.")
    access_key: SecretStr = Field(
        SecretStr(""), description="S3 access key or Azure account; empty: the machine's own credentials."
    )
    secret_key: SecretStr = Field(
        SecretStr(""), description="S3 secret key, Azure account key, or Google service account key (JSON)."
    )
    encrypt: bool = Field(
        False,
        description="Whether new objects are encrypted, with the keys of `secrets`. Older ones stay as they are, and "
        "both are read. Lists of a bucket show sizes and names, and no content type.",
    )
    ca_file: Path | None = Field(
        None, description="PEM file of authorities trusted for the server, beside the machine's own."
    )

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        place = urlsplit(self.url)
        if self.url and (place.scheme not in SCHEMES or not re.fullmatch(_BUCKET, place.netloc) or place.query):
            raise ValueError("url: write s3://bucket or s3://bucket/prefix, or the same with gs:// or az://")
        if self.url and place.path.strip("/") and not re.fullmatch(_PREFIX, place.path.strip("/")):
            raise ValueError("url: the prefix may have letters, digits and . _ - between its slashes")
        if not self.url and (self.endpoint or self.access_key.get_secret_value()):
            raise ValueError("endpoint and keys are set, but url is not; write s3://bucket/prefix")
        if self.endpoint and urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise ValueError("endpoint: write a URL, e.g. https://s3.example.com")
        has_one, has_both = self.access_key.get_secret_value(), self.secret_key.get_secret_value()
        if place.scheme != "gs" and bool(has_one) != bool(has_both):
            raise ValueError("access_key and secret_key: set both, or neither")
        return self
