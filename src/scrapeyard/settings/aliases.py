"""Names of other tools in the environment, and the keys that each stands for. Our own names win."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from scrapeyard.errors import SettingsInvalid

Key = tuple[str, ...]
Environ = Mapping[str, str]
_BLOBS = ("blobs",)
_SOURCE = ("repository", "source")
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class Alias(NamedTuple):
    """What one name stands for."""

    keys: tuple[Key, ...]
    """Keys that get the value; none if the name is only known, not used."""
    read: Callable[[str], Any] = str
    """From the text to the value of the keys."""
    blobs: Key | None = None
    """A further key, set when `S3_BUCKET` makes the bucket the place of results."""
    note: str = ""
    """What else to know of it."""


def _one(*key: str, read: Callable[[str], Any] = str, note: str = "") -> Alias:
    return Alias((key,), read, note=note)


def _both(name: str) -> Alias:
    return Alias(((*_SOURCE, name),), blobs=(*_BLOBS, name), note="The latter only with `S3_BUCKET`.")


def _language(text: str) -> str:
    """`ko` of `ko_KR.UTF-8`."""
    return re.split(r"[_.@-]", text.lower(), maxsplit=1)[0]


ALIASES: dict[str, Alias] = {
    "DATABASE_URL": _one("database_url"),
    "REDIS_URL": _one("redis_url", note="`host:port` stands for `redis://host:port`."),
    "LOG_LEVEL": _one("log", "level", read=str.lower),
    "OTEL_EXPORTER_OTLP_ENDPOINT": _one("telemetry", "otlp_endpoint"),
    "OTEL_EXPORTER_OTLP_HEADERS": _one("telemetry", "otlp_headers"),
    "OTEL_EXPORTER_OTLP_PROTOCOL": _one("telemetry", "otlp_protocol"),
    "OTEL_TRACES_SAMPLER_ARG": _one("telemetry", "trace_share"),
    "SCRAPEYARD_LANG": _one("log", "lang", read=_language),
    "SCRIPT_REPOSITORY_TYPE": _one(*_SOURCE, "type"),
    "SCRIPT_REPOSITORY_URL": _one(*_SOURCE, "url"),
    "S3_BUCKET_NAME": _one(*_SOURCE, "bucket", note="The bucket of scripts."),
    "S3_PREFIX": _one(*_SOURCE, "prefix"),
    "S3_REGION": _both("region"),
    "S3_ACCESS_KEY": _both("access_key"),
    "S3_SECRET_KEY": _both("secret_key"),
    "S3_ENDPOINT": _both("endpoint"),
    "S3_BUCKET": Alias((), "s3://{}".format, blobs=(*_BLOBS, "url"), note="The bucket of results, as `s3://…`."),
    "USE_LOCAL_STORAGE": Alias((), note="`true`: results stay in the data directory, whatever `S3_BUCKET` says."),
    "CORS_ORIGINS": _one("gateway", "cors_origins"),
    "FLARESOLVERR_URL": _one("escalation", "solver_url", note="With or without `/v1`."),
    "KAFKA_BROKERS": Alias((), note="Not used: the queue is Redis. A start says so."),
}
"""Each name, and the keys it stands for."""
NOT_USED = frozenset({"KAFKA_BROKERS"})
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The first that is set chooses the language, if no setting does."""


def values_of(environ: Environ, everywhere: Environ) -> Iterator[tuple[Key, Any]]:
    """Every key that these variables set. `everywhere` has those of weaker sources as well: a bucket in one and its
    credentials in another belong together."""
    in_bucket = bool(everywhere.get("S3_BUCKET")) and wants_local(everywhere) is not True
    for name, alias in ALIASES.items():
        text = environ.get(name)
        if text:
            for key in keys_of(alias, in_bucket):
                yield key, alias.read(text)


def keys_of(alias: Alias, in_bucket: bool) -> tuple[Key, ...]:
    """The keys that an alias sets, with or without a bucket for results."""
    return (*alias.keys, alias.blobs) if in_bucket and alias.blobs else alias.keys


def wants_local(environ: Environ) -> bool | None:
    """What USE_LOCAL_STORAGE says; None if it is not set. Raises SettingsInvalid."""
    text = environ.get("USE_LOCAL_STORAGE", "").lower()
    if text and text not in (*_YES, *_NO):
        raise SettingsInvalid("USE_LOCAL_STORAGE: write true or false")
    return text in _YES if text else None


def language(environ: Environ) -> str | None:
    """The language of the locale, if we speak it."""
    chosen = next((environ[name] for name in LOCALE if environ.get(name)), "")
    return "ko" if _language(chosen) == "ko" else None


def names_of(key: str, environ: Environ) -> list[str]:
    """Names of other tools that set this key, given these variables."""
    path = tuple(key.split("."))
    in_bucket = bool(environ.get("S3_BUCKET")) and wants_local(environ) is not True
    return [name for name, alias in ALIASES.items() if path in keys_of(alias, in_bucket)]
