"""Whether a page may be handed to a browser that is not ours: the guard, without a connection."""

from scrapeyard.engines.http.dns import Names, Resolve, system_resolve
from scrapeyard.engines.http.guard import Guard
from scrapeyard.engines.http.url import Target
from scrapeyard.settings import HttpSettings


class Passage:
    """Resolves a name and asks the guard. The browser resolves it again for itself; what it is told may differ."""

    def __init__(self, settings: HttpSettings, *, resolve: Resolve = system_resolve) -> None:
        """Raises SettingsInvalid when an allowed host makes no sense."""
        self._guard = Guard(allow_private=settings.allow_private, allow_hosts=settings.allow_hosts)
        self._names = Names(resolve)

    async def check(self, target: Target) -> None:
        """Raises FetchFailed (fetch_private_address, fetch_dns)."""
        literal = target.literal
        found = (literal,) if literal is not None else await self._names.addresses(target.host, target.port)
        self._guard.check(target.host, found)

    async def stop(self) -> None:
        """Forget names. May be called twice."""
        await self._names.stop()
