"""The duties of the dispatcher run on every kind of database, as the store's own contract does."""

from tests.contract.store.conftest import migrated_url

__all__ = ["migrated_url"]
