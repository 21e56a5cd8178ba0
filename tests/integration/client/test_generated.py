"""What is made of something else is up to date."""

from clients.generate import PAGE_GRANTS, PYTHON, TYPES, document, page_grants, sync_client
from clients.typescript_types import types_of


def test_the_sync_client_is_made_of_the_async_one() -> None:
    assert (PYTHON / "sync.py").read_text("utf-8") == sync_client(), "run `make clients`"


def test_the_types_of_the_typescript_client_are_made_of_the_document() -> None:
    assert TYPES.read_text("utf-8") == types_of(document()), "run `make clients`"


def test_the_page_knows_what_each_role_may_do() -> None:
    assert PAGE_GRANTS.read_text("utf-8") == page_grants(), "run `make clients`"
