"""Chooses the master keys by the settings."""

from scrapeyard.sealing.masters import FILE, CommandMasters, FileMasters, LocalMasters, read_key
from scrapeyard.sealing.port import Masters
from scrapeyard.settings import Settings


def make_masters(settings: Settings) -> Masters:
    """The key, file or command that the settings name; otherwise a file in the data directory. Raises
    SettingsInvalid."""
    secrets = settings.secrets
    if secrets.kms_command:
        return CommandMasters(secrets.kms_command)
    if secrets.master_key_file is not None:
        return FileMasters(secrets.master_key_file)
    if text := secrets.master_key.get_secret_value():
        old = (key.get_secret_value() for key in secrets.old_master_keys)
        keys = [read_key(text, "secrets.master_key"), *(read_key(key, "secrets.old_master_keys") for key in old)]
        return LocalMasters(keys)
    return FileMasters(settings.data_dir.resolve() / FILE, create=True)
