"""A scraper that the operator granted the direct network: it resolves names and checks certificates."""

import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from msgspec.structs import replace

from scrapeyard.model import ExitReason
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, Walls, bench

SCRIPT = """
import socket, ssl

def run(ctx, port: int):
    context = ssl.create_default_context()
    with socket.create_connection(("localhost", port), 60) as bare:
        with context.wrap_socket(bare, server_hostname="localhost") as sock: return sock.recv(5).decode()
"""


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that every user can reach; those above `tmp_path` are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def port(readable: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A TLS server on the loopback address, with a certificate of an authority that the operator trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(readable / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(readable / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with socket.create_server(("localhost", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, context))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            bare, _ = listener.accept()
        except OSError:
            return
        try:
            with context.wrap_socket(bare, server_side=True) as sock:
                sock.sendall(b"hello")
        except OSError:
            bare.close()


@pytest.mark.parametrize("walls", CONFIGURATIONS[:2], ids=lambda walls: walls.name)
async def test_names_are_resolved_and_certificates_checked(port: int, walls: Walls) -> None:
    async with bench(walls) as stand:
        granted = replace(stand.scraper(SCRIPT), network="direct")
        assert result(await stand.run(granted, port=port)) == "hello"
        refused = await stand.run(SCRIPT + "# as everyone else", port=port)
        assert refused.exit_reason is ExitReason.SCRIPT_ERROR
        assert refused.error is not None
        assert "ctx.fetch" in refused.error.message


@pytest.mark.parametrize("walls", CONFIGURATIONS[:2], ids=lambda walls: walls.name)
async def test_other_files_of_etc_stay_out_of_reach(walls: Walls) -> None:
    source = """
def run(ctx):
    found = []
    for path in ("/etc/passwd", "/etc/shadow", "/etc/ssl/private", "/etc/hostname"):
        try: found.append(open(path).read())
        except OSError: pass
    return [found, open("/etc/hosts").read() != ""]
"""
    async with bench(walls) as stand:
        assert result(await stand.run(replace(stand.scraper(source), network="direct"))) == [[], True]
