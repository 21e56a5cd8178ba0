"""`/api/extract`: data of pages to a schema. `/api/patterns`: what was learned of sites, to read and to edit."""

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request
from msgspec import Meta, Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from scrapeyard.builtin import EXTRACT
from scrapeyard.builtin.extraction.book import checked_pattern
from scrapeyard.errors import BadRequest, NotFound, Refusal
from scrapeyard.gateway.audit.middleware import AuditDep
from scrapeyard.gateway.auth.authentication import IdentityDep
from scrapeyard.gateway.http.answers import AnswerRoute
from scrapeyard.gateway.http.openapi import HEADERS, LOCATION, Responses, bad_ends, parameter, refusals
from scrapeyard.gateway.http.parameters import GatewayDep
from scrapeyard.gateway.http.patterns import KEY_PATTERN, NEXT, Url
from scrapeyard.gateway.runs.calls import read_call
from scrapeyard.gateway.runs.documents import Handle, Handles, RunDocument, RunDocuments
from scrapeyard.gateway.runs.policies import Policy
from scrapeyard.gateway.runs.schemas import RunWebhookCall, ScrapeCall
from scrapeyard.model.instants import instant
from scrapeyard.store.ports.operations import PatternHealth, PatternStatus, StoredPattern
from scrapeyard_sdk.extract.patterns import PatternInvalid

_OWN = ("wait", "policy", "webhook", "urls", "ai")
PATTERN_ID = r"^pattern_[0-9a-f]{32}$"


class AiBudget(BaseModel):
    """What models may use up for one page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tokens: int | None = Field(None, ge=0, description="Tokens that are read and written.")
    cost: float | None = Field(None, ge=0, description="Money, in the currency of the operator's prices.")


class AiChoice(BaseModel):
    """Which model is asked, if one is needed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    provider: str = Field("", max_length=64, description="One of the operator's; `none`: no model is asked.")
    model: str = Field("", max_length=200, description="Name of a provider's model.")
    samples: int = Field(
        1, ge=1, le=5, description="How often it is asked; more make confidence better, and cost more."
    )
    budget: AiBudget = Field(AiBudget(), description="What models may use up for each page.")


class ExtractCall(BaseModel):
    """Data to extract. Give `url`, `urls` or `html`, and one of `fields`, `schema` and `prompt`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"url": "https://shop.example/p/1", "fields": "title, price: number, in_stock: bool"},
                {
                    "url": "https://shop.example/p/1",
                    "schema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
                },
            ]
        },
    )

    url: Url | None = Field(None, description="The page; with `html`, the address that it has.")
    urls: list[Url] | None = Field(None, min_length=1, max_length=100_000, description="One run for each.")
    html: str | None = Field(None, min_length=1, max_length=10_000_000, description="A page that you have.")
    fields: str | dict[str, Any] | None = Field(
        None,
        description="`title, price: number, in_stock: bool, subtitle?, images: url[]`, or a table of names and types.",
    )
    data_schema: dict[str, Any] | None = Field(
        None, alias="schema", description="A JSON schema that the data must fit, instead of `fields`."
    )
    prompt: str | None = Field(
        None, min_length=1, max_length=2000, description="What is wanted as a sentence, instead of `fields`."
    )
    examples: list[dict[str, Any]] | None = Field(
        None, max_length=5, description="Pages of the same kind, `url` or `html`, each with its `values`."
    )
    fallback: dict[str, Any] | None = Field(None, description="Selectors by field, for what nothing else finds.")
    engine: Literal["auto", "http", "browser", "light", "solver"] | None = Field(
        None, description="How the page is had. Default: `auto`."
    )
    ai: AiChoice = Field(AiChoice(), description="Which model is asked, and what it may use up.")
    sure: float | None = Field(None, ge=0, le=1, description="Confidence that is enough; default: the operator's.")
    least: float | None = Field(None, ge=0, le=1, description="Values below this confidence are left out of `data`.")
    invented: Literal["flag", "refuse"] | None = Field(
        None, description="A model's value that does not stand in the page: flagged, or left out."
    )
    learn: bool = Field(True, strict=True, description="Whether answers teach the site's pattern.")
    wait: float | None = Field(None, ge=0, description="Seconds to wait for the end; 0 answers at once with a handle.")
    policy: Policy = Field(Policy(), description="As of a scrape.")
    webhook: RunWebhookCall | None = Field(None, description="Who is told when a run ends.")

    @model_validator(mode="after")
    def _is_whole(self) -> "ExtractCall":
        if self.urls is not None and (self.url is not None or self.html is not None):
            raise ValueError("give urls, or one page: url or html")
        if self.url is None and self.urls is None and self.html is None:
            raise ValueError("give url, urls or html")
        if sum(each is not None for each in (self.fields, self.data_schema, self.prompt)) != 1:
            raise ValueError("give one of fields, schema and prompt")
        return self

    def scrape_call(self) -> ScrapeCall:
        """The call of `builtin/extract` that it stands for."""
        asked = self.model_dump(exclude=set(_OWN), exclude_none=True, by_alias=True)
        if "learn" not in self.model_fields_set:
            del asked["learn"]
        ai = self.ai.model_dump(exclude={"budget"}, exclude_unset=True)
        if ai:
            asked["ai"] = ai
        budget = self.ai.budget.model_dump(exclude_none=True)
        policy = self.policy.model_dump(exclude_unset=True)
        if budget:
            policy["budget"] = {**policy.get("budget", {}), **{f"ai_{name}": each for name, each in budget.items()}}
        call = {"scraper": EXTRACT, "input": asked, "wait": self.wait, "policy": policy, "webhook": self.webhook}
        return ScrapeCall.model_validate(call | ({"urls": self.urls} if self.urls is not None else {}))


router = APIRouter(tags=["extract"], route_class=AnswerRoute)
_RESPONSES: Responses = {
    200: {
        "model": RunDocument | RunDocuments,
        "description": "The run; `result.data` has the data.",
        "headers": HEADERS,
    },
    202: {"model": Handle | Handles, "description": "Goes on; it is durable.", "headers": HEADERS | LOCATION},
    **refusals(400, 404, 413, 415, 422, 429, 503),
    **bad_ends(),
}
_KEY = parameter(
    "Idempotency-Key", "header", "The same key and body run once.", {"type": "string", "pattern": KEY_PATTERN}
)


@router.post(
    "/api/extract",
    summary="Extract data to a schema",
    responses=_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ExtractCall"}}},
        },
        "parameters": [_KEY],
    },
)
async def extract(gateway: GatewayDep, request: Request) -> Response:
    """Calls `builtin/extract` and waits for its end, as `/api/scrape` does. It reads what the page states for machines,
    then the learned pattern of the site, then asks a model, then tries your selectors, and stops when every required
    field is sure enough. `result.data` has the values; `result.fields` has for each its confidence, the evidence in the
    page and how it was found. Answers of models teach the site's pattern, so that later pages need none."""
    settings = gateway.services.settings.gateway
    asked = await read_call(
        request, settings, lambda body: ExtractCall.model_validate(body).scrape_call(), gateway.trace_share
    )
    return await gateway.scraping.answer(asked, request.receive)


class PatternHealthDocument(Struct, frozen=True, kw_only=True):
    """How a pattern is doing, since its version."""

    pages: Annotated[int, Meta(description="Pages that it read.")]
    asked: Annotated[int, Meta(description="Those of them for which a model was asked as well.")]
    fill_rates: Annotated[dict[str, float], Meta(description="By field: the share of pages where it was found.")]
    used_at: Annotated[str | None, Meta(description="When it last read a page; null: never.")]


class PatternDocument(Struct, frozen=True, kw_only=True):
    """A learned pattern: how the fields of one kind of page are read."""

    id: str
    site: str
    client: Annotated[str, Meta(description="Whose pages taught it; others do not use it.")]
    fields: Annotated[list[str], Meta(description="Names of the wanted fields.")]
    status: Annotated[
        PatternStatus,
        Meta(description="`learning`: it needs more answered pages; `stale`: the site changed, it is learned anew."),
    ]
    version: Annotated[int, Meta(description="0: nothing is learned yet.")]
    examples: Annotated[int, Meta(description="Answered pages that it was learned from.")]
    health: Annotated[PatternHealthDocument, Meta(description="How it is doing.")]
    created_at: str
    changed_at: Annotated[str, Meta(description="When it was last learned or edited.")]


class PatternVersionDocument(Struct, frozen=True, kw_only=True):
    """One version of a pattern."""

    version: int
    origin: Annotated[Literal["learned", "edited"], Meta(description="Who made it.")]
    made_at: Annotated[str, Meta(description="When it was made.")]


class WholePatternDocument(PatternDocument, frozen=True, kw_only=True):
    """A learned pattern with its rules."""

    pattern: Annotated[dict[str, Any] | None, Meta(description="The rules, as JSON to edit; null: none yet.")]
    absent: Annotated[list[str], Meta(description="Fields that pages may be without.")]
    versions: Annotated[list[PatternVersionDocument], Meta(description="The last twenty, newest first.")]


class PatternPageDocument(Struct, frozen=True, kw_only=True):
    """One page of the listing."""

    patterns: Annotated[list[PatternDocument], Meta(description="Learned patterns.")]
    next_cursor: Annotated[str | None, NEXT]


class PatternCall(BaseModel):
    """A change of a pattern."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"status": "stale"}]},
    )

    pattern: dict[str, Any] | None = Field(
        None, description="New rules, whole, as `pattern` shows them; they become the next version."
    )
    status: Literal["ready", "stale"] | None = Field(
        None, description="`stale`: it is not used, and learned anew from the next answered pages."
    )


_Id = Annotated[str, Path(pattern=PATTERN_ID, description="A pattern's id, as the listing has it.")]
_Cursor = Annotated[str | None, Query(pattern=PATTERN_ID, description="From the page before.")]
_HERE = "/api/patterns/{pattern_id}"


@router.get("/api/patterns", summary="List learned patterns", responses=refusals(422, 503))
async def list_patterns(
    gateway: GatewayDep,
    identity: IdentityDep,
    site: Annotated[str | None, Query(max_length=253, description="Of this site alone.")] = None,
    cursor: _Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200, description="Patterns on one page.")] = 50,
) -> PatternPageDocument:
    """Each with its health, oldest first; a client's own. Follow `next_cursor` for more."""
    found = await gateway.services.store.patterns.listed(
        site=site, client=identity.only, after=cursor or "", limit=limit + 1
    )
    more = found[limit - 1].id if len(found) > limit else None
    shown = [PatternDocument(**_shown(each)) for each in found[:limit]]
    return PatternPageDocument(patterns=shown, next_cursor=more)


@router.get(_HERE, summary="A learned pattern", responses=refusals(404, 422, 503))
async def get_pattern(gateway: GatewayDep, identity: IdentityDep, pattern_id: _Id) -> WholePatternDocument:
    """With its rules, and the versions that it had."""
    return await _whole(gateway, await _owned(gateway, identity, pattern_id))


@router.put(_HERE, summary="Change a learned pattern", responses=refusals(400, 404, 409, 413, 422, 503))
async def put_pattern(
    gateway: GatewayDep, identity: IdentityDep, audit: AuditDep, pattern_id: _Id, call: PatternCall
) -> WholePatternDocument:
    """Write its rules as a person edited them, or have it learned anew. In force in every worker within five
    seconds."""
    before = await _owned(gateway, identity, pattern_id)
    after = replace(before, changed_at=gateway.services.clock(), status=call.status or before.status)
    if call.pattern is not None:
        rules = _checked(call.pattern, before)
        version, status = before.version + 1, call.status or "ready"
        after = replace(after, pattern=rules, version=version, status=status, health=PatternHealth(), edited=True)
    written = await gateway.services.store.patterns.put(after, "edited")
    if written is None:
        raise Refusal("changed_meanwhile", 409, "the pattern was changed meanwhile; read it again")
    audit.change(PatternDocument(**_shown(before)), PatternDocument(**_shown(written)))
    return await _whole(gateway, written)


@router.delete(_HERE, summary="Delete a learned pattern", status_code=204, responses=refusals(404, 413, 422, 503))
async def delete_pattern(gateway: GatewayDep, identity: IdentityDep, audit: AuditDep, pattern_id: _Id) -> Response:
    """With the pages that taught it. The site's pages teach a new one, if they are asked for again."""
    before = await _owned(gateway, identity, pattern_id)
    await gateway.services.store.patterns.remove(pattern_id)
    audit.change(PatternDocument(**_shown(before)))
    return Response(status_code=204)


async def _owned(gateway: GatewayDep, identity: IdentityDep, pattern_id: str) -> StoredPattern:
    found = await gateway.services.store.patterns.get(pattern_id)
    if found is None or not identity.may_see(found.client):
        raise NotFound(f"no pattern {pattern_id}")
    return found


def _checked(given: dict[str, Any], before: StoredPattern) -> str:
    try:
        return checked_pattern(msgspec.json.encode(given).decode(), before.fields)
    except PatternInvalid as error:
        raise BadRequest(f"pattern: {error}") from None


async def _whole(gateway: GatewayDep, pattern: StoredPattern) -> WholePatternDocument:
    versions = await gateway.services.store.patterns.versions(pattern.id)
    return WholePatternDocument(
        **_shown(pattern),
        pattern=msgspec.json.decode(pattern.pattern) if pattern.pattern else None,
        absent=list(pattern.absent),
        versions=[
            PatternVersionDocument(version=each.version, origin=each.origin, made_at=instant(each.made_at))  # type: ignore[arg-type]
            for each in versions
        ],
    )


def _shown(pattern: StoredPattern) -> dict[str, Any]:
    health = pattern.health
    rates = {name: round(health.filled.get(name, 0) / health.pages, 4) for name in pattern.fields if health.pages}
    return {
        "id": pattern.id,
        "site": pattern.site,
        "client": pattern.client,
        "fields": list(pattern.fields),
        "status": pattern.status,
        "version": pattern.version,
        "examples": pattern.taught,
        "health": PatternHealthDocument(
            pages=health.pages,
            asked=health.asked,
            fill_rates=rates,
            used_at=instant(health.used_at) if health.used_at else None,
        ),
        "created_at": instant(pattern.created_at),
        "changed_at": instant(pattern.changed_at),
    }
