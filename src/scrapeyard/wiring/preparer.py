"""Builds what prepares runs: secrets of the file and of the store, and installed packages."""

from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.repository.trust.stored_secrets import StoredSecrets
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.wiring.engine import Up
from scrapeyard.worker.attempts.environments import Preparer


async def start_preparer(settings: Settings, store: Store, environments: Environments, up: Up) -> Preparer:
    """The worker's preparer. Raises SettingsInvalid if the file of secrets cannot be used."""
    secrets = Secrets(settings.repository.secrets_file)
    stored = StoredSecrets(store.scraper_secrets, secrets)
    await up(stored.start, stored.stop)
    return Preparer(environments, secrets, stored)
