"""Asks models: the cache first, then within budgets, rates and concurrency, again where that may help."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from scrapeyard.engines.budget.meters import Meters
from scrapeyard.engines.budget.stage import Budgets
from scrapeyard.engines.cache.port import CachedPage, PageKey, PageStore
from scrapeyard.engines.models.local import LocalModel
from scrapeyard.engines.models.port import NO_MODEL, Completion, ModelAnswer, ModelClient, ModelFailed, Question
from scrapeyard.engines.models.remote import ChatModel, GeneratingModel
from scrapeyard.engines.port import Caller
from scrapeyard.errors import FetchFailed
from scrapeyard.settings import AiProvider, AiSettings
from scrapeyard.telemetry.events import get_log
from scrapeyard_sdk.extract.lenient_json import Budget, read_json

log = get_log("models")
_KINDS: dict[str, Callable[[AiProvider], ModelClient]] = {
    "openai": ChatModel,
    "huggingface": GeneratingModel,
    "local": LocalModel,
}
_BACKOFF = (0.5, 2.0, 5.0, 10.0)
_LONGEST_WAIT = 30.0
"""A server that asks for a longer pause is not waited for: the run is tried again later."""
_CHARACTERS = 3
"""Of a token, at least; pages have fewer per token than prose."""
_TASK_TOKENS = 700
"""For the task and the schema."""


class Models:
    """As `ModelEngine`."""

    def __init__(
        self,
        settings: AiSettings,
        budgets: Budgets,
        pages: PageStore,
        *,
        meters: Meters | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self._budgets = budgets
        self._pages = pages
        self._meters = meters
        self._sleep = sleep
        self._clock = clock
        self._models = [_Model(each, sleep) for each in settings.providers]

    async def stop(self) -> None:
        """Close connections and end processes. May be called twice."""
        for model in self._models:
            await model.client.stop()

    def room(self, provider: str = "", model: str = "") -> int:
        """As `ModelEngine`."""
        chosen = self._chosen(provider, model).provider
        return _CHARACTERS * max(256, chosen.context_tokens - chosen.answer_tokens - _TASK_TOKENS)

    async def ask(self, question: Question, caller: Caller) -> ModelAnswer:
        """As `ModelEngine`."""
        model = self._chosen(question.provider, question.model)
        key = _key(question, model.provider)
        if (kept := await self._kept(key, model.provider)) is not None:
            return kept
        answer = await self._answer(model, question, caller)
        if self.settings.cache_hours:
            now = self._clock()
            body = msgspec.json.encode(answer.value)
            expires = now + 3600 * self.settings.cache_hours
            await self._pages.put(key, CachedPage(status=200, body=body, fetched_at=now, expires_at=expires))
        return answer

    async def _kept(self, key: PageKey, provider: AiProvider) -> ModelAnswer | None:
        page = await self._pages.get(key) if self.settings.cache_hours else None
        return ModelAnswer(value=msgspec.json.decode(page.body), model=provider.model, cached=True) if page else None

    async def _answer(self, model: "_Model", question: Question, caller: Caller) -> ModelAnswer:
        provider = model.provider
        for number in range(provider.retries + 1):
            try:
                await self._check(caller)
                said = await model.complete(question)
                cost = await self._count(caller, provider, said)
                return ModelAnswer(
                    value=parsed(said.text, provider.name),
                    model=provider.model or provider.name,
                    input_tokens=said.input_tokens,
                    output_tokens=said.output_tokens,
                    cost=cost,
                )
            except ModelFailed as error:
                wait = _wait(error, number)
                if wait is None or number == provider.retries:
                    log.warning("models.failed", model=provider.name, kind=error.kind, error=error.message)
                    raise
                await self._sleep(wait)
        raise ModelFailed("unavailable", f"{provider.name} was not asked")

    async def _check(self, caller: Caller) -> None:
        try:
            await self._budgets.check_model(caller)
        except FetchFailed as error:
            raise ModelFailed("budget", error.message) from None
        tokens, cost = self.settings.client_daily_tokens, self.settings.client_daily_cost
        if self._meters is None or not (tokens or cost):
            return
        used, paid = await self._meters.models_today(caller.client)
        if (tokens and used >= tokens) or (cost and paid >= cost):
            limit = f"{tokens:,} tokens" if tokens and used >= tokens else f"{cost:g} in money"
            raise ModelFailed("budget", f"the client's {limit} for models are used up until tomorrow, in UTC")

    async def _count(self, caller: Caller, provider: AiProvider, said: Completion) -> float:
        cost = (said.input_tokens * provider.input_price + said.output_tokens * provider.output_price) / 1_000_000
        tokens = said.input_tokens + said.output_tokens
        caller.ledger.ai_calls += 1
        await self._budgets.count_model(caller, tokens, cost)
        if self._meters is not None:
            self._meters.count_model(caller, tokens, cost)
        return cost

    def _chosen(self, provider: str, model: str) -> "_Model":
        if provider == NO_MODEL or not self._models:
            words = "the call wants no model" if provider == NO_MODEL else "there is no model; set ai.providers"
            raise ModelFailed("no_model", words)
        for each in self._models:
            if provider in ("", each.provider.name) and model in ("", each.provider.model):
                return each
        known = ", ".join(f"{each.provider.name} ({each.provider.model})" for each in self._models)
        raise ModelFailed("no_model", f"no provider {provider or model!r}; there are: {known}")


class _Model:
    """One provider: its client, how many questions it takes at once, and how many in a second."""

    def __init__(self, provider: AiProvider, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.provider = provider
        self.client = _KINDS[provider.kind](provider)
        self._sleep = sleep
        self._free = asyncio.Semaphore(provider.concurrency)
        self._turn_at = 0.0

    async def complete(self, question: Question) -> Completion:
        """Raises ModelFailed."""
        async with self._free:
            if self.provider.rate:
                now = time.monotonic()
                turn, self._turn_at = max(now, self._turn_at), max(now, self._turn_at) + 1 / self.provider.rate
                await self._sleep(turn - now)
            return await self.client.complete(question)


def _wait(error: ModelFailed, number: int) -> float | None:
    """Seconds until it may be asked again; None if that is of no use."""
    if error.kind == "bad_answer":
        return 0.0
    if not error.may_pass or error.kind == "timeout":
        return None
    wait = error.retry_after if error.retry_after is not None else _BACKOFF[min(number, len(_BACKOFF) - 1)]
    return wait if wait <= _LONGEST_WAIT else None


def _key(question: Question, provider: AiProvider) -> PageKey:
    """Everything that decides the answer."""
    said = [provider.url, provider.model, str(provider.path), question.task, question.text, question.schema]
    digest = hashlib.sha256(msgspec.json.encode([*said, question.sample, provider.answer_tokens])).hexdigest()
    return PageKey(id=digest, url=digest, site=question.site)


def parsed(text: str, name: str) -> dict[str, Any]:
    """The JSON object in a model's words: all of them, in a code block, or among others. Raises ModelFailed."""
    start, end = text.find("{"), text.rfind("}")
    for candidate in (text, text[start : end + 1] if 0 <= start < end else ""):
        try:
            found = msgspec.json.decode(candidate)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    if start >= 0:
        for found in read_json(text[start:], Budget()):
            if isinstance(found, dict) and found:
                return found
    raise ModelFailed("bad_answer", f"{name}: the answer has no JSON object: {text[:200]!r}")
