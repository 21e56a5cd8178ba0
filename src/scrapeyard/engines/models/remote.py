"""Models behind HTTP: servers with OpenAI's chat API, and Hugging Face's endpoints for text generation."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
from wreq import Client
from wreq.redirect import Policy
from wreq.wreq import Method

from scrapeyard.engines.http.body import read_wire
from scrapeyard.engines.http.failures import WREQ_ERRORS
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.models.port import Completion, ModelFailed, Question
from scrapeyard.errors import FetchFailed
from scrapeyard.settings import AiProvider

_MAX_ANSWER = 4 * 2**20
_CONNECT_SECONDS = 10.0
_LONGEST_WAIT = 120.0
_NO_ANSWER: tuple[type[Exception], ...] = (*WREQ_ERRORS, FetchFailed)
_SCHEMA_WORDS = (b"response_format", b"json_schema", b"guided", b"grammar")
"""What an error speaks of if the server cannot be held to a schema."""


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message = _Message()
    finish_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chat(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    usage: _Usage | None = None


class _Generated(msgspec.Struct, frozen=True):
    generated_text: str


class HttpModel:
    """Posts JSON to one address."""

    def __init__(self, provider: AiProvider) -> None:
        self.provider = provider
        self._client: Client | None = None

    async def stop(self) -> None:
        """Close connections. May be called twice."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    async def post(self, url: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Status and body of a good answer, or of a 400 or 422. Raises ModelFailed for any other."""
        door, name = parse_target(url), self.provider.name
        key = self.provider.key.get_secret_value()
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        try:
            async with asyncio.timeout(self.provider.seconds):
                response = await self._made().request(
                    Method.POST, door.url, headers=headers, body=msgspec.json.encode(body)
                )
                status = response.status.as_int()
                raw = await read_wire(door, status, response, _MAX_ANSWER)
        except TimeoutError:
            raise ModelFailed("timeout", f"{name} had no answer within {self.provider.seconds:g} s") from None
        except _NO_ANSWER as error:
            words = f"{name} does not answer ({type(error).__name__}); check ai.providers url"
            raise ModelFailed("unavailable", words) from None
        if status < 300 or status in (400, 422):
            return status, raw
        after = response.headers.get("retry-after")
        raise _refusal(name, status, raw, bytes(after) if after is not None else None)

    def _made(self) -> Client:
        if self._client is None:
            self._client = Client(
                redirect=Policy.none(), no_proxy=True, connect_timeout=timedelta(seconds=_CONNECT_SECONDS)
            )
        return self._client


def _refusal(name: str, status: int, raw: bytes, retry_after: bytes | None) -> ModelFailed:
    words = raw[:300].decode("utf-8", "replace")
    if status == 429:
        return ModelFailed("rate_limited", f"{name} answered 429: {words}", retry_after=_seconds(retry_after))
    if status in (408, 425) or status >= 500:
        after = _seconds(retry_after)
        return ModelFailed("unavailable", f"{name} answered {status}: {words}", retry_after=after)
    hint = "; check ai.providers key" if status in (401, 403) else "; check ai.providers url and model"
    return ModelFailed("not_configured", f"{name} answered {status}{hint}: {words}")


def _seconds(retry_after: bytes | None) -> float | None:
    try:
        return min(float(retry_after), _LONGEST_WAIT) if retry_after is not None else None
    except ValueError:
        return None


class ChatModel(HttpModel):
    """A server with OpenAI's chat API."""

    def __init__(self, provider: AiProvider) -> None:
        super().__init__(provider)
        self._schemas = provider.json_schema != "off"

    async def complete(self, question: Question) -> Completion:
        """As `ModelClient`. Without a schema once the server has refused one."""
        url = f"{self.provider.url.rstrip('/')}/chat/completions"
        schemas = self._schemas
        status, raw = await self.post(url, chat_body(self.provider, question, schemas))
        if status >= 300 and schemas and self.provider.json_schema == "auto" and _is_about_schemas(raw):
            self._schemas = False
            status, raw = await self.post(url, chat_body(self.provider, question, schemas=False))
        if status >= 300:
            raise _refusal(self.provider.name, status, raw, None)
        return chat_answer(self.provider.name, raw)


def _is_about_schemas(raw: bytes) -> bool:
    return any(word in raw for word in _SCHEMA_WORDS)


def chat_body(provider: AiProvider, question: Question, schemas: bool = True) -> dict[str, Any]:
    """A question as OpenAI's chat API has it."""
    body: dict[str, Any] = {
        "model": provider.model,
        "messages": [
            {"role": "system", "content": question.task if schemas else with_schema(question)},
            {"role": "user", "content": question.text},
        ],
        "max_tokens": provider.answer_tokens,
        "temperature": 0.7 if question.sample else 0,
    }
    if question.sample:
        body["seed"] = question.sample
    if schemas:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": question.schema, "strict": True},
        }
    return body


def with_schema(question: Question) -> str:
    """The task for a model that is only told the schema."""
    schema = msgspec.json.encode(question.schema).decode()
    return f"{question.task}\n\nAnswer with JSON alone, valid against this JSON schema:\n{schema}"


def chat_answer(name: str, raw: bytes) -> Completion:
    """What a chat answered. Raises ModelFailed (`refused`, `bad_answer`)."""
    try:
        chat = msgspec.json.decode(raw, type=_Chat)
        choice = chat.choices[0]
    except (msgspec.MsgspecError, IndexError):
        words = raw[:300].decode("utf-8", "replace")
        raise ModelFailed("bad_answer", f"{name}: the answer is not of OpenAI's chat API: {words}") from None
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise ModelFailed("refused", f"{name} refuses: {(choice.message.refusal or 'content filter')[:200]}")
    used = chat.usage or _Usage()
    return Completion(
        text=choice.message.content or "", input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens
    )


class GeneratingModel(HttpModel):
    """An endpoint of Hugging Face for text generation. It tells no tokens: four characters count as one."""

    async def complete(self, question: Question) -> Completion:
        """As `ModelClient`."""
        asked = f"{with_schema(question)}\n\n{question.text}\n\nJSON:"
        parameters: dict[str, Any] = {"max_new_tokens": self.provider.answer_tokens, "return_full_text": False}
        parameters |= {"do_sample": True, "seed": question.sample} if question.sample else {"do_sample": False}
        if self.provider.json_schema == "on":
            parameters["grammar"] = {"type": "json", "value": question.schema}
        status, raw = await self.post(self.provider.url, {"inputs": asked, "parameters": parameters})
        if status >= 300:
            raise _refusal(self.provider.name, status, raw, None)
        try:
            answers = msgspec.json.decode(raw, type=list[_Generated] | _Generated)
            answer = answers[0] if isinstance(answers, list) else answers
        except (msgspec.MsgspecError, IndexError):
            words = f"{self.provider.name}: the answer is not of an endpoint for text generation"
            raise ModelFailed("bad_answer", words) from None
        text = answer.generated_text
        return Completion(text=text, input_tokens=len(asked) // 4, output_tokens=len(text) // 4)
