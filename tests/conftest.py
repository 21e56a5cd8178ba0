"""Fixtures for every test: real servers, and a check that nothing leaked."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("patient")

pytest_plugins = [
    "tests.leaks",
    "tests.services.postgres",
    "tests.services.seaweed",
    "tests.services.static_site",
    "tests.services.valkey",
]
