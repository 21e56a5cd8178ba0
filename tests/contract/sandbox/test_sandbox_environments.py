"""What every sandbox promises to scrapers with packages of their own, whichever walls it could raise."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from scrapeyard.errors import SandboxError
from scrapeyard.model import ExitReason
from scrapeyard.sandbox.port import Verdict
from tests.contract.environments import Furnished, furnish
from tests.contract.sandboxes import CONFIGURATIONS, Served, Walls, bench, eventually
from tests.services.wheels import write_wheel

pytestmark = pytest.mark.asyncio(loop_scope="module")
VERSION = "import tiny\ndef run(ctx): return tiny.VERSION\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CONFIGURATIONS, ids=lambda walls: walls.name)
async def stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Furnished]:
    walls: Walls = request.param
    wheels = tmp_path_factory.mktemp("wheels")
    for version in (1, 2):
        files = {"tiny/__init__.py": f"VERSION = {version}\n", "tiny/late.py": "X = 1\n", "tiny/data.txt": "data"}
        write_wheel(wheels, "tiny", f"{version}.0", files)
    write_wheel(wheels, "spread", "1.0", {"spread.pth": "spread_inner\n", "spread_inner/spread_module.py": "X = 7\n"})
    async with bench(walls) as made, furnish(made, wheels) as furnished:
        yield furnished


def result(verdict: Verdict) -> Any:
    assert verdict.exit_reason is ExitReason.SUCCEEDED, verdict
    assert verdict.result is not None
    return json.loads(bytes(verdict.result))


async def test_two_versions_of_one_package_run_side_by_side(stand: Furnished) -> None:
    one, two = stand.scraper(VERSION, "tiny==1.0"), stand.scraper(VERSION, "tiny==2.0")
    verdicts = await asyncio.gather(*(stand.run(scraper) for scraper in (one, two, one, two)))
    assert [result(verdict) for verdict in verdicts] == [1, 2, 1, 2]


async def test_a_second_run_finds_a_child_that_was_forked_ahead(stand: Furnished) -> None:
    scraper = stand.scraper(VERSION + "# ahead", "tiny==1.0")
    assert result(await stand.run(scraper)) == 1
    (parent,) = (each for name, each in stand.bench.sandbox._parents.items() if name.startswith(scraper.ref.digest))
    await eventually(lambda: parent._spares.ready == 2)
    assert (await stand.run(scraper)).forked_ahead


async def test_a_page_can_be_read(stand: Furnished) -> None:
    source = "import tiny\ndef run(ctx): return ctx.fetch('http://site.test/').text('h1')\n"
    assert result(await stand.run(stand.scraper(source, "tiny"))) == "GET 0"


async def test_what_the_platform_has_installed_is_not_seen(stand: Furnished) -> None:
    source = (
        "import importlib.util\n"
        "def run(ctx): return [n for n in ('pydantic', 'fastapi', 'redis', 'uv') if importlib.util.find_spec(n)]\n"
    )
    assert result(await stand.run(stand.scraper(source, "tiny"))) == []
    assert result(await stand.run(stand.scraper(source))) != [], "the base shows it"


async def test_modules_and_data_of_a_package_are_found_late(stand: Furnished) -> None:
    source = (
        "import importlib.metadata, importlib.resources\n"
        "def run(ctx):\n"
        "    import tiny.late\n"
        "    data = importlib.resources.files('tiny').joinpath('data.txt').read_text()\n"
        "    return [tiny.late.X, data, importlib.metadata.version('tiny')]\n"
    )
    assert result(await stand.run(stand.scraper(source, "tiny==2.0"))) == [1, "data", "2.0"]


async def test_a_pth_file_adds_a_folder(stand: Furnished) -> None:
    source = "import spread_module\ndef run(ctx): return spread_module.X\n"
    assert result(await stand.run(stand.scraper(source, "spread"))) == 7


async def test_an_environment_cannot_be_written(stand: Furnished) -> None:
    if stand.bench.walls.settings.mode == "off":
        pytest.skip("nothing is forbidden without walls")
    source = (
        "import os, tiny\n"
        "def run(ctx):\n"
        "    held = []\n"
        "    place = os.path.dirname(tiny.__file__)\n"
        "    for act in (lambda: open(place + '/new.py', 'w'), lambda: open(tiny.__file__, 'a'),\n"
        "                lambda: os.unlink(tiny.__file__), lambda: os.chmod(place, 0o777), lambda: os.rmdir(place)):\n"
        "        try: act()\n"
        "        except OSError: held.append(True)\n"
        "    return len(held)\n"
    )
    assert result(await stand.run(stand.scraper(source, "tiny==1.0"))) == 5


async def test_check_sees_the_packages(stand: Furnished) -> None:
    scraper = stand.scraper(VERSION, "tiny")
    await stand.bench.sandbox.check(scraper, await stand.environments.ready(scraper))


async def test_a_killed_zygote_is_replaced_and_others_go_on(stand: Furnished) -> None:
    waiting = (
        "import time, tiny\ndef run(ctx, seconds: float):\n    ctx.log('up')\n    time.sleep(seconds)\n    return 1\n"
    )
    one, two = stand.scraper(waiting, "tiny==1.0"), stand.scraper(waiting, "tiny==2.0")
    served, others = Served(), Served()
    killed = asyncio.create_task(stand.run(one, served, seconds=600))
    other = asyncio.create_task(stand.run(two, others, seconds=1))
    await asyncio.gather(served.seen.wait(), others.seen.wait())
    environment = await stand.environments.ready(one)
    assert environment is not None
    os.kill(stand.bench.sandbox._zygotes[environment.key].pid, signal.SIGKILL)
    with pytest.raises(SandboxError):
        await killed
    assert result(await other) == 1
    assert result(await stand.run(one, seconds=0)) == 1


async def test_one_zygote_serves_all_scrapers_of_an_environment(stand: Furnished) -> None:
    some = [stand.scraper(f"{VERSION}# {number}", "tiny==1.0") for number in range(3)]
    await asyncio.gather(*(stand.run(scraper) for scraper in some))
    environment = await stand.environments.ready(some[0])
    assert environment is not None
    sandbox = stand.bench.sandbox
    assert len(sandbox._zygotes) <= 5, "the base and one for each environment of these tests"
    assert len(sandbox._zygotes[environment.key].numbers) >= 3


async def test_an_environment_in_use_is_not_removed(stand: Furnished) -> None:
    scraper = stand.scraper(VERSION, "tiny==1.0")
    await stand.run(scraper)
    environment = await stand.environments.ready(scraper)
    assert environment is not None
    os.utime(environment.marker, (0, 0))
    assert environment.key not in stand.environments._shelf.make_room(0)
    assert environment.marker.exists()


async def test_an_environment_that_is_gone_is_said_to_be(stand: Furnished, tmp_path: Path) -> None:
    scraper = stand.scraper(VERSION + "# gone", "tiny==1.0")
    environment = await stand.environments.ready(scraper)
    assert environment is not None
    from msgspec.structs import replace

    lost = replace(environment, key="0" * 64, marker=tmp_path / "ready.json")
    with pytest.raises(SandboxError, match="built again"):
        await stand.bench.sandbox.check(scraper, lost)
