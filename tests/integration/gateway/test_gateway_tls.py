"""TLS of the gateway itself, with an authority made for the test; a new certificate needs no restart."""

import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from pydantic import ValidationError

from scrapeyard.errors import SettingsInvalid
from scrapeyard.gateway.server import GatewayServer
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import open_services
from tests.leaks import PATIENCE


def write(folder: Path, authority: trustme.CA) -> bytes:
    """A new certificate in the files of the gateway; returns it as the client sees it."""
    leaf = authority.issue_cert("127.0.0.1")
    leaf.private_key_pem.write_to_path(str(folder / "key.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


def settings(folder: Path) -> Settings:
    return Settings(gateway=GatewaySettings(port=0, tls_cert_file=folder / "cert.pem", tls_key_file=folder / "key.pem"))


async def shown(url: str, authority: trustme.CA) -> bytes | None:
    """The certificate that a new connection gets, verified by the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    async with (
        httpx.AsyncClient(verify=context, timeout=PATIENCE) as client,
        client.stream("GET", f"{url}/api/live") as answer,
    ):
        assert answer.status_code == 200
        found: bytes | None = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert(True)
        return found


async def test_a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not(tmp_path: Path) -> None:
    authority = trustme.CA()
    first = write(tmp_path, authority)
    async with open_services(tmp_path, settings(tmp_path)) as services:
        server = GatewayServer(services)
        await server.start()
        try:
            assert server.url.startswith("https://127.0.0.1:")
            assert await shown(server.url, authority) == first
            with pytest.raises(httpx.ConnectError):
                await shown(server.url, trustme.CA())
            assert server._certificate is not None
            second = write(tmp_path, authority)
            server._certificate.reload()
            assert await shown(server.url, authority) == second
            (tmp_path / "key.pem").write_text("nonsense")
            server._certificate.reload()
            assert await shown(server.url, authority) == second, "the last one that worked"
            authority.issue_cert("127.0.0.1").private_key_pem.write_to_path(str(tmp_path / "key.pem"))
            server._certificate.reload()
            assert await shown(server.url, authority) == second, "a key of another certificate"
        finally:
            await server.stop()


async def test_files_that_cannot_be_used_are_told_at_the_start(tmp_path: Path) -> None:
    async with open_services(tmp_path, settings(tmp_path)) as services:
        with pytest.raises(SettingsInvalid, match="tls_cert_file"):
            await GatewayServer(services).start()
    with pytest.raises(ValidationError, match="both"):
        GatewaySettings(tls_cert_file=tmp_path / "cert.pem")
