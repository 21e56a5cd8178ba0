"""The settings of a project as a run uses them: the project's own, the call's, and those that the walls demand."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from scrapy.settings import Settings

from scrapeyard_sdk.context import Context
from scrapeyard_sdk.outcomes import ScraperError

_FORCED: dict[str, Any] = {
    "ASYNCIO_EVENT_LOOP": None,
    "HTTPCACHE_ENABLED": False,
    "JOBDIR": None,
    "LOG_FILE": None,
    "LOG_STDOUT": False,
    "MEMUSAGE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "SPIDER_LOADER_WARN_ONLY": True,
    "TELNETCONSOLE_ENABLED": False,
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "TWISTED_REACTOR_ENABLED": True,
}
"""Replaced by what the platform has, or impossible without a network. docs/scrapy.md says why for each."""
_STORES = {"FILES_STORE": "files", "IMAGES_STORE": "images"}
MAX_SETTINGS = 200


def set_environment(given: Any) -> None:
    """Set the variables of `[config.environment]`. Raises ScraperError if they are none."""
    if not isinstance(given, dict) or not all(isinstance(value, str | int | float) for value in given.values()):
        raise ScraperError("config.environment is a table of texts and numbers", "invalid_input")
    os.environ.update({str(name): as_text(value) for name, value in given.items()})


def as_text(value: Any) -> Any:
    """Numbers and flags as text, as a user types them; lists and objects as they are."""
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int | float) else value


def missing_variable(error: KeyError) -> str:
    """The variable of the environment that code asked for in vain; empty for another KeyError."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    asked = trace is not None and trace.tb_frame.f_code is type(os.environ).__getitem__.__code__
    return str(error.args[0]) if asked else ""


def read_settings(module: str, spider_modules: Iterable[str], given: Mapping[str, Any]) -> Settings:
    """The project's own. Raises whatever its settings module raises. `given` is for a project without one."""
    settings = Settings()
    if module:
        os.environ["SCRAPY_SETTINGS_MODULE"] = module
        settings.setmodule(module, priority="project")
    else:
        settings.update(dict(given), priority="project")
        settings.set("SPIDER_MODULES", list(spider_modules), priority="project")
    return settings


def add_given(settings: Settings, *tables: Any) -> None:
    """Add settings of the manifest and of the call; the last wins. Raises ScraperError."""
    for table in tables:
        if not isinstance(table, dict) or len(table) > MAX_SETTINGS:
            raise ScraperError(f"settings are a table of at most {MAX_SETTINGS} names", "invalid_input")
        for name, value in table.items():
            settings.set(str(name), value, priority="cmdline")


def skip_pipelines(settings: Settings, names: Any, ctx: Context) -> None:
    """Leave out the pipelines that `config.skip_pipelines` names, with a warning. Raises ScraperError for no list."""
    if not isinstance(names, list):
        raise ScraperError("config.skip_pipelines is a list of classes, as project.pipelines.Store", "invalid_input")
    pipelines = settings.getdict("ITEM_PIPELINES")
    paths = {key: key if isinstance(key, str) else f"{key.__module__}.{key.__qualname__}" for key in pipelines}
    if skipped := [key for key, path in paths.items() if path in names and pipelines[key] is not None]:
        kept = {key: order for key, order in pipelines.items() if key not in skipped}
        settings.set("ITEM_PIPELINES", kept, priority="cmdline")
        ctx.log(f"config.skip_pipelines leaves out {', '.join(paths[key] for key in skipped)}", "warning")


def force(settings: Settings, handler: type, ctx: Context) -> None:
    """Set what the walls demand, above everything that a project, a spider or a call says."""
    for name, value in _FORCED.items():
        settings.set(name, value, priority="cmdline")
    handlers = {"http": handler, "https": handler, "ftp": None, "s3": None}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")
    if settings.getpriority("LOG_LEVEL") in (None, 0):
        settings.set("LOG_LEVEL", "INFO", priority="cmdline")
    _bring_home(settings, ctx)


def _bring_home(settings: Settings, ctx: Context) -> None:
    """Let feeds and file stores write into the run's folder, from where they become artifacts."""
    feeds = settings.getdict("FEEDS")
    if uri := settings.get("FEED_URI"):  # before Scrapy 2.1, and still read
        feeds.setdefault(str(uri), {"format": settings.get("FEED_FORMAT") or "jsonlines"})
        settings.set("FEED_URI", None, priority="cmdline")
    kept = {near: options for uri, options in feeds.items() if (near := _near(str(uri), ctx))}
    settings.set("FEEDS", kept, priority="cmdline")
    for name, folder in _STORES.items():
        place = settings.get(name)
        if place and _is_far(str(place)):
            ctx.log(f"{name} is {folder}/ of the run; its files become artifacts", "warning")
            settings.set(name, folder, priority="cmdline")


def _near(uri: str, ctx: Context) -> str:
    """The path in the run's folder for a feed; empty for one that goes to the terminal."""
    if uri.startswith("file:"):
        uri = unquote(urlsplit(uri).path)
    if not _is_far(uri):
        return uri
    if uri.startswith("stdout:"):
        return ""
    name = PurePosixPath(urlsplit(uri).path).name or "feed"
    ctx.log(f"the feed {name} is written here and becomes an artifact: a run reaches no other storage", "warning")
    return name


def _is_far(place: str) -> bool:
    """Whether it lies outside of the run's folder."""
    if Path.cwd() in Path(os.path.normpath(place)).parents:
        return False
    return bool(urlsplit(place).scheme) or place.startswith(("/", "~")) or ".." in PurePosixPath(place).parts
