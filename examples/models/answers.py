"""Responses: a run as a typed document, and its result as a model of one's own. `PROGRAM [ANSWER.json]`."""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, ValidationError

T = TypeVar("T")
SAVED = Path(__file__).with_name("answer.json")


class Run(BaseModel, Generic[T]):
    """The fields of a run that this program needs. Servers may add fields, so unknown ones are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str = Field(pattern=r"^run_[0-9a-f]+$")
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    scraper: str
    exit_reason: str | None
    attempt: int = Field(ge=1)
    result: T | None = None


class Product(BaseModel):
    """What `shop/product` returns. Prices are decimals: floats would round them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    url: HttpUrl
    sku: str = Field(pattern=r"^[A-Z]{3}-\d{4}$")
    title: str = Field(min_length=1)
    price: Decimal = Field(gt=0)
    currency: str = Field(min_length=3, max_length=3)


answer = Path(sys.argv[1] if len(sys.argv) > 1 else SAVED).read_bytes()
run = Run[Product].model_validate_json(answer)
assert run.result is not None  # noqa: S101 - it succeeded
print(run.status, run.result.sku, run.result.price, run.result.currency)

try:
    Run[Product].model_validate_json(answer.replace(b'"LIG-0001"', b'""'))
except ValidationError as error:
    print("wrong:", [("/".join(map(str, fault["loc"])), fault["type"]) for fault in error.errors()])
