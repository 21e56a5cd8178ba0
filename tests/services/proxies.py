"""A real proxy on 127.0.0.1, for HTTP and SOCKS5 alike, with credentials and an address of its own to leave by."""

import subprocess
import sys
from types import TracebackType
from typing import Self

from tests.services.ports import free_port

PROGRAM = """
import asyncio, re, sys
import pproxy

accept = pproxy.proto.HTTP.accept

async def accept_any_case(self, reader, user, **more):
    # It knows this header in one spelling alone.
    head = await reader.read_until(b"\\r\\n\\r\\n")
    reader.rollback(re.sub(rb"(?im)^proxy-authorization:", b"Proxy-Authorization:", head))
    return await accept(self, reader, user, **more)

pproxy.proto.HTTP.accept = accept_any_case

async def main():
    port, exit_ip, users = sys.argv[1:4]
    asks = f"#{users}" if users else ""
    server = pproxy.Server(f"http+socks5://127.0.0.1:{port}/@{exit_ip}{asks}")
    # A negative time: credentials are asked for on every connection, not once for each address.
    listening = await server.start_server({"rserver": [pproxy.Connection("direct://")], "authtime": -1})
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class ProxyServer:
    """One proxy process. `stop` and `start` keep the port. What goes through it reaches a site from `exit_ip`."""

    def __init__(self, exit_ip: str = "127.0.0.1", *, user: str = "", password: str = "") -> None:
        self.exit_ip = exit_ip
        self.port = free_port()
        self._login = f"{user}:{password}" if user else ""
        self._process: subprocess.Popen[str] | None = None

    def url(self, scheme: str = "http", login: str | None = None) -> str:
        """With the right credentials, or others; an empty login: none."""
        login = self._login if login is None else login
        return f"{scheme}://{login}{'@' if login else ''}127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it listens."""
        command = [sys.executable, "-c", PROGRAM, str(self.port), self.exit_ip, self._login]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the proxy did not start"
        self.port = int(line)

    def stop(self) -> None:
        """Gone, with every connection."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
