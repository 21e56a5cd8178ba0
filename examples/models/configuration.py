"""Configuration: one tree of settings from file, environment and program, validated whole. Secrets stay hidden."""

import tempfile
from pathlib import Path

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import load, redacted

FILE = """
[worker]
slots = 8

[limits]
wall_seconds = 60
"""
ENVIRONMENT = {
    "SCRAPEYARD_WORKER__SLOTS": "4",
    "DATABASE_URL": "postgresql://scrapeyard:secret@db.internal/scrapeyard",
}

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "scrapeyard.toml").write_text(FILE)
    settings = load({"gateway": {"port": 8001}}, environ=ENVIRONMENT, folder=folder)
    print("from the program:", settings.gateway.port)
    print("from the environment, which beats the file:", settings.worker.slots)
    print("from the file:", settings.limits.wall_seconds)
    print("shown without its password:", redacted(settings)["database_url"])

    for wrong in ({"SCRAPEYARD_WORKER__SLOTS": "many"}, {"SCRAPEYARD_WORKER__SLOT": "4"}):
        try:
            load(environ=wrong, folder=folder)
        except SettingsInvalid as error:
            print("wrong:", error.message)
