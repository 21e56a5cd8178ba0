"""What may be required, and what is told of a resolver's words."""

import time
from pathlib import Path

import pytest

from scrapeyard.errors import ScraperInvalid
from scrapeyard.repository.environments.spec import checked, names, read_lock
from scrapeyard.repository.environments.uv import MAX_WORDS, cleaned

HASH = "--hash=sha256:" + "a" * 64


@pytest.mark.parametrize(
    "requirement",
    [
        "lxml",
        "lxml>=5,<7",
        "lxml >= 5 , < 7",
        "price-parser==0.3.4",
        "httpx[http2,socks]~=0.28",
        "a (>=1,<2)",
        "tomli>=2; python_version < '3.11'",
        'pywin32; sys_platform == "win32" and python_version >= "3.8"',
        "x===1.0+local",
        "y==1!2.0.*",
    ],
)
def test_names_with_versions_are_taken(requirement: str) -> None:
    assert checked([f" {requirement} ", requirement]) == (requirement,)


@pytest.mark.parametrize(
    "requirement",
    [
        "",
        "-r /etc/passwd",
        "--index-url=http://a.test/",
        "-e .",
        "./local",
        "/abs/path.whl",
        "..",
        "file:///etc/passwd",
        "pkg @ file:///etc/passwd",
        "pkg @ https://a.test/pkg.whl",
        "git+https://a.test/x.git",
        "https://a.test/x.whl",
        "lxml\n--index-url http://a.test/",
        "lxml # comment",
        "lxml --hash=sha256:00",
        "lxml>=",
        "lxml>=5 <6 >",
        "lxml;",
        "${HOME}",
        "lxml\\",
        "a" * 501,
        "é",
    ],
)
def test_whatever_reaches_past_the_index_is_refused(requirement: str) -> None:
    with pytest.raises(ScraperInvalid, match="requirements"):
        checked([requirement])


def test_there_may_not_be_too_many() -> None:
    with pytest.raises(ScraperInvalid, match="200"):
        checked(f"p{number}" for number in range(201))


def test_a_lock_is_read_in_one_normal_form(tmp_path: Path) -> None:
    text = (
        f"# made by uv\nb==2.0 \\\n    {HASH} \\\n    {HASH}\n    # via a\n\nA_x==1.0 ; python_version > '3' {HASH}\r\n"
    )
    (tmp_path / "requirements.lock").write_text(text)
    lock = read_lock(tmp_path)
    assert lock == f"A_x==1.0 ; python_version > '3' {HASH}\nb==2.0 {HASH} {HASH}\n"
    assert names(lock) == {"a-x", "b"}


def test_no_lock_is_none(tmp_path: Path) -> None:
    assert read_lock(tmp_path) == ""


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"a==1\n", b"a==1 --hash=md5:00\n", b"-c x\n"])
def test_a_lock_that_is_none_of_ours_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "requirements.lock").write_bytes(raw)
    with pytest.raises(ScraperInvalid, match=r"requirements\.lock"):
        read_lock(tmp_path)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("\x1b[31merror\x1b[0m: no tiny==3\n  cause: none\n\nhint: try", "no tiny==3: none hint: try"),
        ("Failed to fetch: `https://user:pw@index.test/simple/x/`", "Failed to fetch: `(address)`"),
        ("read /home/me/.config/uv.toml and\n\n  more", "read (path) and more"),
        ("host index.test refused", "host (hidden) refused"),
        ("tiny/1.0 and 3/4", "tiny/1.0 and 3/4"),
        ("(https://a.test/x),git+ssh://b.test 1http://c.test", "((address)),(address) (address)"),
    ],
)
def test_words_are_kept_without_what_they_give_away(said: str, told: str) -> None:
    assert cleaned(said, ["index.test", ""]) == told


@pytest.mark.parametrize("word", ["x", "x.", "/", "/x", "-/", "://", "x://"])
def test_words_are_bounded_and_read_in_time(word: str) -> None:
    began = time.process_time()
    assert len(cleaned(word * 100_000)) <= MAX_WORDS
    assert time.process_time() - began < 5
