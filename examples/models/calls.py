"""Requests: the models that the gateway checks bodies with. Every fault is told with its place."""

from typing import Any

from pydantic import BaseModel, ValidationError

from scrapeyard.gateway.jobs.calls import JobCall
from scrapeyard.gateway.runs.schemas import ScrapeCall

BODIES: tuple[tuple[type[BaseModel], dict[str, Any]], ...] = (
    (ScrapeCall, {"scraper": "shop/product@^1.4", "input": {"url": "https://shop.example/p/1"}, "wait": 10}),
    (ScrapeCall, {"scraper": "Shop Product", "wait": -1, "colour": "blue"}),
    (JobCall, {"scraper": "builtin/page", "items": ["https://shop.example/p/1"], "policy": {"rate": 5}}),
    (JobCall, {"scraper": "builtin/page", "items": [], "exports": [{"type": "full", "format": "pdf"}]}),
)


def check(model: type[BaseModel], body: dict[str, Any]) -> None:
    """Print the body as the gateway understands it, or what is wrong with it."""
    try:
        call = model.model_validate(body)
    except ValidationError as error:
        for fault in error.errors():
            print("wrong:", "/".join(map(str, fault["loc"])) or "(the whole)", "-", fault["msg"])
    else:
        print("good:", call.model_dump(exclude_unset=True, mode="json"))


for each in BODIES:
    check(*each)
