"""What is remembered of the ways to a site, as the API shows it."""

from typing import Any

from scrapeyard.engines.escalation.port import Remembered
from scrapeyard.gateway.runs.documents import instant


def ways(known: Remembered) -> dict[str, Any]:
    """Without cookies and credentials."""
    return {
        "ways": [
            {
                "way": each.way,
                "cost": each.cost,
                "successes": round(each.successes, 2),
                "failures": round(each.failures, 2),
                "success_share": round(each.share, 3),
                "used_at": instant(each.used_at),
            }
            for each in sorted(known.tried, key=lambda tried: tried.cost)
        ],
        "clearances": [
            {
                "host": each.host,
                "exit": each.exit,
                "user_agent": each.user_agent,
                "got_at": instant(each.got_at),
                "expires_at": instant(each.expires_at),
            }
            for each in known.clearances
        ],
    }
