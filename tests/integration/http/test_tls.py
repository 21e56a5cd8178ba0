"""Certificates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trustme

from scrapeyard.engines.http import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.model import ExitReason
from tests.integration.http.stand import reason_of
from tests.sites.site import Site


async def test_an_unknown_authority_is_refused(secure: tuple[Site, trustme.CA], fetch: Any) -> None:
    site, _ = secure
    assert await reason_of(fetch(site.url("/", "shop.test"))) is ExitReason.FETCH_TLS
    assert site.asked == []


async def test_a_certificate_holds_for_its_host_alone(
    secure: tuple[Site, trustme.CA], make_engine: Callable[..., WreqEngine], tmp_path: Path
) -> None:
    site, authority = secure
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    engine = make_engine(ca_bundle=tmp_path / "ca.pem")
    assert (await engine.fetch(FetchRequest(url=site.url("/", "shop.test")), Caller())).body == b"secure"
    other = engine.fetch(FetchRequest(url=site.url("/", "other.test")), Caller())
    assert await reason_of(other) is ExitReason.FETCH_TLS
