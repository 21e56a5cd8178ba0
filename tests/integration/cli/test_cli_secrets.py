"""Secrets in the author's commands: neither the terminal nor a recorded case shows them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.integration.cli_stand import Stand

VALUE = "s3cret/key+42"
SCRIPT = """
import sys
from urllib.parse import quote
def run(ctx, note: str = "", fail: bool = False):
    key = ctx.config["key"]
    print("the key is", key)
    print("on stderr", key, file=sys.stderr)
    ctx.log("logged", key=key, url="http://x.example/?k=" + quote(key, safe=""))
    if fail:
        raise ValueError("not " + key)
    return len(key)
"""


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("secrets"))
    yield stand
    assert list(stand.temporary.iterdir()) == [], "a command left temporary files"


@pytest.fixture(scope="module")
def folder(stand: Stand) -> Path:
    folder = stand.write("lab/secret", SCRIPT)
    with (folder / "scraper.toml").open("a") as manifest:
        manifest.write('[config]\nkey = { secret = "shop" }\n')
    return folder


@pytest.fixture(scope="module")
def granted(stand: Stand) -> str:
    secrets = stand.folder / "secrets.toml"
    secrets.touch(mode=0o600)
    secrets.write_text(f'["lab/secret"]\nshop = "{VALUE}"\n')
    return str(secrets)


@pytest.mark.parametrize("fail", ["false", "true"])
@pytest.mark.parametrize("command", ["run", "record"])
def test_what_a_script_says_is_shown_without_its_secret(
    stand: Stand, folder: Path, granted: str, command: str, fail: str
) -> None:
    ended = stand.cli(command, str(folder), f"fail={fail}", SCRAPEYARD_REPOSITORY__SECRETS_FILE=granted)
    assert "the key is ***" in ended.err
    assert "on stderr ***" in ended.err
    assert "k=***" in ended.err
    for form in (VALUE, quote(VALUE), quote(VALUE, safe="")):
        assert form not in ended.out + ended.err


def test_an_input_that_holds_the_secret_is_not_recorded(stand: Stand, folder: Path, granted: str) -> None:
    words = ("record", str(folder), f"note=mine: {VALUE}", "--name", "noted")
    ended = stand.cli(*words, SCRAPEYARD_REPOSITORY__SECRETS_FILE=granted)
    assert ended.status == 0, ended.err
    files = [path for path in (folder / "tests" / "noted").rglob("*") if path.is_file()]
    assert files
    assert not [path.name for path in files if VALUE in path.read_text()]
