"""`python -m benchmarks.peers.celery_group ITEMS`: groups of no-op tasks, one task for each item, results collected.

Groups of 1,000 are sent ahead while the results of earlier ones come in: one group of all would keep everything in
memory, and one at a time would leave the workers idle in between. Prints the tasks done in a second.
"""

import sys
import time
from collections import deque
from itertools import islice

from celery import group
from celery.result import GroupResult

from benchmarks.peers.celery_tasks import run

_GROUP = 1000
_AHEAD = 4


def main(items: int) -> float:
    """Tasks a second, from the first that is sent to the last result."""
    run.apply_async(({},)).get(timeout=60)
    inputs = iter({"url": f"http://shop{n % 7}.example/p/{n}", "n": n} for n in range(items))
    under_way: deque[GroupResult] = deque()
    done, began = 0, time.perf_counter()
    while some := list(islice(inputs, _GROUP)):
        under_way.append(group(run.s(one) for one in some).apply_async())
        if len(under_way) > _AHEAD:
            done += len(under_way.popleft().join_native(timeout=600))
    done += sum(len(each.join_native(timeout=600)) for each in under_way)
    if done != items:
        raise SystemExit(f"{done} results for {items} tasks")
    return done / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.stdout.write(f"{main(int(sys.argv[1])):.3f}\n")
