"""The one table and its indexes."""

from typing import Any, Final

LIST: Final = "list"
"""Index of rows in the order that a listing shows: `list_pk`, then `list_sk`, a text."""
DUE: Final = "due"
"""Index of rows that wait for a time: `due_pk`, then `due_at`, a number."""
ENDED: Final = "ended"
"""Index of rows that ended at a time: `ended_pk`, then `ended_at`, a number."""

PARTITION: Final = {"": "pk", LIST: "list_pk", DUE: "due_pk", ENDED: "ended_pk"}
SORT: Final = {"": "sk", LIST: "list_sk", DUE: "due_at", ENDED: "ended_at"}
_NUMBERS: Final = ("due_at", "ended_at")
SHOWN: Final = (
    "status",
    "owner",
    "scraper_id",
    "lane",
    "exit_reason",
    "created_at",
    "not_before",
    "sweep_at",
    "swept",
    "site",
    "subject",
    "host",
)
"""Attributes that every index shows, so that a query filters by them without reading the rows."""


def table_request(name: str) -> dict[str, Any]:
    """The arguments of CreateTable."""
    attributes = [*PARTITION.values(), *SORT.values()]
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": "N" if attribute in _NUMBERS else "S"}
            for attribute in attributes
        ],
        "KeySchema": _key(""),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index,
                "KeySchema": _key(index),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(SHOWN)},
            }
            for index in (LIST, DUE, ENDED)
        ],
    }


def fault_of(table: dict[str, Any]) -> str:
    """Why a table, as DescribeTable has it, cannot be used; empty if it can."""
    keys = {"": table["KeySchema"]}
    keys |= {index["IndexName"]: index["KeySchema"] for index in table.get("GlobalSecondaryIndexes", ())}
    for index in PARTITION:
        if keys.get(index) != _key(index):
            where = f"index {index}" if index else "key"
            return f"its {where} is not {PARTITION[index]}, {SORT[index]}"
    for index in table.get("GlobalSecondaryIndexes", ()):
        shows = index["Projection"]
        hidden = sorted(set(SHOWN) - set(shows.get("NonKeyAttributes", ())))
        if index["IndexName"] in PARTITION and shows["ProjectionType"] != "ALL" and hidden:
            return f"its index {index['IndexName']} does not show {hidden[0]}"
    return ""


def _key(index: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": PARTITION[index], "KeyType": "HASH"},
        {"AttributeName": SORT[index], "KeyType": "RANGE"},
    ]
