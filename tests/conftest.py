"""Fixtures for every test: real servers, a temporary folder for the whole run, and a check that nothing leaked."""

import signal

from hypothesis import settings

settings.register_profile("patient", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("patient")

signal.signal(signal.SIGINT, signal.default_int_handler)
"""Where a shell runs the tests in the background it has them ignore Ctrl-C, and so would the programs they start."""

pytest_plugins = [
    "tests.leaks",
    "tests.temporary",
    "tests.services.postgres",
    "tests.services.seaweed",
    "tests.services.static_site",
    "tests.services.valkey",
]
