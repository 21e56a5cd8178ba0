"""From a call to what is to be run: the version is chosen, inputs are checked, the lane is found."""

from msgspec import Raw

from scrapeyard.dispatch.deliveries import Order
from scrapeyard.errors import SourceUnavailable
from scrapeyard.gateway.runs.calls import Asked
from scrapeyard.gateway.runs.inputs import InputChecks
from scrapeyard.gateway.runs.lanes import Lanes
from scrapeyard.gateway.runs.policies import Policy, fetching_of
from scrapeyard.model import Priority, Scraper
from scrapeyard.repository.port import Catalogue


class Orders:
    """Takes calls apart. A refusal leaves nothing behind."""

    def __init__(self, catalogue: Catalogue, lanes: Lanes, default_scraper: str) -> None:
        self._catalogue = catalogue
        self._lanes = lanes
        self._default = default_scraper
        self._inputs = InputChecks()

    async def place(self, asked: Asked, reply_to: str) -> Order:
        """What the call wants run. Raises BadRequest, ScraperNotFound, ScraperInvalid or SourceUnavailable."""
        scraper = await self._find(asked.call.scraper or self._default)
        inputs = self._check(asked, scraper)
        lane = await self._lanes.choose(asked.call.lane, scraper)
        return self._order(asked, scraper, inputs, lane, reply_to)

    async def _find(self, wanted: str) -> Scraper:
        """From memory. Only the first call that pins an old version, which is not kept ready, waits for it to come."""
        try:
            return self._catalogue.resolve(wanted)
        except SourceUnavailable as error:
            if not error.details.get("obtainable"):
                raise
            return await self._catalogue.obtain(wanted)

    def _check(self, asked: Asked, scraper: Scraper) -> tuple[Raw, ...]:
        call = asked.call
        if call.urls is not None:
            return tuple(
                self._inputs.check(scraper, {**call.input, "url": url}, f"/urls/{index}")
                for index, url in enumerate(call.urls)
            )
        given = call.input if call.url is None else {**call.input, "url": call.url}
        return (self._inputs.check(scraper, given),)

    def _order(self, asked: Asked, scraper: Scraper, inputs: tuple[Raw, ...], lane: str, reply_to: str) -> Order:
        """The version is chosen here, once; workers run that one. A built-in is the worker's own, of its version."""
        call, defaults = asked.call, scraper.policy
        wanted = call.priority or (Priority(defaults.priority) if defaults.priority else None)
        timeout = call.policy.timeout_seconds
        return Order(
            scraper=(call.scraper or self._default) if scraper.is_builtin else str(scraper.ref),
            inputs=inputs,
            lane=lane,
            priority=wanted or (Priority.HIGH if asked.wait else Priority.NORMAL),
            max_attempts=1 + _retries(call.policy, scraper),
            timeout_seconds=defaults.timeout_seconds if timeout is None else timeout,
            reply_to=reply_to,
            traceparent=asked.traceparent,
            fetching=fetching_of(call.policy).over(defaults.fetching),
        )


def _retries(policy: Policy, scraper: Scraper) -> int:
    if "retries" in policy.model_fields_set or scraper.policy.retries is None:
        return policy.retries
    return scraper.policy.retries
