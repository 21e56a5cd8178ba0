"""Packages that attack: whatever a wheel brings along, its code runs inside a script's walls or not at all."""

import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import ExitReason, Scraper
from scrapeyard.sandbox.port import Verdict
from tests.contract.environments import Furnished, furnish
from tests.contract.sandboxes import CONFIGURATIONS, bench
from tests.security import doors
from tests.security.test_doors import Listeners
from tests.security.yard import PLENTY
from tests.services.wheels import write_wheel

pytestmark = [pytest.mark.security, pytest.mark.asyncio(loop_scope="module")]

WITNESS = """
def witness(name):
    import os, sys
    try: secret = open({secret!r}).read()
    except OSError: secret = ''
    try: open({proof!r} + '/' + name, 'w').write(str(os.getpid())); wrote = True
    except OSError: wrote = False
    marks = sys.__dict__.setdefault('witnessed', dict())
    marks[name] = dict(secret=secret, wrote=wrote, uid=os.getuid(), variables=sorted(os.environ))
"""
"""What code of a package can do, noted where the script can tell it."""

TELL = "import sys\ndef run(ctx): return getattr(sys, 'witnessed', {})\n"
SHADOWED = ("json", "socket", "os", "select", "site", "sitecustomize", "usercustomize", "asyncio")


class Generous(Furnished):
    """A busy machine does not change how its scrapers end."""

    def scraper(self, source: str, *requirements: str) -> Scraper:
        return replace(super().scraper(source, *requirements), limits=PLENTY)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Furnished, Path]]:
    proof = tmp_path_factory.mktemp("proof")
    proof.chmod(0o777)
    for folder in (proof, *list(proof.parents)[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    secret = proof / "secret"
    secret.write_text("the-secret-nobody-may-see")
    wheels = tmp_path_factory.mktemp("wheels")
    _write_attacks(wheels, WITNESS.format(secret=str(secret), proof=str(proof)))
    os.environ["SECRET_OF_THE_WORKER"] = "the-secret-nobody-may-see"
    try:
        async with bench(CONFIGURATIONS[0]) as made, furnish(made, wheels) as furnished:
            yield Generous(bench=made, environments=furnished.environments), proof
    finally:
        del os.environ["SECRET_OF_THE_WORKER"]


def _write_attacks(wheels: Path, witness: str) -> None:
    plain = {"witness.py": witness}
    pth = {"attack.pth": "import witness; witness.witness('pth')\n"}
    write_wheel(wheels, "by_pth", "1.0", plain | pth)
    shadows = {f"{name}.py": f"import witness; witness.witness({name!r})\n" for name in SHADOWED}
    write_wheel(wheels, "by_shadow", "1.0", plain | shadows)
    call = "import witness; witness.witness(__name__)\n"
    names = ("__init__", "child/__init__", "child/run", "channel", "wire", "script", "page", "context", "text")
    sdk = {f"scrapeyard_sdk/{name}.py": call for name in names}
    rooms = ("", "sandbox/", "sandbox/inside/", "sandbox/walls/")
    ours = {f"scrapeyard/{room}{name}.py": call for room in rooms for name in ("__init__", "zygote", "parent", "walls")}
    write_wheel(wheels, "by_name", "1.0", plain | sdk | ours)
    write_wheel(wheels, "by_fork", "1.0", {"fork.pth": "import os, time; os.fork() or time.sleep(600)\n"})
    write_wheel(wheels, "by_exit", "1.0", {"exit.pth": "import os; os._exit(0)\n"})
    write_wheel(wheels, "by_path", "1.0", {"path.pth": "import sys; sys.path.insert(0, '/etc')\n/etc\n/\n"})
    write_wheel(wheels, "by_data", "1.0", plain | {"by_data-1.0.data/data/../../../../escaped.py": call})
    write_wheel(wheels, "by_dots", "1.0", plain | {"../../escaped.py": call})


def result(verdict: Verdict) -> Any:
    assert verdict.exit_reason is ExitReason.SUCCEEDED, verdict
    assert verdict.result is not None
    return json.loads(bytes(verdict.result))


def check_walled(told: dict[str, Any], proof: Path) -> None:
    for name, seen in told.items():
        assert seen["secret"] == "", name
        assert not seen["wrote"], name
        assert "SECRET_OF_THE_WORKER" not in seen["variables"], name
        assert seen["uid"] != 0, name
    assert {each.name for each in proof.iterdir()} == {"secret"}, "no code of a package ran outside the walls"


async def test_a_pth_file_runs_inside_the_walls_alone(stand: tuple[Furnished, Path]) -> None:
    furnished, proof = stand
    told = result(await furnished.run(furnished.scraper(TELL, "by_pth")))
    assert set(told) == {"pth"}, "once, where the script is loaded"
    check_walled(told, proof)


async def test_the_standard_library_cannot_be_shadowed(stand: tuple[Furnished, Path]) -> None:
    furnished, proof = stand
    source = "import asyncio, json, select, site, socket\n" + TELL
    told = result(await furnished.run(furnished.scraper(source, "by_shadow")))
    assert told == {}
    check_walled(told, proof)


async def test_the_sdk_and_the_platform_cannot_be_shadowed(stand: tuple[Furnished, Path]) -> None:
    furnished, proof = stand
    source = (
        "import sys, scrapeyard_sdk, scrapeyard_sdk.page\nfrom scrapeyard_sdk import text, checks\n"
        "def run(ctx):\n    ctx.fetch('http://site.test/').css('h1')\n    return getattr(sys, 'witnessed', {})\n"
    )
    told = result(await furnished.run(furnished.scraper(source, "by_name")))
    assert told == {}
    check_walled(told, proof)


@pytest.mark.parametrize("name", ["by_exit", "by_fork"])
async def test_a_package_that_misuses_the_process_ends_its_scraper_alone(
    stand: tuple[Furnished, Path], name: str
) -> None:
    furnished, _ = stand
    verdict = await furnished.run(furnished.scraper(TELL, name))
    assert verdict.exit_reason is ExitReason.SCRAPER_INVALID
    assert result(await furnished.run(furnished.scraper(TELL))) == {}


async def test_a_path_of_a_packages_own_opens_nothing(stand: tuple[Furnished, Path]) -> None:
    furnished, _ = stand
    source = "import os\ndef run(ctx):\n    try: return os.listdir('/etc')\n    except OSError: return []\n"
    assert set(result(await furnished.run(furnished.scraper(source, "by_path")))) <= {"localtime"}


@pytest.mark.parametrize("name", ["by_data", "by_dots"])
async def test_a_wheel_writes_only_into_its_environment(stand: tuple[Furnished, Path], name: str) -> None:
    furnished, proof = stand
    with contextlib.suppress(ScraperInvalid):  # or it is refused as a whole
        await furnished.run(furnished.scraper(TELL, name))
    home = furnished.bench.folder
    escaped = [each for each in home.rglob("escaped.py") if "packages" not in each.parts and "uv" not in each.parts]
    assert escaped == []
    check_walled({}, proof)


@pytest.mark.parametrize("moment", ["run", "import"])
async def test_every_door_is_shut_in_an_environment_too(
    stand: tuple[Furnished, Path], tmp_path: Path, moment: str
) -> None:
    furnished, proof = stand
    scraper = furnished.scraper("import witness\n" + TELL, "by_pth")
    environment = await furnished.environments.ready(scraper)
    assert environment is not None
    await furnished.run(scraper)
    listeners = Listeners()
    facts: dict[str, object] = {
        "worker": os.getpid(),
        "zygote": furnished.bench.sandbox._zygotes[environment.key].pid,
        "port": listeners.port,
        "listener": listeners.port,
        "abstract": listeners.abstract,
        "datagram": listeners.datagram,
        "path": listeners.path,
        "datagram_path": listeners.datagram_path,
        "data": str(furnished.environments._shelf.folder),
        "project": str(Path(__file__).parents[2]),
        "scrapers": str(furnished.bench.folder),
        "home": os.environ.get("HOME", "/root"),
        "secret": str(proof / "secret"),
    }
    try:
        source = doors.script(facts, at_import=moment == "import")
        found = result(await furnished.run(furnished.scraper(source, "by_pth")))
        assert {name: words for name, words in found.items() if not words.startswith("refused")} == {}
        assert listeners.visitors() == []
    finally:
        listeners.close()
