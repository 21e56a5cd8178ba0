"""The pages of the documentation and their blocks of code."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
FENCE = re.compile(r"^```([a-z]+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One block of code of a page."""

    kind: str
    marks: tuple[str, ...]
    text: str
    follows: bool
    """Whether nothing but a short sentence stands between it and the block before."""

    @property
    def is_run(self) -> bool:
        return "test" in self.marks

    @property
    def file(self) -> str | None:
        """Where to write it; None when it is not a file's content."""
        return next((mark.removeprefix("file=") for mark in self.marks if mark.startswith("file=")), None)


def fences(page: Path) -> list[Fence]:
    """In their order."""
    text, end = page.read_text("utf-8"), 0
    found: list[Fence] = []
    for match in FENCE.finditer(text):
        between = text[end : match.start()].strip()
        follows = bool(found) and "\n\n" not in between and len(between) < 200
        found.append(Fence(kind=match[1], marks=tuple(match[2].split()), text=match[3], follows=follows))
        end = match.end()
    return found
