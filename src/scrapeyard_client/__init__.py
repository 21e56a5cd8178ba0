"""A client of a Scrapeyard server, for programs: `Client`, and `AsyncClient` with the same methods.

    from scrapeyard_client import Client

    with Client("http://127.0.0.1:8000") as client:
        run = client.scrape("https://shop.example/")
        print(run.result["title"])

It needs httpx and imports nothing of the server.
"""

from scrapeyard_client.aio import AsyncClient, AsyncJob
from scrapeyard_client.documents import Event, Export, Item, Run
from scrapeyard_client.errors import (
    ApiError,
    ClientError,
    FileFailed,
    NoAnswer,
    PandasMissing,
    RunFailed,
    WaitTimeout,
)
from scrapeyard_client.steps import Retries
from scrapeyard_client.sync import Client, Job

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncJob",
    "Client",
    "ClientError",
    "Event",
    "Export",
    "FileFailed",
    "Item",
    "Job",
    "NoAnswer",
    "PandasMissing",
    "Retries",
    "Run",
    "RunFailed",
    "WaitTimeout",
]
