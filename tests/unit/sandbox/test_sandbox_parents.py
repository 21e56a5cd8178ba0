"""What a worker makes of the process that loads a script, told in an awkward order."""

import json
from pathlib import Path

import pytest

from scrapeyard.model import ExitReason, Scraper, ScraperRef
from scrapeyard.sandbox.handles.parent import LoadFailed, ParentHandle

REFUSED = {"refused": {"message": "at import", "type": "ValueError", "traceback": "…"}}


def parent_of(tmp_path: Path) -> ParentHandle:
    scraper = Scraper(ref=ScraperRef(id="test/case", version="1.0.0", digest="d"), folder=tmp_path)
    return ParentHandle(1, "d", scraper, ahead=0, max_children=1, work_folder=str(tmp_path), base_bytes=0)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([REFUSED], "at import"),
        ([{"exited": 7, "status": 0}, REFUSED], "at import"),
        ([], "status 0"),
        (["nonsense"], "status 0"),
        ([{"loaded": "def"}], "status 0"),
    ],
)
async def test_the_last_words_of_a_parent_are_heard_though_its_end_was_told_first(
    tmp_path: Path, said: list[object], told: str
) -> None:
    parent = parent_of(tmp_path)
    for words in said:
        parent.theirs.send(json.dumps(words).encode())
    parent.theirs.close()
    parent.mark_gone("status 0")
    with pytest.raises(LoadFailed) as caught:
        parent.loaded.result()
    assert caught.value.reason is ExitReason.SCRAPER_INVALID
    assert told in caught.value.error.message
    parent.mark_gone("again")
