"""Fixtures for every test: real servers, and a check that nothing leaked."""

pytest_plugins = [
    "tests.leaks",
    "tests.services.postgres",
    "tests.services.seaweed",
    "tests.services.static_site",
    "tests.services.valkey",
]
