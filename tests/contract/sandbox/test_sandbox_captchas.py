"""`ctx.solve_image` and `page.solve_captcha` in a real child."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from scrapeyard.engines.browser.operations import AnyOperation, Fill, Screenshot
from scrapeyard.engines.browser.port import Done
from scrapeyard.model import ExitReason
from tests.contract.sandbox_scripts import result
from tests.contract.sandboxes import CONFIGURATIONS, Bench, Served, bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASYNC = """
from scrapeyard_sdk import FetchError

async def run(ctx, pictures: list):
    found = []
    for picture in pictures:
        try: found.append(await ctx.solve_image(picture.encode()))
        except FetchError as error: found.append([error.reason, error.message])
    return found
"""
PLAIN = ASYNC.replace("async def", "def").replace("await ", "")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand() -> AsyncIterator[Bench]:
    async with bench(CONFIGURATIONS[0]) as made:
        yield made


@pytest.mark.parametrize("script", [ASYNC, PLAIN], ids=["async", "plain"])
async def test_a_script_has_pictures_read(stand: Bench, script: str) -> None:
    found = result(await stand.run(script, pictures=["h4km", "not this", "not read", "x" * 70_000]))
    assert found == [
        "h4km",
        ["fetch_not_allowed", "not by policy"],
        ["fetch_captcha", "it could not be read"],
        "x" * 70_000,
    ]


async def test_an_error_that_is_not_caught_ends_the_run_with_its_reason(stand: Bench) -> None:
    verdict = await stand.run("def run(ctx):\n    ctx.solve_image(b'not read')")
    assert verdict.exit_reason is ExitReason.FETCH_CAPTCHA


async def test_refusals_without_end_end_the_run(stand: Bench) -> None:
    verdict = await stand.run(PLAIN, pictures=["not this"] * 2000)
    assert verdict.exit_reason is ExitReason.PROTOCOL_ERROR


async def test_a_page_has_its_captcha_solved(stand: Bench) -> None:
    served = Served()
    script = "def run(ctx):\n    with ctx.browser() as page: return page.solve_captcha(timeout=3)"
    assert result(await stand.run(script, served)) == "token of tab 0 within 3.0"


async def test_the_picture_of_a_page_is_read_and_filled_in(stand: Bench) -> None:
    class Drawn(Served):
        async def browse(self, number: int, operation: AnyOperation, raw: bytes = b"") -> Done:
            return await super().browse(number, operation, b"seen" if isinstance(operation, Screenshot) else raw)

    served = Drawn()
    script = "def run(ctx):\n    with ctx.browser() as page: return page.solve_captcha('img', '#text')"
    assert result(await stand.run(script, served)) == "seen"
    assert served.steps == [Screenshot(selector="img"), Fill(selector="#text", text="seen")]


@pytest.mark.parametrize("given", ["'img'", "'', '#text'"])
async def test_a_picture_needs_an_input(stand: Bench, given: str) -> None:
    script = f"def run(ctx):\n    with ctx.browser() as page: page.solve_captcha({given})"
    verdict = await stand.run(script)
    assert verdict.error is not None
    assert "both selector and into" in verdict.error.message
