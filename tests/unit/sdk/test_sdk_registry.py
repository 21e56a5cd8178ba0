"""The decorator of scrapers in packages, and the SDK's public names."""

from importlib.resources import files
from typing import Any

import pytest

import scrapeyard_sdk
from scrapeyard_sdk import scraper
from scrapeyard_sdk.registry import ATTRIBUTE


def test_public_names_are_sorted_and_there() -> None:
    assert scrapeyard_sdk.__all__ == sorted(scrapeyard_sdk.__all__)
    assert files(scrapeyard_sdk).joinpath("py.typed").is_file(), "type checkers read the hints only then"
    for name in scrapeyard_sdk.__all__:
        assert getattr(scrapeyard_sdk, name).__doc__, name


def told(function: Any) -> dict[str, Any]:
    kept: dict[str, Any] = getattr(function, ATTRIBUTE)
    return kept


async def product(ctx: object, url: str) -> dict[str, str]:
    """Title of one
    product.

    More of it.
    """
    return {"url": url}


async def test_the_function_stays_what_it_was() -> None:
    decorated = scraper("shop/product", version="1.0.0")(product)
    assert decorated is product
    assert await decorated(None, "x") == {"url": "x"}


def test_what_it_was_told_is_kept_as_plain_values() -> None:
    hosts, limits = ("shop.example",), {"wall_seconds": 3}
    kept = told(scraper("shop/product", version="1.0.0", allowed_hosts=hosts, limits=limits)(product))
    limits["wall_seconds"] = 4
    assert kept["allowed_hosts"] == ["shop.example"]
    assert kept["limits"] == {"wall_seconds": 3}
    assert kept["description"] == "Title of one product."
    assert "config" not in kept


def test_one_call_may_decorate_several_versions_of_a_function() -> None:
    make = scraper("shop/product", version="1.0.0", description="Told.")

    def first(ctx: object) -> None:
        """Not this."""

    def second(ctx: object) -> None: ...

    assert told(make(first)) == told(make(second))
    assert told(first)["description"] == "Told."
    assert told(first) is not told(second)


def test_id_and_version_must_be_told() -> None:
    with pytest.raises(TypeError):
        scraper("shop/product")  # type: ignore[call-arg]
