"""What a script may return, and how it is written as JSON."""

import json
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
import pandas as pd
import pydantic
import pytest

from scrapeyard_sdk.child.encoding import to_json
from scrapeyard_sdk.child.explain import ResultInvalid


@dataclass
class Offer:
    price: Decimal
    seen: date


class Model(pydantic.BaseModel):
    name: str
    at: datetime


class Record(msgspec.Struct, rename={"kind": "type"}):
    kind: str
    tags: set[str]


class Color(Enum):
    RED = "red"


Point = namedtuple("Point", "x y")
_MOMENT = datetime(2024, 5, 1, 10, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (date(2024, 5, 1), "2024-05-01"),
        (_MOMENT, "2024-05-01T10:20:30+00:00"),
        (time(10, 20), "10:20:00"),
        (Decimal("12.90"), 12.9),
        (Decimal("100.00"), 100),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Color.RED, "red"),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({(1, 2), "a", 3}, [3, "a", [1, 2]]),
        (Point(1, 2), [1, 2]),
        (Offer(Decimal("1.5"), date(2024, 5, 1)), {"price": 1.5, "seen": "2024-05-01"}),
        (Model(name="a", at=_MOMENT), {"name": "a", "at": "2024-05-01T10:20:30+00:00"}),
        (Record("shoe", {"b", "a"}), {"type": "shoe", "tags": ["a", "b"]}),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.datetime64("2024-05-01T10:20:30", "ns"), "2024-05-01T10:20:30.000000000"),
        (pd.Timestamp("2024-05-01"), "2024-05-01T00:00:00"),
    ],
)
def test_values_of_python_are_written_as_json(value: Any, written: Any) -> None:
    assert json.loads(to_json({"deep": [value]})) == {"deep": [written]}
    assert json.loads(to_json({"deep": [value]}, nan="null")) == {"deep": [written]}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity"), np.float32("nan"), pd.NaT]
)
def test_nan_is_an_error_that_names_the_place_or_null(value: Any) -> None:
    with pytest.raises(ResultInvalid, match=r'at /rows/1/price: .*nan = "null"'):
        to_json({"rows": [{}, {"price": value}]})
    assert to_json({"rows": [{}, {"price": value}]}, nan="null") == b'{"rows":[{},{"price":null}]}'


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": [b"x"]}, "at /a/0: bytes; decode them to text, or save them with ctx.artifact"),
        ([{"a": object()}], "at /0/a: a value of type object"),
        (Offer(Decimal(1), 1j), "at /seen: a value of type complex"),  # type: ignore[arg-type]
        ({"a": np.timedelta64(1, "s")}, "at /a: a value of type timedelta64"),
    ],
)
def test_what_has_no_form_in_json_is_named(value: Any, why: str) -> None:
    for nan in ("error", "null"):
        with pytest.raises(ResultInvalid) as refused:
            to_json(value, nan=nan)
        assert why in str(refused.value)


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for nan in ("error", "null"):
        with pytest.raises(ResultInvalid):
            to_json(endless, nan=nan)
