"""Several processes with one cache folder: the same version fetched at once, and every copy whole."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from scrapeyard.repository.archive.copies import Cache
from scrapeyard.repository.archive.files import list_files

PROGRAM = """
import asyncio, sys
from contextlib import suppress
from pathlib import Path
from scrapeyard.model import Limits
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue, Upkeep
from scrapeyard.repository.catalogue.loading import LoadTerms
from tests.services.scripted_source import SCRIPT, ScriptedSource

async def main():
    shop = ScriptedSource()
    for minor in range(15):
        shop.add(f"1.{minor}.0", script=f"{SCRIPT}# {'x' * 20000}\\n")
    catalogue = SourcedCatalogue([shop], Path(sys.argv[1]), {}, LoadTerms(ceiling=Limits()), Upkeep(start_seconds=600))
    print("ready", flush=True)
    sys.stdin.readline()
    await catalogue.start()
    print(sorted((each.ref.version, each.ref.digest) for l in catalogue.listings() if (each := l.scraper)), flush=True)
    await catalogue.stop()

asyncio.run(main())
"""


async def test_processes_that_fetch_the_same_at_once_agree(tmp_path: Path) -> None:
    cache = tmp_path / "data" / "cache"
    root = Path(__file__).parents[3]
    programs = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, str(cache)),
            cwd=root,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(3)
    ]
    try:
        for program in programs:
            assert program.stdout is not None
            assert await program.stdout.readline() == b"ready\n"
        ends = await asyncio.gather(*(program.communicate(b"go\n") for program in programs))
    finally:
        for program in programs:
            with suppress(ProcessLookupError):
                program.kill()
            await program.wait()
    assert [program.returncode for program in programs] == [0, 0, 0]
    told = {out.splitlines()[-1] for out, _ in ends}
    assert len(told) == 1
    assert told.pop().count(b"('1.") == 15
    copies = sorted(path.name for path in cache.iterdir())
    assert len(copies) == 15, "and nothing else is left"
    assert all(Cache(cache).files(copy) for copy in copies)
    assert all(len(list_files(cache / copy, cache / copy, marker="", label="")) == 2 for copy in copies)
