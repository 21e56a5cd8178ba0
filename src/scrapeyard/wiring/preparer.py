"""Builds what prepares work: the intake of jobs, and for runs secrets of the file and of the store, and packages."""

from scrapeyard.blobs.port import Blobs
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.model import new_id
from scrapeyard.repository.environments.environments import Environments
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.repository.port import Catalogue
from scrapeyard.repository.trust.secrets import Secrets
from scrapeyard.repository.trust.stored_secrets import StoredSecrets
from scrapeyard.settings import Settings
from scrapeyard.store.ports.store import Store
from scrapeyard.wiring.backends import make_topics
from scrapeyard.wiring.engine import Up
from scrapeyard.wiring.pipeline import Engine
from scrapeyard.worker.attempts.environments import Preparer


async def start_preparer(settings: Settings, store: Store, environments: Environments, up: Up) -> Preparer:
    """The worker's preparer. Raises SettingsInvalid if the file of secrets cannot be used."""
    secrets = Secrets(settings.repository.secrets_file)
    stored = StoredSecrets(store.scraper_secrets, secrets)
    await up(stored.start, stored.stop)
    return Preparer(environments, secrets, stored)


def make_intake(settings: Settings, store: Store, blobs: Blobs, engine: Engine, catalogue: Catalogue) -> ItemImporter:
    """What makes items of the source of a job."""
    return ItemImporter(
        store=store,
        blobs=blobs,
        engine=engine,
        catalogue=catalogue,
        checker=InputChecker(),
        holder=new_id("intake"),
        topics=make_topics(settings),
    )
