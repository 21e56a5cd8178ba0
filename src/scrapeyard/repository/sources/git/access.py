"""Address and login of a Git repository: the URL without secrets, and the environment variables for git.

A password or token never appears in an argument, a file or a message. An environment variable passes it to git's
credential prompt, which git uses only for the host of the URL, so a redirect to another host does not receive it.
"""

import re
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from msgspec import Struct

from scrapeyard.errors import SettingsInvalid
from scrapeyard.settings import SourceSettings

MAX_URL = 2000
_SCHEMES = {"https": "https", "http": "http:https", "ssh": "ssh", "file": "file"}
"""Scheme of the URL → protocols that git may use, redirects included."""
_SCP = re.compile(r"(?:[A-Za-z0-9._-]+@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<path>[^:].*)")
_HELPER = (
    """!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' """
    """"$SCRAPEYARD_GIT_USER" "$SCRAPEYARD_GIT_PASSWORD"; }; f"""
)
"""The credential helper: git runs it in its own shell, and the values come from the environment."""
_USER = "x-access-token"
"""The user name sent with a token: GitHub requires this one, other hosts accept any."""


class Access(Struct, frozen=True, kw_only=True):
    """A repository as git is called for it."""

    url: str
    """The URL for arguments: without a password."""
    shown: str
    """The URL for messages: without user, password and query."""
    protocols: str
    """Protocols that git may use, separated by colons."""
    config: tuple[tuple[str, str], ...] = ()
    """Configuration passed by the environment."""
    environ: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    """Secrets that no message may contain."""


def read_access(settings: SourceSettings) -> Access:
    """Check the URL and take the secrets out of it. Raises SettingsInvalid.

    Accepts https, http, ssh and file URLs, `user@host:path`, and local paths. Others, such as `ext::`, run programs.
    """
    url = settings.url.get_secret_value()
    if not url or len(url) > MAX_URL or not url.isprintable() or url.startswith("-") or " " in url:
        raise _fault(f"must be 1 to {MAX_URL} printable characters without spaces, and not begin with a dash")
    if "://" in url and "::" not in url.partition("://")[0]:
        return _from_url(url, settings)
    if (found := _SCP.fullmatch(url)) and not url.startswith(("/", ".")):
        if found["host"].startswith("-") or found["path"].startswith("-"):
            raise _fault("neither the host nor the path may begin with a dash")
        return Access(url=url, shown=url.rpartition("@")[2], protocols="ssh", environ=_ssh(settings))
    if "::" in url or ":" in url.partition("/")[0]:
        raise _fault("git's remote helpers (name::…) are not used; take an https, http, ssh or file URL")
    path = Path(url).absolute().as_posix()
    return Access(url=path, shown=path, protocols="file")


def _from_url(url: str, settings: SourceSettings) -> Access:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        raise _fault("not a URL that can be read") from None
    protocols = _SCHEMES.get(parts.scheme.lower())
    if protocols is None:
        raise _fault("the scheme must be https, http, ssh or file")
    if host.startswith("-") or (not host and parts.scheme != "file"):
        raise _fault("names no host")
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    shown = urlunsplit(bare._replace(query="", fragment=""))
    if parts.scheme == "ssh":
        return _from_ssh(url, shown, password, settings)
    if parts.scheme == "file":
        return Access(url=url, shown=shown, protocols=protocols)
    token = settings.token.get_secret_value()
    login = (user or _USER, token or password) if token or password else None
    query = (parts.query,) if parts.query else ()
    return _with_login(urlunsplit(bare), shown, protocols, login, query)


def _from_ssh(url: str, shown: str, password: str, settings: SourceSettings) -> Access:
    if password:
        raise _fault("ssh takes no password in its URL; use key_file")
    return Access(url=url, shown=shown, protocols="ssh", environ=_ssh(settings))


def _with_login(
    url: str, shown: str, protocols: str, login: tuple[str, str] | None, secrets: tuple[str, ...]
) -> Access:
    if login is None:
        return Access(url=url, shown=shown, protocols=protocols, secrets=secrets)
    if not all(part.isprintable() and part for part in login):
        raise SettingsInvalid("repository.source.token: must be printable characters")
    parts = urlsplit(url)
    where = f"credential.{parts.scheme}://{parts.netloc}.helper"
    return Access(
        url=url,
        shown=shown,
        protocols=protocols,
        config=((where, _HELPER),),
        environ={"SCRAPEYARD_GIT_USER": login[0], "SCRAPEYARD_GIT_PASSWORD": login[1]},
        secrets=(*secrets, login[1]),
    )


def _ssh(settings: SourceSettings) -> dict[str, str]:
    """ssh options: no prompts, known hosts only, no forwarding."""
    words = ["ssh", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oConnectTimeout=15"]
    words += ["-oServerAliveInterval=15", "-oServerAliveCountMax=2", "-oControlMaster=no", "-oControlPath=none"]
    words += ["-oForwardAgent=no", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no"]
    if settings.key_file is not None:
        words += ["-oIdentitiesOnly=yes", f"-oIdentityFile={_ssh_path(settings.key_file)}"]
    if settings.known_hosts is not None:
        words.append(f"-oUserKnownHostsFile={_ssh_path(settings.known_hosts)}")
    return {"GIT_SSH_COMMAND": shlex.join(words), "GIT_SSH_VARIANT": "ssh"}


def _ssh_path(path: Path) -> str:
    """A path for ssh's options: quoted, with ssh's placeholder characters escaped."""
    text = path.absolute().as_posix()
    if not text.isprintable() or any(sign in text for sign in '"\\$'):
        raise SettingsInvalid('repository.source: ssh cannot take a path with a quote, "\\" or "$"; rename the file')
    return f'"{text.replace("%", "%%")}"'


def _fault(problem: str) -> SettingsInvalid:
    return SettingsInvalid(f"repository.source.url: {problem}")
