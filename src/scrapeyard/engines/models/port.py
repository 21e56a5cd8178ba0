"""Models: they get a text and answer in JSON. They have no tools and no memory; what they say is checked by others."""

from typing import Any, Literal, Protocol

from msgspec import Struct

from scrapeyard.engines.port import Caller
from scrapeyard.errors import ScrapeyardError
from scrapeyard.model import ExitReason

FailureKind = Literal[
    "no_model", "not_configured", "budget", "unavailable", "rate_limited", "timeout", "refused", "bad_answer"
]
_MAY_PASS: frozenset[FailureKind] = frozenset({"unavailable", "rate_limited", "timeout"})
NO_MODEL = "none"
"""As the name of a provider: no model is asked."""


class ModelFailed(ScrapeyardError):
    """The model gave no answer that can be used. The message says why and what to do."""

    code = "model_failed"

    def __init__(self, kind: FailureKind, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retry_after = retry_after

    @property
    def may_pass(self) -> bool:
        """Whether the same question may be answered later."""
        return self.kind in _MAY_PASS

    @property
    def reason(self) -> ExitReason:
        """How a run ends that cannot do without the answer."""
        if self.kind == "no_model":
            return ExitReason.BAD_INPUT
        return ExitReason.AI_UNAVAILABLE if self.may_pass else ExitReason.BAD_RESULT


class Question(Struct, frozen=True, kw_only=True):
    """What a model is asked."""

    task: str
    """What to do. Never has text of a page in it."""
    text: str
    """The data to do it with."""
    schema: dict[str, Any]
    """JSON schema of the answer, an object."""
    provider: str = ""
    """Name of a provider; empty: the first that has `model`."""
    model: str = ""
    """Name of a model; empty: that of the provider."""
    site: str = ""
    """The answer is removed from the cache together with this site's pages."""
    sample: int = 0
    """Above 0: another answer to the same question, by chance."""


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """What it answered, and what that took."""

    value: dict[str, Any]
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """In the currency of the provider's prices."""
    cached: bool = False


class Completion(Struct, frozen=True, kw_only=True):
    """The words of a model."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


class ModelClient(Protocol):
    """One model, wherever it runs."""

    async def stop(self) -> None:
        """Close connections, end processes. May be called twice."""

    async def complete(self, question: Question) -> Completion:
        """Ask once. Raises ModelFailed."""


class ModelEngine(Protocol):
    """Asks models on behalf of runs, within their budgets."""

    def room(self, provider: str, model: str) -> int:
        """Characters of text that a question may have. Raises ModelFailed (`no_model`)."""

    async def ask(self, question: Question, caller: Caller) -> ModelAnswer:
        """From the cache, or from the model. Counts tokens and money in the caller's books. Raises ModelFailed."""
