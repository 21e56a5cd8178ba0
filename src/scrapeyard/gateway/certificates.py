"""The gateway's certificate: read at the start, and again whenever its files change."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from scrapeyard.background import Background
from scrapeyard.errors import SettingsInvalid
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
LOOK_SECONDS: Final = 2.0


class ServerCertificate:
    """Keeps one TLS context up to date. Connections that are open keep the certificate that they began with."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises SettingsInvalid if the files cannot be used."""
        self._files = certificate, key
        self._seen = self._marks()
        self._background = Background()
        try:
            self.context = _context(*self._files)
        except (OSError, ssl.SSLError) as error:
            raise SettingsInvalid(f"gateway.tls_cert_file, gateway.tls_key_file: {_why(error)}") from None

    def start(self) -> None:
        """Look for new files now and then. May be called twice."""
        self._background.start(self._keep_looking, name="certificate")

    async def stop(self) -> None:
        """Look no more. May be called twice."""
        await self._background.stop()

    def reload(self) -> None:
        """Use the files if they changed. Files that cannot be used, such as half of a new pair, are left alone until
        they change again."""
        marks = self._marks()
        if marks == self._seen:
            return
        self._seen = marks
        try:
            _context(*self._files)  # a wrong pair would leave the context in use without a key
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            log.warning("gateway.certificate_refused", error=_why(error))
            return
        log.info("gateway.certificate_loaded", file=str(self._files[0]))

    def _marks(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_mark(path) for path in self._files)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.reload()


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key, password="")
    return context


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _why(error: OSError) -> str:
    """An SSLError is an OSError, too."""
    return getattr(error, "reason", None) or error.strerror or str(error)
