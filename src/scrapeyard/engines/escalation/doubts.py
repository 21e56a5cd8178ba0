"""Where a doubt was raised and nothing came of it: a site whose plain 403 is a plain 403."""

from collections import OrderedDict
from collections.abc import Callable

_ENOUGH = 3
_SECONDS = 3600.0
_MAX_SITES = 10_000


class Doubts:
    """Counts, for each site, how often other ways were tried on a mere suspicion and changed nothing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sites: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def worth_it(self, site: str) -> bool:
        """Whether to try again; after three times in vain, not for an hour."""
        count, since = self._sites.get(site, (0, 0.0))
        return count < _ENOUGH or self._clock() - since > _SECONDS

    def in_vain(self, site: str) -> None:
        """Other ways gave the same answer."""
        count, since = self._sites.get(site, (0, 0.0))
        if self._clock() - since > _SECONDS:
            count = 0
        self._sites[site] = (count + 1, self._clock())
        self._sites.move_to_end(site)
        if len(self._sites) > _MAX_SITES:
            self._sites.popitem(last=False)

    def helped(self, site: str) -> None:
        """Another way got the page."""
        self._sites.pop(site, None)
