"""What stood in the way."""

from typing import Literal

from msgspec import Struct

BlockKind = Literal["blocked", "captcha", "challenge", "rate_limited"]

_WORTH_TRYING = 0.45
_CERTAIN = 0.7


class Block(Struct, frozen=True, kw_only=True):
    """A refusal that was recognised in an answer.

    `captcha` wants a person, `challenge` a browser that runs scripts, `rate_limited` patience, `blocked` another face.
    """

    kind: BlockKind
    vendor: str = ""
    """Who keeps the door, in lower case; empty: not known."""
    reason: str
    """In words, for `explain` and the error's message."""
    confidence: float
    """0 to 1. A plain 403 is 0.5, a vendor's own page 0.9 or more, an empty page 0.3."""

    @property
    def worth_trying(self) -> bool:
        """Whether another way is worth a request. A rate limit is not: it asks for patience."""
        return self.kind != "rate_limited" and self.confidence >= _WORTH_TRYING

    @property
    def certain(self) -> bool:
        """Whether the answer is no page at all. One that is not certain is handed out when nothing better is had."""
        return self.confidence >= _CERTAIN
