"""Fixtures for every test: real servers, and a check that nothing leaked."""

pytest_plugins = ["tests.leaks", "tests.services.valkey", "tests.services.postgres"]
