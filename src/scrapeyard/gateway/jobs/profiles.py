"""What a call for a job leaves open: defaults of its profile, and what its exports need of each item."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from scrapeyard.builtin import PAGE
from scrapeyard.builtin.pages.port import DEFAULT
from scrapeyard.errors import BadRequest
from scrapeyard.gateway.jobs.calls import ExportCall, Follow, JobCall, JobOptions, SitemapChoice
from scrapeyard.gateway.jobs.policies import JobPolicyCall
from scrapeyard.inputs.source import Shape, Source
from scrapeyard.model import Scraper
from scrapeyard.model.export import ITEMS_SINK
from scrapeyard.model.webhook import ITEM_ENDED, Webhook
from scrapeyard.results.exports.columns import PARTS_OF
from scrapeyard.settings import SinkSettings


class JobProfile(Struct, frozen=True, kw_only=True):
    """Defaults of one kind of job, in the words of a call."""

    policy: dict[str, Any]
    """Laid under the call's `policy`, also within `budget` and the like."""
    exports: tuple[ExportCall, ...] = ()
    """The files of a call without `exports`."""
    limit: int | None = None
    """Maximum URLs of a sitemap, or found by following links."""


PROFILES: Final = {
    "site": JobProfile(
        policy={
            "concurrency": 2,
            "allow_residential": False,
            "budget": {"megabytes": 100, "residential_megabytes": 50},
            "max_seconds": 7200,
        },
        exports=(
            ExportCall(type="full", format="csv"),
            ExportCall(type="seo", format="csv"),
            ExportCall(type="diff", format="csv", skip_first=True),
        ),
        limit=10_000,
    )
}
Options = TypeVar("Options", bound=JobOptions)


def with_profile(options: Options) -> Options:
    """The options of a call, with what they leave open taken from their profile, if they name one. A field that is
    given counts, even as null."""
    if options.profile is None:
        return options
    profile = PROFILES[options.profile]
    policy = _over(options.policy.model_dump(exclude_unset=True), profile.policy)
    filled: dict[str, Any] = {"policy": JobPolicyCall.model_validate(policy)}
    if "exports" not in options.model_fields_set:
        filled["exports"] = list(profile.exports)
    if isinstance(options, JobCall):
        filled |= _limits(options, profile)
    return options.model_copy(update=filled)


def _limits(call: JobCall, profile: JobProfile) -> dict[str, SitemapChoice | Follow]:
    sources = (("sitemap", call.sitemap, call.sitemap_url), ("follow", call.follow, call.start_url))
    return {
        name: choice.model_copy(update={"limit": profile.limit})
        for name, choice, source in sources
        if source is not None and "limit" not in choice.model_fields_set and profile.limit is not None
    }


def _over(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **given}
    for name, default in defaults.items():
        if isinstance(default, dict) and isinstance(given.get(name), dict):
            merged[name] = _over(given[name], default)
    return merged


def sinks_of(options: JobOptions, known: SinkSettings, webhook: Webhook | None) -> tuple[str, ...]:
    """The sinks of a job. Raises BadRequest for one that the operator did not define."""
    for name in options.sinks or ():
        if known.target(name) is None:
            raise BadRequest(f"sinks: there is no sink {name}; GET /api/sinks lists those that there are")
    chosen = known.default if options.sinks is None else tuple(dict.fromkeys(options.sinks))
    return (*chosen, ITEMS_SINK) if webhook is not None and ITEM_ENDED in webhook.events else chosen


AnySource = TypeVar("AnySource", bound=Source)


def extracting(source: AnySource, scraper: Scraper, types: Iterable[str]) -> AnySource:
    """The source, with every item asking `builtin/page` for what these exports show. A call that gives `include` itself
    decides; other scrapers return what they return."""
    return msgspec.structs.replace(source, shape=with_parts(source.shape, scraper, types))


def with_parts(shape: Shape, scraper: Scraper, types: Iterable[str]) -> Shape:
    """The same for a shape."""
    more = [part for kind in types for part in PARTS_OF.get(kind, ()) if part not in DEFAULT]
    if scraper.ref.id != PAGE or not more or not shape.input.keys().isdisjoint(("formats", "include")):
        return shape
    return msgspec.structs.replace(shape, input={**shape.input, "include": [*DEFAULT, *dict.fromkeys(more)]})


def export_types(options: JobOptions) -> list[str]:
    """The kinds of exports that a job is made for; snapshots are for diffs."""
    diffs = ["diff"] if options.policy.snapshots is not None else []
    return [export.type for export in options.exports] + diffs
