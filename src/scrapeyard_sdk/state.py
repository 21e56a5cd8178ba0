"""`ctx.state`: small values that a scraper keeps between its runs.

All versions of a scraper share them, and all its runs at once: use `update` where two runs may change the same key. A
value is anything that JSON has, at most 64 KB; a scraper has at most 1,000 keys.
"""

import json
import re
from typing import Any

from scrapeyard_sdk.channel import Answer, Channel
from scrapeyard_sdk.outcomes import StateError

MAX_VALUE = 64 * 1024
"""Maximum bytes of a value as JSON."""
STATE_KEY = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$"
_KEY = re.compile(STATE_KEY)

Request = tuple[dict[str, Any], bytes]


class AsyncState:
    """For `async def` scripts: every call is awaited. Each raises StateError if the platform refuses it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def get(self, key: str, default: Any = None) -> Any:
        """The value of a key; `default` if there is none."""
        return _value(await self._channel.request(*_request("get", key)), default)

    async def set(self, key: str, value: Any) -> None:
        """Keep a value, whatever was there before."""
        _checked(await self._channel.request(*_request("set", key, value)))

    async def delete(self, key: str) -> bool:
        """Forget a key. False if there was none."""
        return _done(await self._channel.request(*_request("delete", key)))

    async def update(self, key: str, old: Any, new: Any) -> bool:
        """Keep `new` if the value is still `old`; None stands for no value. False, and nothing is changed, if another
        run changed it meanwhile: read it again."""
        return _done(await self._channel.request(*_request("update", key, [old, new])))


class SyncState:
    """For plain `def` scripts: every call blocks. Otherwise as `AsyncState`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key; `default` if there is none."""
        return _value(self._ask(_request("get", key)), default)

    def set(self, key: str, value: Any) -> None:
        """Keep a value, whatever was there before."""
        _checked(self._ask(_request("set", key, value)))

    def delete(self, key: str) -> bool:
        """Forget a key. False if there was none."""
        return _done(self._ask(_request("delete", key)))

    def update(self, key: str, old: Any, new: Any) -> bool:
        """As `AsyncState.update`."""
        return _done(self._ask(_request("update", key, [old, new])))

    def _ask(self, request: Request) -> Answer:
        return self._channel.wait_for(self._channel.ask(*request))


def _request(action: str, key: str, value: Any = None) -> Request:
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise StateError(f"{str(key)[:60]!r} is no key: 1 to 128 letters, digits and . _ ~ - are taken")
    head = {"t": "state", "action": action, "key": key}
    if action not in ("set", "update"):
        return head, b""
    try:
        raw = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"the value of {key!r} is not JSON: {error}") from None
    if len(raw) > (2 if action == "update" else 1) * MAX_VALUE:
        raise StateError(f"the value of {key!r} has {len(raw)} bytes and may have {MAX_VALUE}")
    return head, raw


def _checked(answer: Answer) -> Answer:
    if answer[0]["t"] != "state":
        raise StateError(answer[0].get("message", "the state cannot be reached"))
    return answer


def _value(answer: Answer, default: Any) -> Any:
    head, raw = _checked(answer)
    return json.loads(raw) if head["done"] else default


def _done(answer: Answer) -> bool:
    return bool(_checked(answer)[0]["done"])
