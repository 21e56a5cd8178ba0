"""Requests that a context does not make: kinds of resources, and hosts that only track."""

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from scrapeyard.engines.browser.port import Blocked

if TYPE_CHECKING:
    from patchright.async_api import BrowserContext, Route

_USUAL_BYTES: Final = {"image": 25_000, "media": 500_000, "font": 35_000, "stylesheet": 12_000, "tracker": 25_000}
"""About what one of the kind costs on the wire."""
_TRACKERS: Final = frozenset(
    {
        "google-analytics.com", "googletagmanager.com", "googletagservices.com", "doubleclick.net",
        "googlesyndication.com", "googleadservices.com", "adservice.google.com", "facebook.net", "hotjar.com",
        "clarity.ms", "bat.bing.com", "scorecardresearch.com", "quantserve.com", "criteo.com", "criteo.net",
        "taboola.com", "outbrain.com", "amazon-adsystem.com", "adnxs.com", "rubiconproject.com", "pubmatic.com",
        "openx.net", "casalemedia.com", "mixpanel.com", "segment.io", "segment.com", "amplitude.com",
        "fullstory.com", "mouseflow.com", "crazyegg.com", "newrelic.com", "nr-data.net", "chartbeat.com",
        "chartbeat.net", "moatads.com", "adsrvr.org", "demdex.net", "omtrdc.net", "bluekai.com", "krxd.net",
        "mathtag.com", "mc.yandex.ru", "top.mail.ru", "analytics.tiktok.com", "ads-twitter.com", "snap.licdn.com",
        "wcs.naver.net", "optimizely.com",
    }
)  # fmt: skip


class Blocking:
    """Refuses requests of a context and counts them. A context that blocks nothing has none, and pays nothing."""

    def __init__(self, kinds: tuple[Blocked, ...]) -> None:
        self._kinds = frozenset(kinds)
        self.count = 0
        self.bytes = 0

    async def start(self, context: "BrowserContext") -> None:
        """From now on."""
        if self._kinds:
            await context.route("**/*", self._decide)

    async def _decide(self, route: "Route") -> None:
        kind = self._kind(route.request.resource_type, route.request.url)
        if kind is None:
            await route.fallback()
            return
        self.count += 1
        self.bytes += _USUAL_BYTES[kind]
        await route.abort("blockedbyclient")

    def _kind(self, resource_type: str, url: str) -> str | None:
        if resource_type in self._kinds:
            return resource_type
        if "tracker" in self._kinds and resource_type != "document" and is_tracker(url):
            return "tracker"
        return None


def is_tracker(url: str) -> bool:
    """Whether its host, or one above it, is known for nothing but tracking and advertisements."""
    labels = (urlsplit(url).hostname or "").split(".")
    return any(".".join(labels[at:]) in _TRACKERS for at in range(len(labels) - 1))
