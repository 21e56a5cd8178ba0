"""Parameters that several routes take, bounded; and the gateway that serves them."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Header, Path, Query
from pydantic import AfterValidator, BeforeValidator
from starlette.requests import HTTPConnection

from scrapeyard.errors import BadRequest, NotFound
from scrapeyard.gateway.http.dialects import status_word
from scrapeyard.gateway.http.patterns import EXAMPLE_ID, EXAMPLE_JOB, EXPORT_ID, JOB_ID, RUN_ID, no_number
from scrapeyard.model import ExitReason
from scrapeyard.model.job import ITEM_KEY, ItemStatus

if TYPE_CHECKING:
    from scrapeyard.gateway.services import Gateway


async def _gateway(connection: HTTPConnection) -> "Gateway":
    """The gateway of the application: routes are built once and shared by all applications of a process."""
    gateway: Gateway = connection.app.state.gateway
    return gateway


GatewayDep = Annotated["Gateway", Depends(_gateway)]

LastEventId = Annotated[int | None, Header(ge=0, le=2**53, description="The last id that the caller had.")]
"""For event streams, which a reader takes up again after the last event that it had."""
_MOST_SHOWN = 200


def there(noun: str, pattern: str) -> AfterValidator:
    """An id in a path. A text that cannot be one is the id of nothing: 404, as for any other that is not there."""
    form = re.compile(pattern)

    def check(given: str) -> str:
        if not form.fullmatch(given):
            raise NotFound(f"no {noun} {given[:_MOST_SHOWN]}")
        return given

    return AfterValidator(check)


def shown(pattern: str) -> dict[str, Any]:
    """The pattern for the OpenAPI document."""
    return {"pattern": pattern}


RunPath = Annotated[
    str,
    Path(description="The run's id.", examples=[EXAMPLE_ID], json_schema_extra=shown(RUN_ID)),
    there("run", RUN_ID),
]
JobPath = Annotated[
    str,
    Path(description="The job's id.", examples=[EXAMPLE_JOB], json_schema_extra=shown(JOB_ID)),
    there("job", JOB_ID),
]
ExportPath = Annotated[
    str, Path(description="The export's id.", json_schema_extra=shown(EXPORT_ID)), there("export", EXPORT_ID)
]
Instant = Annotated[
    datetime | None, BeforeValidator(no_number), Query(description="ISO 8601; UTC when it names no zone.")
]


def seconds_of(given: datetime | None) -> float | None:
    """Unix seconds of an Instant. Raises BadRequest."""
    if given is None:
        return None
    try:
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError) as error:
        raise BadRequest(f"a time that cannot be used: {error}") from None


Wait = Annotated[float, Query(ge=0, le=3600, allow_inf_nan=False, description="Seconds to wait for the end.")]

ItemKey = Annotated[str, Path(pattern=ITEM_KEY, description="The item's id within the job.")]
Cursor = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_=.:-]{1,256}$", description="From the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many on one page.")]
ItemStatuses = Annotated[
    list[Annotated[ItemStatus, status_word(ItemStatus)]] | None,
    Query(max_length=6, description="Any of these; may be repeated."),
]
Reasons = Annotated[list[ExitReason] | None, Query(max_length=60, description="Any of these; may be repeated.")]
Sites = Annotated[
    list[Annotated[str, Query(pattern=r"^[^\s/\x00-\x1f]{1,253}$")]] | None,
    Query(max_length=50, description="Registrable domains, any of these; may be repeated."),
]
HttpStatuses = Annotated[
    list[Annotated[int, Query(ge=100, le=999)]] | None,
    Query(max_length=50, description="HTTP statuses of the last page, any of these; may be repeated."),
]
Keys = Annotated[
    list[Annotated[str, Query(pattern=ITEM_KEY)]] | None,
    Query(max_length=200, description="Items by their ids, any of these; may be repeated."),
]
