"""Programs that start at the same moment, on a busy machine, all come up; `test_chaos.py` shows it on a calm one."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.programs import Cluster

pytestmark = [pytest.mark.chaos]
long = pytest.mark.skipif(not os.environ.get("CHAOS_LONG"), reason="runs with CHAOS_LONG=1")
BURNER = "while True: pass"


@pytest.fixture
def busy_cores() -> Iterator[None]:
    """Two processes for each core that never rest."""
    burners = [subprocess.Popen([sys.executable, "-IS", "-c", BURNER]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@long
def test_fifty_starts_on_busy_cores(busy_cores: None) -> None:
    with Cluster(gateways=2, workers=2, dispatchers=2, is_fresh=True) as cluster:
        while True:
            assert [program.stop() for program in cluster.programs[-6:]] == [0] * 6
            if len(cluster.programs) >= 50:
                return
            for add in (cluster.add_gateway, cluster.add_worker, cluster.add_dispatcher):
                add()
                add()
            cluster.wait_until_up()
