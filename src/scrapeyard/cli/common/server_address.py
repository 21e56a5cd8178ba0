"""Which server commands call: the environment's, the one that `scrapeyard login` keeps, or one on this machine."""

import os
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8000"
VARIABLES = ("SCRAPEYARD_SERVER", "SCRAPEYARD_URL")
"""The second is the former name of the first."""
KEY = "SCRAPEYARD_KEY"
_MAX_BYTES = 64 * 1024


def server_in_force() -> str:
    """The server's address where no option names one. Raises BadRequest if the kept file cannot be read."""
    return named_server()[0]


def named_server() -> tuple[str, str]:
    """The server's address, and what named it: a variable, a file, or empty for the default. Raises BadRequest."""
    for name in VARIABLES:
        if given := os.environ.get(name):
            return given, name
    kept = kept_server()
    return (kept, str(config_file())) if kept else (DEFAULT_URL, "")


def config_file() -> Path:
    """The user's file of the command line, which may not exist."""
    return user_folder("XDG_CONFIG_HOME", ".config") / "cli.toml"


def kept_server() -> str:
    """The server that `scrapeyard login` keeps; empty if there is none. Raises BadRequest."""
    return _kept()[0]


def key_for(server: str) -> str:
    """The key to call a server with: the environment's, else the one that `scrapeyard login` keeps for this server;
    empty if there is none. Raises BadRequest."""
    if given := os.environ.get(KEY):
        return given
    kept, key = _kept()
    return key if kept == server else ""


def _kept() -> tuple[str, str]:
    """The server and the key in the file; empty texts for what is not there."""
    from scrapeyard.errors import BadRequest

    file = config_file()
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except OSError as error:
        raise BadRequest(f"{file}: cannot be read: {error.strerror}") from None
    import tomllib

    try:
        table = tomllib.loads(text.decode())
    except ValueError as error:
        raise BadRequest(f"{file}: not TOML: {error}; `scrapeyard login URL` writes it anew") from None
    server, key = table.pop("server", ""), table.pop("key", "")
    if table or not isinstance(server, str) or not isinstance(key, str):
        raise BadRequest(f'{file}: write only server = "{DEFAULT_URL}" and key; `scrapeyard login URL` writes it anew')
    return server, key


def user_folder(variable: str, default: str) -> Path:
    """A folder of Scrapeyard below the one that an XDG variable names, or below `default` at home. May not exist."""
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else Path.home() / default) / "scrapeyard"
