"""What a fresh interpreter does for one call: import what scrapers import, read the input, print the result."""

import json
import sys

import httpx  # noqa: F401 - its import is what is measured
import selectolax.lexbor  # noqa: F401 - likewise

from benchmarks.peers import noop

if __name__ == "__main__":
    json.dump(noop.run(json.load(sys.stdin)), sys.stdout)
