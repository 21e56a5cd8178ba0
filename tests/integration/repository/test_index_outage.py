"""A package index that is away is not the scraper's fault: the run may be tried again, and the build is."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from scrapeyard.errors import ScraperInvalid, SourceUnavailable
from scrapeyard.model import EnvironmentStatus, Scraper, ScraperRef
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.settings import EnvironmentSettings
from tests.contract.sandboxes import eventually
from tests.leaks import PATIENCE
from tests.services.package_index import PackageIndex, serve_packages
from tests.services.ports import free_port
from tests.services.wheels import write_wheel

REQUIRES = Scraper(ref=ScraperRef(id="test/tiny", version="1.0.0", digest="a"), folder=Path(), requirements=("tiny",))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", str(int(PATIENCE)))
    write_wheel(tmp_path / "wheels", "tiny", "1.0", {"tiny.py": ""})
    with serve_packages(tmp_path / "wheels") as index:
        yield index


@pytest.fixture
async def environments(index: PackageIndex, tmp_path: Path) -> AsyncIterator[Environments]:
    settings = EnvironmentSettings.model_validate({"index_url": index.url, "retry_seconds": 1e-6})
    made = Environments(settings, tmp_path / "environments")
    await made.start()
    yield made
    await made.stop()


@pytest.mark.parametrize("status", [500, 502, 503, 429, 401, 403])
async def test_an_index_that_fails_is_tried_again(environments: Environments, index: PackageIndex, status: int) -> None:
    index.status = status
    with pytest.raises(SourceUnavailable, match="cannot be installed now"):
        await environments.ready(REQUIRES)
    index.status = 200
    assert await environments.ready(REQUIRES) is not None


async def test_downloads_that_fail_are_tried_again_with_the_same_lock(
    environments: Environments, index: PackageIndex, tmp_path: Path
) -> None:
    """It resolves, then the index goes away before the wheel is downloaded."""
    assert await environments.ready(REQUIRES) is not None
    locks = {path.name: path.read_bytes() for path in (tmp_path / "environments" / "locks").iterdir()}
    assert locks
    again = Environments(
        EnvironmentSettings.model_validate({"index_url": index.url, "retry_seconds": 1e-6}), tmp_path / "other"
    )
    await again.start()
    try:
        for name, lock in locks.items():
            (tmp_path / "other" / "locks" / name).write_bytes(lock)
        index.status = 503
        with pytest.raises(SourceUnavailable):
            await again.ready(REQUIRES)
        assert {path.name for path in (tmp_path / "other" / "locks").iterdir()} == set(locks)
    finally:
        await again.stop()


async def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    url = f"http://user:hidden-password@127.0.0.1:{free_port()}/simple"
    environments = Environments(EnvironmentSettings.model_validate({"index_url": url}), tmp_path / "environments")
    await environments.start()
    try:
        with pytest.raises(SourceUnavailable) as caught:
            await environments.ready(REQUIRES)
        assert caught.value.retry_after < 60
        for hidden in ("hidden-password", "127.0.0.1", "://"):
            assert hidden not in caught.value.message
    finally:
        await environments.stop()


async def test_a_build_ahead_is_tried_again_without_a_call(environments: Environments, index: PackageIndex) -> None:
    index.status = 503
    environments.want(REQUIRES)
    await eventually(lambda: environments.state(REQUIRES).status is EnvironmentStatus.FAILED)
    index.status = 200

    def ready() -> bool:
        environments.want(REQUIRES)
        return environments.state(REQUIRES).status is EnvironmentStatus.READY

    await eventually(ready)


async def test_a_package_that_does_not_exist_is_the_authors_fault(environments: Environments) -> None:
    ref = ScraperRef(id="test/none", version="1.0.0", digest="b")
    with pytest.raises(ScraperInvalid):
        await environments.ready(Scraper(ref=ref, folder=Path(), requirements=("nowhere",)))
