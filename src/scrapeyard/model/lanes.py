"""Lanes by scraper: where the work of a scraper waits, and from where a worker takes.

Each pattern of the setting `lanes.patterns` has a lane of its own. Where work waits follows from the settings alone, so
gateways, dispatchers and workers agree without talking, and no queue is ever searched.
"""

import re
from fnmatch import fnmatchcase

from msgspec import Struct

DEFAULT_LANE = "default"
SCRAPER_PATTERN = re.compile(r"[a-z0-9*][a-z0-9._*-]{0,63}/[a-z0-9*][a-z0-9._*-]{0,63}")
_PREFIX = "for."
_MAX_LANE = 64
_ALL = "*"


class ScraperLanes(Struct, frozen=True):
    """The patterns, in order: the first that matches a scraper counts."""

    patterns: tuple[str, ...] = ()

    def lane_of(self, scraper_id: str) -> str:
        """The lane for `site/task`; the default lane if no pattern matches."""
        return next((_lane(each) for each in self.patterns if fnmatchcase(scraper_id, each)), DEFAULT_LANE)

    def taken(self, lanes: tuple[str, ...], takes: tuple[str, ...]) -> tuple[str, ...]:
        """The lanes of a worker. `lanes` are those it names itself; `takes` is checked (`fault`)."""
        wanted = [each for each in takes if not each.startswith("!")]
        left_out = {_lane(each[1:]) for each in takes if each.startswith("!")}
        if wanted and _ALL not in wanted:
            chosen = [_lane(each) for each in wanted]
        else:
            chosen = [*lanes, *map(_lane, self.patterns)]
        return tuple(dict.fromkeys(lane for lane in chosen if lane not in left_out))

    def words(self, lane: str) -> str:
        """What waits in a lane, for people: its pattern, or the lane itself."""
        return next((each for each in self.patterns if _lane(each) == lane), lane)

    def pattern_fault(self) -> str:
        """Why the patterns cannot be used; empty if they can."""
        names: dict[str, str] = {}
        for each in self.patterns:
            lane = _lane(each)
            if SCRAPER_PATTERN.fullmatch(each) is None or len(lane) > _MAX_LANE:
                return f"{each[:80]!r} is no pattern; write site/task with * for any, e.g. shop/* or */product"
            if lane in names:
                return f"{each!r} and {names[lane]!r} would share the lane {lane}; keep one of them"
            names[lane] = each
        return ""

    def takes_fault(self, takes: tuple[str, ...]) -> str:
        """Why a worker cannot take these; empty if it can."""
        for each in takes:
            name = each.removeprefix("!")
            if name not in self.patterns and each != _ALL:
                return f"{each[:80]!r} is not in lanes.patterns; add it there, on every gateway, dispatcher and worker"
        if takes and not self.taken((DEFAULT_LANE,), takes):
            return "nothing is left to take"
        return ""


def _lane(pattern: str) -> str:
    return _PREFIX + pattern.replace("/", ".").replace("*", "_")
