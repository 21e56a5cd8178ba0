"""`keys`: without a server, and on one that asks for them."""

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli_stand import Stand


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    return Stand(tmp_path_factory.mktemp("keys"))


def test_keys_from_the_first_to_its_end(stand: Stand, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    made = stand.cli(
        "keys", "create", "ops", "--role", "admin", "--expires", "90d", "--rate", "20/s", "--data-dir", data
    )
    assert made.status == 0, made.err
    secret = made.out.strip()
    assert secret.startswith("sy_")
    assert (tmp_path / "data" / "pepper").stat().st_mode & 0o777 == 0o600
    (listed,) = stand.cli("keys", "list", "--json", "--data-dir", data).json
    assert (listed["name"], listed["role"], listed["limits"]["rate"]) == ("ops", "admin", 20)
    assert stand.cli("keys", "create", "x", "--role", "god", "--data-dir", data).status == 2
    with stand.serving("up", "--port", "0", "--data-dir", data, says=b"listens on ") as url:
        refused = stand.cli("workers", "--server", url)
        assert (refused.status, "SCRAPEYARD_KEY" in refused.err) == (2, True), refused.err
        assert stand.cli("login", url, "--key", "sy_wrong").status == 2
        kept = stand.cli("login", url, "--key", secret)
        assert kept.status == 0, kept.err
        assert Path(stand.cli("login", "--show", "--json").json["file"]).stat().st_mode & 0o777 == 0o600
        assert stand.cli("workers").status == 0
        (row,) = stand.cli("audit", "list", "--action", "create_key", "--json").json
        assert (row["client"], row["address"], secret in str(row)) == (f"local:{getpass.getuser()}", "", False)
        rotated = stand.cli("keys", "rotate", "ops", "--overlap", "1h", "--json")
        assert rotated.status == 0, rotated.err
        assert rotated.json["secret"] != secret
        assert stand.cli("keys", "revoke", "ops").status == 0
        assert {key["usable"] for key in stand.cli("keys", "list", "--json").json} == {True, False}
        assert stand.cli("logout").status == 0
