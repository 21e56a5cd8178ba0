"""Lua scripts: loaded from files, and run by their SHA-1."""

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Self

from redis.exceptions import NoScriptError

from scrapeyard.redis.connection import Command, CommandLink

Argument = str | bytes | int | float


class Script:
    """The text of one script. The server knows it by its SHA-1 once it has run it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    @classmethod
    def load(cls, package: str, *names: str) -> Self:
        """Read the script from a file of the package. Several files are joined in the order of their names."""
        return cls("\n".join(files(package).joinpath(name).read_text("utf-8") for name in names))

    async def run(self, link: CommandLink, *arguments: Argument, keys: Sequence[str] = (), within: float) -> Any:
        """Run the script once, as `run_many` does."""
        (reply,) = await self.run_many(link, [(keys, arguments)], within=within)
        return reply

    async def run_many(
        self, link: CommandLink, calls: Sequence[tuple[Sequence[str], Sequence[Argument]]], *, within: float
    ) -> list[Any]:
        """Run the script once for each pair of keys and arguments, all in one round trip.

        Calls that the server refuses because it does not know the script are sent once more with the text. An error
        reply stands in its place as an exception. Raises LinkLost when a round trip takes longer than `within` seconds.
        """
        rest = [(len(keys), *keys, *map(_plain, arguments)) for keys, arguments in calls]
        replies = await link.ask(*_commands("EVALSHA", self.sha, rest), within=within)
        unknown = [place for place, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            again = _commands("EVAL", self.text, [rest[place] for place in unknown])
            for place, reply in zip(unknown, await link.ask(*again, within=within), strict=True):
                replies[place] = reply
        return replies


def _plain(argument: Argument) -> str | bytes | int:
    return repr(argument) if isinstance(argument, float) else argument


def _commands(verb: str, script: str, rest: Sequence[Command]) -> list[Command]:
    return [(verb, script, *each) for each in rest]
