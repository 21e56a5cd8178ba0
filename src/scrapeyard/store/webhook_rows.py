"""A delivery of a webhook as a row, and back."""

from typing import Any, Final

from msgspec import json
from sqlalchemy import RowMapping

from scrapeyard.model.webhook import Attempt, DeliveryState, WebhookDelivery

_LOG: Final = json.Decoder(tuple[Attempt, ...])


def delivery_row(delivery: WebhookDelivery) -> dict[str, Any]:
    """All of it."""
    row = {name: getattr(delivery, name) for name in delivery.__struct_fields__}
    return row | {"state": delivery.state.value, "log": json.encode(delivery.log)}


def to_delivery(row: RowMapping) -> WebhookDelivery:
    """The delivery again; a row without its body has an empty one."""
    plain = {"body": b"", **row}
    return WebhookDelivery(**(plain | {"state": DeliveryState(row["state"]), "log": _LOG.decode(row["log"])}))
