"""Fixtures for every test: real servers, a temporary folder for the whole run, and a check that nothing leaked."""

import gc
import importlib
import signal
from functools import cache

import httpx._transports.default
import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# How long an example takes is the machine's affair. The same examples in every run: what `explore` finds gets a test.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", _PATIENT)
settings.register_profile("steady", _PATIENT, derandomize=True)
settings.load_profile("steady")

# Hypothesis also draws from the constants of the modules that a process happens to have loaded: other examples in each.
providers._get_local_constants = lambda: providers._local_constants  # type: ignore[attr-defined]

# Errors that the tests provoke are logged plainly: drawing a coloured traceback takes a second.
structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])

# To load the certificates takes longer than most calls: one context for all clients.
httpx._transports.default.create_ssl_context = cache(httpx._transports.default.create_ssl_context)

gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick` is what `make test-quick` gives."""
    parser.addoption("--quick", action="store_true", help="skip the tests that need a server")
    parser.addoption("--costs", action="store_true", help="tell the processor time of files and tests")


def pytest_configure(config: pytest.Config) -> None:
    """Measure only when asked: it takes time itself."""
    if config.getoption("--costs"):
        config.pluginmanager.register(importlib.import_module("tests.costs"))


@pytest.fixture(scope="session")
def real_servers(request: pytest.FixtureRequest) -> None:
    """Asked for by every fixture that starts a server."""
    if request.config.getoption("--quick"):
        pytest.skip("it needs a server: `make test` runs it")


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the garbage collector need not look at it again and again, nor look so often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


signal.signal(signal.SIGINT, signal.default_int_handler)
"""Where a shell runs the tests in the background it has them ignore Ctrl-C, and so would the programs they start."""

pytest_plugins = [
    "tests.leaks",
    "tests.services.azurite",
    "tests.services.postgres",
    "tests.services.seaweed",
    "tests.temporary",
    "tests.services.static_site",
    "tests.services.kafka",
    "tests.services.nats",
    "tests.services.sqs",
    "tests.services.valkey",
]
