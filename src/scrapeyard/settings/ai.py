"""Settings of models: which there are, what they cost, and how far their answers are believed."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from scrapeyard.model.fetching import POOL
from scrapeyard.settings.section import Section


class AiProvider(Section):
    """One model; [[ai.providers]] in the file."""

    name: str = Field(..., pattern=POOL, description="How calls name it.")
    kind: Literal["openai", "huggingface", "local"] = Field(
        "openai",
        description="openai: any server with its chat API (OpenAI, Azure, vLLM, llama.cpp, Ollama); huggingface: an "
        "endpoint for text generation; local: a GGUF file, in a process of this worker.",
    )
    url: str = Field(
        "",
        description="Of openai: the base URL, e.g. https://api.openai.com/v1; of huggingface: the URL of the model.",
    )
    key: SecretStr = Field(SecretStr(""), description="Sent as a bearer token; empty: none.")
    model: str = Field("", max_length=200, description="Name of the model, as the server knows it.")
    path: Path | None = Field(None, description="Of local: the GGUF file.")
    json_schema: Literal["auto", "on", "off"] = Field(
        "auto", description="Whether the server can be held to a JSON schema; auto: until it refuses one."
    )
    context_tokens: int = Field(8192, ge=512, le=1_000_000, description="Tokens of one question and its answer.")
    answer_tokens: int = Field(1024, ge=16, le=100_000, description="Maximum tokens of an answer.")
    concurrency: int = Field(4, ge=1, le=1000, description="Questions at once of one worker; local: always 1.")
    rate: float = Field(0, ge=0, le=10_000, description="Questions a second of one worker; 0: no limit.")
    seconds: float = Field(60, gt=0, le=600, description="Maximum seconds for one answer.")
    retries: int = Field(
        2, ge=0, le=10, description="Further tries after a 408, 429, 5xx, a broken connection or a bad answer."
    )
    input_price: float = Field(0, ge=0, description="Price of a million tokens of questions, in your currency.")
    output_price: float = Field(0, ge=0, description="Price of a million tokens of answers.")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.kind == "local" and self.path is None:
            raise ValueError(f"{self.name}: a local model needs `path`, a GGUF file")
        if self.kind != "local" and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"{self.name}: `url` must begin with http:// or https://")
        if self.answer_tokens >= self.context_tokens:
            raise ValueError(f"{self.name}: `answer_tokens` must be less than `context_tokens`")
        return self


class AiSettings(Section):
    """Extraction to a schema: models, thresholds, learning."""

    providers: tuple[AiProvider, ...] = Field((), max_length=20, description="Models, the first is used by default.")
    sure: float = Field(
        0.85, ge=0, le=1, description="Confidence from which on a field needs no further step of the ladder."
    )
    least: float = Field(0.3, ge=0, le=1, description="Values below this confidence are left out of `data`.")
    invented: Literal["flag", "refuse"] = Field(
        "flag",
        description="A model's value that does not stand in the page: given with a low confidence, or left out.",
    )
    client_daily_tokens: int = Field(
        0, ge=0, description="Tokens that models may read and write for one client in a day, in UTC; 0: no limit."
    )
    client_daily_cost: float = Field(
        0, ge=0, description="What models may cost for one client in a day, in the currency of prices; 0: no limit."
    )
    learn: bool = Field(True, description="Whether patterns are learned from answered pages.")
    cache_hours: float = Field(168, ge=0, le=8760, description="Hours that a model's answers are kept; 0: never.")

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [each.name for each in self.providers]
        if len(set(names)) < len(names) or "none" in names:
            raise ValueError("providers: each needs a name of its own, and `none` stands for no model")
        return self
