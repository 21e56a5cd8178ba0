"""Records that a script yielded before it failed: kept, marked as partial, and never counted as success."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.security.yard import Yard, yard

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
SCRIPT = """
def run(ctx, good: bool = False, size: int = 10):
    for n in range(3): yield {"n": n, "text": "x" * size}
    if not good: raise KeyError("gone")
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Yard]:
    folder: Path = tmp_path_factory.mktemp("partial")
    async with yard(folder, {"records": (SCRIPT, {})}) as made:
        yield made


@pytest.mark.parametrize("size", [10, 50_000])
async def test_a_failed_run_shows_its_records(stand: Yard, size: int) -> None:
    told = await stand.run("attack/records", size=size)
    assert (told["exit_reason"], told["partial"]) == ("script_error", True)
    run = (await stand.client.get(told["links"]["self"])).json()
    assert (run["status"], run["exit_reason"], run["partial"]) == ("failed", "script_error", True)
    assert [record["n"] for record in run["result"]] == [0, 1, 2]
    assert len(run["result"][2]["text"]) == size
    good = await stand.run("attack/records", good=True, size=size)
    assert (good["status"], good["partial"], len(good["result"])) == ("succeeded", False, 3)
