"""Requests to Amazon DynamoDB, or to a server that speaks as it: connections, patience, errors."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, Final

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession, get_session
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, NoCredentialsError

from scrapeyard.errors import SettingsInvalid, StoreUnavailable, StoreUncertain, refuses_certificate
from scrapeyard.redis.outage import pauses
from scrapeyard.store.dynamo.table.schema import fault_of, table_request
from scrapeyard.store.dynamo.table.values import Item, from_wires
from scrapeyard.telemetry.metrics import Metrics

_BUSY: Final = (
    "ProvisionedThroughputExceeded",
    "Throttl",
    "RequestLimitExceeded",
    "LimitExceeded",
    "TransactionConflict",
    "TransactionInProgress",
    "InternalServerError",
    "ServiceUnavailable",
)
_UNSTORABLE: Final = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
"""Reasons of a cancelled transaction that stay however often it is sent."""
_READS: Final = ("get_item", "batch_get_item", "query")
_REFUSED: Final = "ConditionalCheckFailed"
_REMEDY: Final = "check DATABASE_URL, the table and the permissions"
CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
"""For a request with all its tries."""
_CREATE_SECONDS: Final = 300.0


@cache
def _session() -> AioSession:
    """One for the process: each has to load the descriptions of the service anew."""
    return get_session()


class WriteRefused(Exception):
    """A condition did not hold, and nothing was written. `items` has the present rows by the position of the write
    that was refused; None: there is no such row."""

    def __init__(self, items: Mapping[int, Item | None], tries: int, *, conflicts: bool = False) -> None:
        super().__init__(f"writes {list(items)} were refused")
        self.items = items
        self.conflicts = conflicts
        """Whether other writes of the transaction were in conflict: what their conditions would say is unknown."""
        self.tries = tries
        """After the first, an earlier one may have been done."""


class DynamoCalls:
    """One client for the process. A request that fails is sent again until the patience is over."""

    def __init__(self, options: dict[str, Any], table: str, *, metrics: Metrics | None = None) -> None:
        """`options` are those of botocore's `create_client`."""
        self.table = table
        self._options = options
        self._patience = ANSWER_SECONDS
        self._metrics = metrics or Metrics()
        self._stack = AsyncExitStack()
        self._client: Any = None

    async def start(self) -> None:
        """Connect, and create the table if it is missing. Does nothing if already started."""
        if self._client is None:
            await self._connect()
            try:
                await self._need_table()
            except BaseException:
                await self.stop()
                raise

    async def status(self) -> str:
        """How the table stands; empty if there is none. Connects for this alone."""
        await self._connect()
        try:
            table = await self._described()
        finally:
            await self.stop()
        return "" if table is None else str(table["TableStatus"])

    async def _connect(self) -> None:
        config = AioConfig(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=self._patience,
            retries={"total_max_attempts": 1},
            max_pool_connections=100,
            tcp_keepalive=True,
            user_agent="scrapeyard",  # botocore composes its own anew for each request: a tenth of its time
            parameter_validation=False,  # a third of a request's processor time; the server validates, too
        )
        making = _session().create_client("dynamodb", config=config, **self._options)
        self._client = await self._stack.enter_async_context(making)

    async def stop(self) -> None:
        """Close every connection. May be called twice."""
        client, self._client = self._client, None
        if client is not None:
            await self._stack.aclose()

    async def ask(self, operation: str, **given: Any) -> tuple[Any, int]:
        """The answer of one operation, such as `put_item`, and how many tries it took: after the first, an earlier one
        may have been done. Raises StoreUnavailable, or StoreUncertain if a write may have been done; WriteRefused if a
        condition did not hold, and ClientError if DynamoDB cannot store the data."""
        began, well = time.perf_counter(), True
        try:
            return await self._ask(operation, given)
        except StoreUnavailable:
            well = False
            raise
        finally:
            kind = "read" if operation in _READS else "write"
            self._metrics.stored(kind, time.perf_counter() - began, well=well)

    async def _ask(self, operation: str, given: Mapping[str, Any]) -> tuple[Any, int]:
        until, unclear = time.monotonic() + self._patience, 0
        for pause in pauses():
            if self._client is None:
                raise StoreUnavailable("the store is not started; start it before its first use")
            try:
                return await getattr(self._client, operation)(**given), unclear + 1
            except ClientError as error:
                last = error
                _raise_refused(error, unclear + 1)
                if _is_unstorable(error):
                    raise  # the data cannot be stored; another try would not change that
                if not _is_busy(error):
                    raise _translated(error, unclear=bool(unclear) and operation not in _READS) from error
                unclear += _status(error) >= 500
            except (BotoCoreError, OSError, TimeoutError) as error:
                last = error
                if isinstance(error, NoCredentialsError):
                    raise StoreUnavailable(f"DynamoDB needs credentials: {error}") from error
                unclear += not isinstance(error, EndpointConnectionError)
            if time.monotonic() + pause >= until:
                raise _translated(last, unclear=bool(unclear) and operation not in _READS) from last
            await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    async def _need_table(self) -> None:
        """Use the table that is there, or create it. Two processes may do so at once."""
        until = time.monotonic() + _CREATE_SECONDS
        for pause in pauses():
            state = await self._described()
            if state is None:
                await self._create()
            elif _is_ready(state):
                return
            if time.monotonic() >= until:
                raise StoreUnavailable(f"the table {self.table} is still {(state or {}).get('TableStatus')}; wait")
            await asyncio.sleep(pause)

    async def _described(self) -> dict[str, Any] | None:
        try:
            answer, _ = await self.ask("describe_table", TableName=self.table)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, ClientError) and _code(error.__cause__).startswith("ResourceNotFound"):
                return None
            raise
        found: dict[str, Any] = answer["Table"]
        if fault := fault_of(found):
            raise SettingsInvalid(f"database_url: the table {self.table} is not ours: {fault}; name another")
        return found

    async def _create(self) -> None:
        try:
            await self.ask("create_table", **table_request(self.table))
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, ClientError) or not _code(error.__cause__).startswith("ResourceInUse"):
                raise


def _is_ready(table: Mapping[str, Any]) -> bool:
    """Whether a table can be written and its indexes read: one that is still being filled cannot."""
    indexes = table.get("GlobalSecondaryIndexes", ())
    filling = any(index.get("IndexStatus") == "CREATING" or index.get("Backfilling") for index in indexes)
    return table["TableStatus"] in ("ACTIVE", "UPDATING") and not filling


def _raise_refused(error: ClientError, tries: int) -> None:
    """If conditions speak against it: whoever reads anew then sees what they saw."""
    response: Mapping[str, Any] = error.response
    if _code(error).startswith(_REFUSED):
        raise WriteRefused({0: _present(response)}, tries) from None
    reasons = response.get("CancellationReasons", ())
    if any(reason.get("Code") == _REFUSED for reason in reasons):
        items = {at: _present(reason) for at, reason in enumerate(reasons) if reason.get("Code") == _REFUSED}
        raise WriteRefused(items, tries, conflicts=any(map(_is_busy_code, _reasons(error)))) from None


def _present(told: Mapping[str, Any]) -> Item | None:
    return from_wires(told["Item"]) if told.get("Item") else None


def _is_busy(error: ClientError) -> bool:
    if _code(error) == "TransactionCanceledException":
        return all(code == "None" or _is_busy_code(code) for code in _reasons(error))
    return _status(error) >= 500 or _is_busy_code(_code(error))


def _is_busy_code(code: str) -> bool:
    return any(word in code for word in _BUSY)


def _is_unstorable(error: ClientError) -> bool:
    """Whether DynamoDB refuses the data themselves: too large, or of a type that it does not take."""
    return _code(error) == "ValidationException" or not _UNSTORABLE.isdisjoint(_reasons(error))


def _reasons(error: ClientError) -> list[str]:
    """Why a transaction was cancelled, by the position of its writes; empty for all other errors."""
    response: Mapping[str, Any] = error.response
    return [str(reason.get("Code")) for reason in response.get("CancellationReasons") or ()]


def _translated(error: BaseException, *, unclear: bool) -> StoreUnavailable:
    words = (str(error) or type(error).__name__)[:300]
    remedy = "trust its authority by AWS_CA_BUNDLE" if refuses_certificate(error) else _REMEDY
    kind = StoreUncertain if unclear else StoreUnavailable
    return kind(f"DynamoDB does not answer ({words}); {remedy}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
