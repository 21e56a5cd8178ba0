"""The extras of the package: what each is for, and whether this installation has it.

`pip install scrapeyard` installs what a laptop needs. An extra adds the packages of one feature.
"""

from importlib.util import find_spec
from shutil import which
from typing import Final

from msgspec import Struct


class Extra(Struct, frozen=True):
    """One extra of pyproject.toml."""

    module: str
    """Its module: the extra is installed if this module is."""
    purpose: str
    program: str = ""
    """A program on PATH that serves as well; empty: there is none."""


EXTRAS: Final = {
    "article": Extra("trafilatura", "the article of a page"),
    "browser": Extra("patchright", "pages in a browser"),
    "captcha": Extra("ddddocr", "pictures of captchas"),
    "documents": Extra("pypdfium2", "PDF, Word and Excel files"),
    "dynamodb": Extra("aiobotocore", "a store on Amazon DynamoDB"),
    "environments": Extra("uv", "packages that scrapers require", "uv"),
    "graphql": Extra("graphql", "queries in GraphQL"),
    "kafka": Extra("confluent_kafka", "a queue, events, items and results on Kafka"),
    "light": Extra("lightpanda", "pages in a light browser", "lightpanda"),
    "local-ai": Extra("xllamacpp", "models on this machine"),
    "masking": Extra("re2", "own patterns of personal data"),
    "mcp": Extra("mcp", "the Model Context Protocol"),
    "nats": Extra("nats", "a queue on NATS"),
    "oidc": Extra("jwt", "tokens of an identity provider"),
    "otlp": Extra("opentelemetry.proto", "traces as protobuf and over gRPC"),
    "parquet": Extra("pyarrow", "exports as Parquet"),
    "postgres": Extra("asyncpg", "a PostgreSQL database"),
    "redis": Extra("redis", "a queue on Redis"),
    "signing": Extra("cryptography", "signed scrapers"),
    "sqs": Extra("aiobotocore", "a queue on Amazon SQS"),
}


def is_installed(name: str) -> bool:
    """Whether this machine has what the extra brings. Imports nothing."""
    extra = EXTRAS[name]
    return find_spec(extra.module) is not None or bool(extra.program and which(extra.program))


def missing(name: str) -> str:
    """What to tell a user who asks for it, with the command that installs it; empty if it is installed."""
    if is_installed(name):
        return ""
    return f"the extra for {EXTRAS[name].purpose} is not installed; run: {install(name)}"


def install(*names: str) -> str:
    """The command that installs them."""
    return f"pip install 'scrapeyard[{','.join(names)}]'"
