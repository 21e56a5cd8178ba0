"""Building packages runs their code, so a worker that is root does not start with it."""

from pathlib import Path

import pytest

from scrapeyard.errors import SettingsInvalid
from scrapeyard.repository.environments import environments
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.settings import EnvironmentSettings


@pytest.mark.parametrize("user", [0, 1000])
async def test_packages_are_not_built_as_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(environments.os, "geteuid", lambda: user)
    made = Environments(EnvironmentSettings(source_builds=True), tmp_path)
    if user:
        await made.start()
        await made.stop()
        return
    with pytest.raises(SettingsInvalid, match="source_builds"):
        await made.start()
    wheels = Environments(EnvironmentSettings(), tmp_path)
    await wheels.start()
    await wheels.stop()
