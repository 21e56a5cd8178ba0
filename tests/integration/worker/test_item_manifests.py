"""The manifests of a job's items, through a real worker and the gateway."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import NotFound
from scrapeyard.results import artifacts
from tests.leaks import PATIENCE
from tests.services.batch_yard import BatchYard, batch_yard

SCRIPT = """
from scrapeyard_sdk import Fail, Retry

def run(ctx, case, size=10):
    ctx.artifact('seen.txt', f'{case} {ctx.attempt} ' * 500)
    if case == 'fail': raise Fail('no')
    if case == 'twice' and ctx.attempt == 1: raise Retry('again', after=0)
    return {'case': case, 'text': 'x' * size}
"""
INPUTS = [{"case": "good", "size": 5000}, {"case": "twice"}, {"case": "fail"}]


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[BatchYard]:
    async with batch_yard(tmp_path, {"test/case": SCRIPT}) as yard:
        yield yard


async def test_each_item_of_a_job_with_objects_has_one(yard: BatchYard) -> None:
    assert yard.platform.gateway is not None
    job_id = await yard.job("test/case@1.0.0", INPUTS, results="objects", max_attempts=2)
    await yard.ended(job_id)
    blobs = ObjectBlobs.in_folder(yard.data_dir / "blobs")
    async with httpx.AsyncClient(base_url=yard.platform.gateway.url, timeout=PATIENCE) as client:

        async def manifest(key: str) -> dict[str, Any]:
            answer = await client.get(f"/api/jobs/{job_id}/items/{key}/download?artifact=manifest")
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            for each in found["objects"]:
                data = await artifacts.read(blobs, each["key"])
                assert (len(data), hashlib.sha256(data).hexdigest()) == (each["bytes"], each["sha256"])
            return found

        good, twice, bad = [await manifest(key) for key in ("k0", "k1", "k2")]
    for found, ended in ((good, "success"), (twice, "success"), (bad, "error")):
        assert (found["job_id"], found["status"], found["scraper"]) == (job_id, ended, "test/case@1.0.0")
    assert [each["name"] for each in good["objects"]] == ["seen.txt", "data.json", "metadata.json"]
    assert (twice["attempts"], twice["exit_reason"]) == (2, "succeeded")
    assert [each["name"] for each in bad["objects"]] == ["seen.txt", "metadata.json"]
    assert (bad["exit_reason"], bad["seq"], bad["result_bytes"]) == ("failed", 2, 0)


async def test_other_jobs_have_none(yard: BatchYard) -> None:
    assert yard.platform.gateway is not None
    job_id = await yard.job("test/case@1.0.0", INPUTS[:1])
    await yard.ended(job_id)
    blobs = ObjectBlobs.in_folder(yard.data_dir / "blobs")
    with pytest.raises(NotFound):
        await artifacts.read(blobs, keys.item_manifest(job_id, "k0"))
    async with httpx.AsyncClient(base_url=yard.platform.gateway.url, timeout=PATIENCE) as client:
        answer = await client.get(f"/api/jobs/{job_id}/items/k0/download?artifact=manifest")
    assert (answer.status_code, "policy.results" in answer.json()["detail"]) == (404, True)
