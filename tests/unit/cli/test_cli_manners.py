"""How polite a job is: what its document tells, and the line that commands print."""

from typing import Any

import msgspec
import pytest

from scrapeyard.cli.common.manners import tell_manners
from scrapeyard.engines.politeness.policies import FixedPolicies
from scrapeyard.gateway.jobs.policies import manners_of
from scrapeyard.model import Defaults, FetchPolicy, Scraper, ScraperRef
from scrapeyard.model.job import JobPolicy
from scrapeyard.settings import SiteSettings

OPEN, OBEY, IGNORE = FetchPolicy(), FetchPolicy(robots="obey"), FetchPolicy(robots="ignore")
PUBLIC, PRIVATE = "https://shop.example/", "http://127.0.0.1:8800/"


def document(policy: JobPolicy, manifest: FetchPolicy = OPEN, **sites: Any) -> dict[str, Any]:
    scraper = Scraper(
        ref=ScraperRef(id="shop/product", version="1.0.0"), folder=None, policy=Defaults(fetching=manifest)
    )
    return {"manners": msgspec.to_builtins(manners_of(policy, scraper, FixedPolicies(SiteSettings(**sites))))}


@pytest.mark.parametrize(
    ("job", "url", "words"),
    [
        (
            document(JobPolicy()),
            None,
            "Obeys robots.txt of public hosts and sends at most 2 requests a second to a site",
        ),
        (document(JobPolicy()), PUBLIC, "Obeys robots.txt and sends at most 2 requests a second to a site"),
        (document(JobPolicy()), PRIVATE, "Ignores robots.txt and has no limit of its rate"),
        (document(JobPolicy(fetching=OBEY)), PRIVATE, "Obeys robots.txt and has no limit of its rate"),
        (document(JobPolicy(rate=5)), PRIVATE, "Ignores robots.txt and starts at most 5 pages a second"),
        (document(JobPolicy(rate=100_000)), PUBLIC, "Obeys robots.txt and has no limit of its rate"),
        (document(JobPolicy(), IGNORE), PUBLIC, "Ignores robots.txt and sends at most 2 requests a second to a site"),
        (document(JobPolicy(fetching=OBEY), IGNORE, job_rate=0), None, "Obeys robots.txt and has no limit of its rate"),
        (
            document(JobPolicy(), robots="obey", rate=7),
            None,
            "Obeys robots.txt and sends at most 7 requests a second to a site",
        ),
        (
            document(JobPolicy(), job_robots="ignore"),
            PUBLIC,
            "Ignores robots.txt and sends at most 2 requests a second",
        ),
    ],
)
def test_a_line_tells_what_holds(
    job: dict[str, Any], url: str | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_manners(job, "--rate changes that", url)
    told = capsys.readouterr().err
    assert told.startswith(f"scrapeyard: {words}")
    assert told.endswith("; --rate changes that\n")


@pytest.mark.parametrize("job", [{}, {"manners": None}])
def test_a_server_that_does_not_tell_is_not_spoken_for(job: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    tell_manners(job, "--rate changes that")
    assert capsys.readouterr().err == ""
