"""The contract of the store runs on every kind of database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import database_url

of_sql = pytest.mark.parametrize("migrated_url", ["sqlite", "postgresql"], indirect=True)
"""For what only a database with SQL has, such as constraints and statements."""


@pytest.fixture(params=["sqlite", "postgresql", "dynamodb"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    with database_url(request.param, request, tmp_path) as url:
        yield url
