"""The gateway as a server on a socket, inside the event loop it is started from."""

import asyncio
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress

import uvicorn

from scrapeyard.errors import SettingsInvalid
from scrapeyard.gateway.app import application
from scrapeyard.gateway.certificates import ServerCertificate
from scrapeyard.gateway.http.protocol import BoundedHttp
from scrapeyard.gateway.services import Gateway, GatewayServices
from scrapeyard.model.audit import command_entry
from scrapeyard.store.ports.store import Store
from scrapeyard.telemetry.events import get_log

log = get_log("gateway")
MAX_HEARD = 4096
"""Maximum bytes of a message from a watcher; none is expected."""
SIOCGIFADDR = 0x8915
KEEP_ALIVE_SECONDS = 75
"""An idle connection stays open for this long. Longer than the minute that clients and load balancers keep theirs:
whoever closes first must be the client, or its next call may meet a connection that is closing."""
GRACE_SECONDS = 10
"""How long responses under way may take once the server stops."""
GOODBYE_SECONDS = 5
"""How long before that streams may take to end; a watcher that reads nothing would hold up the server for ever."""


class GatewayServer:
    """Serves the API. The caller handles signals; `stop` answers waiting calls before it closes."""

    def __init__(self, services: GatewayServices) -> None:
        self._settings = services.settings.gateway
        self._gateway = Gateway(services)
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._port = 0
        self._certificate: ServerCertificate | None = None
        self.first_key = ""
        """The secret of the admin key that this start made, to be shown once; empty if there were keys."""

    @property
    def url(self) -> str:
        """Where it listens, for a client on the same machine. Only after `start`."""
        host = self._settings.host
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104  not a bind
        return f"{self._scheme}://{f'[{shown}]' if ':' in shown and shown[0] != '[' else shown}:{self._port}"

    @property
    def urls(self) -> tuple[str, ...]:
        """Every address it can be reached at. Only after `start`."""
        return tuple(
            f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self._port}"
            for host in reached(self._settings.host)
        )

    @property
    def _scheme(self) -> str:
        return "https" if self._settings.tls_cert_file else "http"

    @property
    def is_public(self) -> bool:
        """Whether other machines may reach it."""
        return not is_loopback(self._settings.host)

    @property
    def is_open(self) -> bool:
        """Whether other machines may reach it, and nobody is asked for a key."""
        return self.is_public and not self._gateway.authenticator.required

    async def start(self) -> None:
        """Listen. Returns once requests are accepted. Raises SettingsInvalid if the address cannot be bound, or is
        public while nobody is asked for a key and that is not allowed."""
        if self._task is not None:
            return
        self._certificate = self._make_certificate()
        await self._gateway.start()
        try:
            await self.secure()
            listener = self._listener()
        except BaseException:
            await self._gateway.stop()
            raise
        self._port = listener.getsockname()[1]
        self._server = _Server(self._config())
        self._task = asyncio.create_task(self._server.serve([listener]), name="gateway-http")
        await self._server.listening.wait()
        if not self._server.started:
            await self._task
        if self._certificate is not None:
            self._certificate.start()
        log.info("gateway.listening", url=self.url)
        if self.is_open:
            log.warning("gateway.public", urls=", ".join(self.urls))

    async def stop(self) -> None:
        """Answer waiting calls, finish requests under way, close. May be called twice."""
        task, self._task = self._task, None
        if task is None or self._server is None:
            return
        self._gateway.close()
        with suppress(TimeoutError):  # the server itself would tell watchers that it restarts, not that it goes away
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._gateway.jobs.streams.wait_closed()
        self._server.should_exit = True
        await task
        if self._certificate is not None:
            await self._certificate.stop()
        await self._gateway.stop()

    async def secure(self) -> None:
        """Make a first key where one is wanted. `start` does it, too. Raises SettingsInvalid if other machines could
        call without a key, and that is not allowed."""
        if not await self._gateway.keys.all() and self._gateway.services.settings.auth.mode == "on":
            await self._make_first_key(self._gateway.services.store)
        if self.is_open and not self._settings.allow_public:
            raise SettingsInvalid(
                f"gateway.host: other machines reach {self._settings.host or 'every address'}, and whoever reaches the "
                "API may run scrapers and read every result; ask for keys with auth.mode = on (or --auth on), which "
                "makes a first key and prints it. Behind a firewall, or a proxy that authenticates, --insecure does "
                "without"
            )

    async def _make_first_key(self, store: Store) -> None:
        made = await self._gateway.keys.first(store.leaders)
        if made is not None:
            key, self.first_key = made
            told = {"name": key.name, "role": key.role.value}
            await store.audit.append([command_entry(key.created_at, "create_key", f"/api/keys/{key.id}", told)])

    def _make_certificate(self) -> ServerCertificate | None:
        """None: plain HTTP. Raises SettingsInvalid."""
        given = self._settings
        if given.tls_cert_file is None or given.tls_key_file is None:
            return None
        return ServerCertificate(given.tls_cert_file, given.tls_key_file)

    def _listener(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._settings.host else socket.AF_INET
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._settings.host, self._settings.port))
        except OSError as error:
            listener.close()
            place = f"{self._settings.host}:{self._settings.port}"
            raise SettingsInvalid(f"gateway.port: cannot listen on {place}: {error.strerror or error}") from None
        return listener

    def _config(self) -> uvicorn.Config:
        config = uvicorn.Config(
            application(self._gateway),
            loop="none",
            http=BoundedHttp,
            ws="websockets-sansio",
            ws_max_size=MAX_HEARD,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        config.load()
        config.ssl = self._certificate.context if self._certificate else None
        return config


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address. A name counts if all its addresses do."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass  # a name; its addresses decide
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)} if host else set()
    except OSError:  # a name that does not resolve may lead anywhere later, so it counts as public
        return False
    return bool(found) and all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found)


def reached(host: str) -> list[str]:
    """The addresses behind `host`: where it stands for all IPv4 interfaces, those that have one."""
    if host not in ("", "0.0.0.0"):  # noqa: S104  not a bind
        return [host.strip("[]")]
    found = [address for _, name in socket.if_nameindex() if (address := _address_of(name))]
    return found or ["0.0.0.0"]  # noqa: S104  not a bind


def _address_of(interface: str) -> str:
    """The IPv4 address of an interface; empty if it has none."""
    asked = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            return socket.inet_ntoa(fcntl.ioctl(link.fileno(), SIOCGIFADDR, asked)[20:24])
        except OSError:
            return ""


class _Server(uvicorn.Server):
    """Does not install signal handlers, and reports when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
