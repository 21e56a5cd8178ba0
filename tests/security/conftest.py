"""What the sandbox allows its own processes is generous here: a busy machine must not change how an attack ends."""

from collections.abc import Iterator

import pytest

from scrapeyard.sandbox.handles import parent, zygote
from tests.leaks import PATIENCE


@pytest.fixture(scope="session", autouse=True)
def patient_sandbox() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zygote, "_HELLO_PATIENCE", PATIENCE)
        patch.setattr(parent, "_FORK_PATIENCE", PATIENCE)
        yield
