"""A folder that cannot be written: each caller is told, and the log tells once when it begins and once when it ends."""

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import BlobsUnavailable


async def test_an_outage_is_logged_once(tmp_path: Path) -> None:
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    with capture_logs() as told:
        await blobs.put("a/one", b"1", "text/plain")
        shutil.rmtree(tmp_path / "blobs")
        (tmp_path / "blobs").write_text("in the way")
        for _ in range(3):
            with pytest.raises(BlobsUnavailable):
                await blobs.put("a/two", b"2", "text/plain")
        (tmp_path / "blobs").unlink()
        (tmp_path / "blobs").mkdir()
        for _ in range(2):
            await blobs.put("a/two", b"2", "text/plain")
    assert [(each["event"], each["log_level"]) for each in told] == [
        ("blobs.unwritable", "warning"),
        ("blobs.writable", "info"),
    ]
