"""Certificates."""

import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.errors import SettingsInvalid
from scrapeyard.model import ExitReason
from tests.integration.http.stand import failure_of, reason_of
from tests.sites.site import Site, page


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


async def test_a_bundle_of_several_authorities(
    secure: tuple[Site, trustme.CA], make_engine: Callable[..., WreqEngine], tmp_path: Path
) -> None:
    site, authority = secure
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(trustme.CA().cert_pem.bytes() + b"# ours\n" + authority.cert_pem.bytes())
    answer = await make_engine(ca_bundle=bundle).fetch(FetchRequest(url=site.url("/", "shop.test")), Caller())
    assert answer.body == b"secure"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_a_site_that_knows_only_old_tls_is_told_from_one_that_is_down(fetch: Any) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("shop.test").configure_cert(context)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    async with Site(tls=context) as site:
        failure = await failure_of(fetch(site.url("/", "shop.test")))
    assert "TLS" in failure.message
    assert "before 1.2" in failure.message


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"\xff\xfe"])
def test_a_bundle_that_is_none(make_engine: Callable[..., WreqEngine], tmp_path: Path, content: bytes | None) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_bytes(content)
    with pytest.raises(SettingsInvalid, match=r"http\.ca_bundle"):
        make_engine(ca_bundle=bundle)


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[tuple[Site, Path, trustme.CA]]:
    """A site that wants to see a certificate of its own authority."""
    ours, theirs = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ours.issue_cert("shop.test").configure_cert(context)
    theirs.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    bundle = tmp_path / "ca.pem"
    ours.cert_pem.write_to_path(str(bundle))
    async with Site(tls=context) as site:
        site.routes["/"] = page(b"welcome")
        yield site, bundle, theirs


def pem_of(authority: trustme.CA) -> str:
    issued = authority.issue_cert("me.test")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (pkcs8 + b"".join(blob.bytes() for blob in issued.cert_chain_pems)).decode()


async def test_a_client_certificate_where_the_operator_allows_it(
    guarded: tuple[Site, Path, trustme.CA], make_engine: Callable[..., WreqEngine]
) -> None:
    site, bundle, theirs = guarded
    engine = make_engine(ca_bundle=bundle, client_certificates=True)
    url = site.url("/", "shop.test")
    shown = await engine.fetch(FetchRequest(url=url, certificate=pem_of(theirs)), Caller())
    assert shown.body == b"welcome"
    for certificate, reasons in (
        ("", {ExitReason.FETCH_TLS, ExitReason.FETCH_PROTOCOL}),
        (pem_of(trustme.CA()), {ExitReason.FETCH_TLS, ExitReason.FETCH_PROTOCOL}),
        ("nonsense", {ExitReason.FETCH_NOT_ALLOWED}),
    ):
        assert await reason_of(engine.fetch(FetchRequest(url=url, certificate=certificate), Caller())) in reasons


async def test_client_certificates_are_off_by_default(
    guarded: tuple[Site, Path, trustme.CA], make_engine: Callable[..., WreqEngine]
) -> None:
    site, bundle, theirs = guarded
    request = FetchRequest(url=site.url("/", "shop.test"), certificate=pem_of(theirs))
    assert await reason_of(make_engine(ca_bundle=bundle).fetch(request, Caller())) is ExitReason.FETCH_NOT_ALLOWED
    assert site.asked == []
