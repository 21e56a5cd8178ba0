"""What a reader of documents returns, and how it refuses one."""

from typing import Any

from msgspec import Struct


class Document(Struct, kw_only=True):
    """What was read of a document. Empty and None: it has nothing of the sort."""

    title: str | None = None
    text: str = ""
    markdown: str = ""
    html: str = ""
    """Of documents that are read by way of HTML."""
    links: list[str] = []
    tables: list[dict[str, Any]] = []
    data: Any = None
    metadata: dict[str, Any] = {}
    warnings: list[str] = []


class DocumentRefused(Exception):
    """Why a document is not read, in words for the warning."""


def needs(module: str) -> DocumentRefused:
    """The refusal of a kind whose library is not installed."""
    return DocumentRefused(f"{module} is not installed; run: pip install 'scrapeyard[documents]'")
