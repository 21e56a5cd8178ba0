"""Where the value of each setting came from: for people who ask why a server behaves as it does."""

from collections.abc import Mapping
from typing import Any

from scrapeyard.settings.aliases import LOCALE, language, names_of

DEFAULT = "default"


class SettingOrigins:
    """Knows every source that settings were read from. Keeps names and values as they were at the start.

    All are equal: settings with the same values are, wherever these came from.
    """

    def __init__(
        self,
        *,
        given: Mapping[str, Any] = {},
        environ: Mapping[str, str] = {},
        dotenv: Mapping[str, str] = {},
        file: tuple[str, Mapping[str, Any]] = ("", {}),
    ) -> None:
        self._given = given
        self._named = (("environment", dict(environ)), (".env", dict(dotenv)))
        self._everywhere = {**dotenv, **environ}
        self._file, self._tree = file

    def of(self, key: str, environment: str) -> str:
        """The strongest: `command line`, `environment NAME`, `.env NAME`, the file's name, or `default`."""
        if at_key(self._given, key) is not None:
            return "command line"
        names = [environment, *names_of(key, self._everywhere)]
        for source, values in self._named:
            for name in names:
                if values.get(name) or (name == environment and values.get(name) is not None):
                    return f"{source} {name}"
        if at_key(self._tree, key) is not None:
            return self._file
        return self._locale() if key == "log.lang" else DEFAULT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SettingOrigins)

    def __hash__(self) -> int:
        return hash(SettingOrigins)

    def _locale(self) -> str:
        chosen = next((name for name in LOCALE if self._everywhere.get(name)), "")
        return f"environment {chosen}" if language(self._everywhere) else DEFAULT


def at_key(tree: Any, key: str) -> Any:
    """The value at a dotted key of nested mappings; None if there is none."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree
