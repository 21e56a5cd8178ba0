"""Problems in Korean: every text is there, and a request or the operator chooses the language."""

from pathlib import Path

import pytest

from scrapeyard.gateway.http.languages import accepted, texts
from scrapeyard.gateway.http.problems import EXITS, PROBLEMS
from scrapeyard.settings import LogSettings, Settings
from tests.integration.gateway_stand import open_stand


def test_every_text_is_there_in_korean() -> None:
    korean = texts("ko")
    assert korean.problems.keys() == PROBLEMS.keys()
    assert korean.exits.keys() == {reason.value for reason in EXITS}
    assert all(title and remedy for title, remedy in korean.problems.values())


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (b"ko-KR,ko;q=0.9,en;q=0.8", "ko"),
        (b"ko", "ko"),
        (b"EN-us", "en"),
        (b"fr, ko", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_the_first_language_counts(header: bytes, language: str | None) -> None:
    assert accepted(header) == language


@pytest.mark.parametrize(
    ("lang", "headers", "title"),
    [
        ("en", {}, "There is no such path"),
        ("en", {"Accept-Language": "ko"}, "그런 경로가 없습니다"),
        ("ko", {}, "그런 경로가 없습니다"),
        ("ko", {"Accept-Language": "en"}, "There is no such path"),
    ],
)
async def test_a_problem_speaks_the_language_of_its_reader(
    tmp_path: Path, lang: str, headers: dict[str, str], title: str
) -> None:
    async with open_stand(tmp_path, Settings(log=LogSettings.model_validate({"lang": lang}))) as stand:
        problem = (await stand.client.get("/nowhere", headers=headers)).json()
    assert (problem["title"], problem["code"]) == (title, "no_such_path")
