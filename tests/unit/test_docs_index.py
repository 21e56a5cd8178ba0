"""The documentation's table of contents."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_is_listed_once() -> None:
    trees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text("utf-8"), re.DOTALL)
    listed = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md") if page.name != "index.md"]
    assert sorted(listed) == sorted(pages)
