"""What becomes of a project's settings and imports: honoured, replaced by the platform's own, or without effect."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from scrapeyard.repository.scrapy.project import SpiderProject
from scrapeyard.repository.scrapy.reading import SourceTree, is_known, last_name, modules_of

REPLACED: Final = {
    "AWS_": "a run reaches no other storage: feeds and files become artifacts",
    "BIND_ADDRESS": "the worker opens the connections",
    "DNS": "the worker resolves names",
    "DOWNLOADER_CLIENT": "the worker opens the connections; `profile` of the policy says how they look",
    "DOWNLOADER_HTTPCLIENTFACTORY": "the worker opens the connections",
    "DOWNLOAD_BIND_ADDRESS": "the worker opens the connections",
    "DOWNLOAD_HANDLERS": "pages are fetched by the worker, through ctx.fetch",
    "DOWNLOAD_TLS": "the worker opens the connections",
    "DOWNLOAD_VERIFY_CERTIFICATES": "the worker checks certificates; http.ca_bundle adds authorities",
    "FTP_": "there is no FTP here",
    "GCS_": "a run reaches no other storage: feeds and files become artifacts",
    "HTTPCACHE_": "`cache` and `max_age_seconds` of the policy",
    "HTTPPROXY_": "`proxy` of the policy, and the pools of proxies",
    "JOBDIR": "a run starts anew; jobs go on by themselves",
    "LOG_FILE": "the log of the run",
    "LOG_STDOUT": "the log of the run, which has stdout too",
    "MAIL_": "webhooks and alerts",
    "MEMUSAGE_": "limits.memory_mb of the manifest",
    "PLAYWRIGHT_": "requests with meta playwright are fetched in the worker's browser",
    "REACTOR_THREADPOOL_MAXSIZE": "limits.threads of the manifest",
    "REMOTE_CONTROL_": "the API of the platform",
    "ROTATING_PROXY_": "`proxy` of the policy, and the pools of proxies",
    "SPIDER_LOADER_WARN_ONLY": "always true: a broken module does not stop the other spiders",
    "TELNETCONSOLE_": "the API of the platform",
    "TWISTED_REACTOR": "always the asyncio reactor",
}
"""Beginnings of names of settings, and what is there instead."""
NETWORK: Final = frozenset(
    {
        *("aiohttp", "aiokafka", "boto3", "botocore", "curl_cffi", "elasticsearch", "ftplib", "httpx", "kafka"),
        *("motor", "mysql", "MySQLdb", "paramiko", "pika", "playwright", "psycopg", "psycopg2", "pymongo"),
        *("pymysql", "redis", "requests", "scrapy_redis", "selenium", "smtplib", "telnetlib", "urllib3"),
    }
)
"""Modules that open connections of their own, which a run cannot."""
PACKAGES: Final = {
    "PIL": "pillow",
    "boto3": "boto3",
    "bs4": "beautifulsoup4",
    "cssselect": "cssselect",
    "dateparser": "dateparser",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "elasticsearch": "elasticsearch",
    "extruct": "extruct",
    "html2text": "html2text",
    "inline_requests": "scrapy-inline-requests",
    "jmespath": "jmespath",
    "jsonpath_ng": "jsonpath-ng",
    "lxml": "lxml",
    "motor": "motor",
    "mysql": "mysql-connector-python",
    "numpy": "numpy",
    "openpyxl": "openpyxl",
    "pandas": "pandas",
    "price_parser": "price-parser",
    "psycopg2": "psycopg2-binary",
    "pydantic": "pydantic",
    "pymongo": "pymongo",
    "pymysql": "pymysql",
    "redis": "redis",
    "requests": "requests",
    "rotating_proxies": "scrapy-rotating-proxies",
    "scrapy_deltafetch": "scrapy-deltafetch",
    "scrapy_fake_useragent": "scrapy-fake-useragent",
    "scrapy_playwright": "scrapy-playwright",
    "scrapy_splash": "scrapy-splash",
    "scrapy_user_agents": "scrapy-user-agents",
    "sqlalchemy": "sqlalchemy",
    "tldextract": "tldextract",
    "validators": "validators",
    "yaml": "pyyaml",
}
"""Packages for modules that many projects use without saying so. Others are told, not guessed."""


_IMAGES: Final = "PIL"
_IMAGES_MODULE: Final = "scrapy.pipelines.images"
"""Without Pillow, Scrapy switches its pipeline off, and also a project's own that derives from it."""
_IMAGES_PIPELINE: Final = f"{_IMAGES_MODULE}.ImagesPipeline"
COMPONENTS: Final = frozenset(
    {
        *("ADDONS", "DOWNLOADER_MIDDLEWARES", "DUPEFILTER_CLASS", "EXTENSIONS", "FEED_EXPORTERS", "FEED_STORAGES"),
        *("ITEM_PIPELINES", "LOG_FORMATTER", "REQUEST_FINGERPRINTER_CLASS", "SCHEDULER", "SPIDER_MIDDLEWARES"),
        "STATS_CLASS",
    }
)
"""Settings that name classes."""
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_PYTHON2: Final = frozenset(
    {"ConfigParser", "HTMLParser", "Queue", "StringIO", "cPickle", "httplib", "urllib2", "urlparse"}
)
_REMOVED = "Scrapy has it no longer; change the import, or the spider cannot run"
GONE: Final = {
    **dict.fromkeys(sorted(_PYTHON2), "a module of Python 2; change the import, or the spider cannot run"),
    **dict.fromkeys(
        (
            *("scrapy.conf", "scrapy.contrib", "scrapy.contrib_exp", "scrapy.log", "scrapy.project", "scrapy.spider"),
            *("scrapy.command", "scrapy.linkextractor", "scrapy.optional_features", "scrapy.stats", "scrapy.xlib"),
            *("scrapy.linkextractors.sgml", "scrapy.selector.HtmlXPathSelector", "scrapy.squeue", "scrapy.statscol"),
            *("scrapy.dupefilter", "scrapy.item.BaseItem", "scrapy.item.DictItem", "scrapy.spiders.BaseSpider"),
            *("scrapy.telnet", "scrapy.utils.markup", "scrapy.webservice"),
        ),
        _REMOVED,
    ),
}
"""Modules that old projects import, and what to do."""


class Setting(Struct, frozen=True, kw_only=True):
    """One setting of a project."""

    name: str
    instead: str = ""
    """What is there instead; empty for a setting that is honoured."""


def settings_told(project: SpiderProject) -> list[Setting]:
    """Each setting that the project or a spider sets, by name."""
    names = set(project.settings).union(*(spider.settings for spider in project.spiders))
    told = [Setting(name=name, instead=_instead(name)) for name in sorted(each for each in names if is_known(each))]
    return [*told, *_far_feeds(project)]


def _instead(name: str) -> str:
    return next((instead for start, instead in REPLACED.items() if name.startswith(start)), "")


def _far_feeds(project: SpiderProject) -> Iterator[Setting]:
    """Feeds and stores that are written elsewhere than in the project's folder."""
    for table in tables(project):
        feeds: Any = table.get("FEEDS")
        places = [*(feeds if isinstance(feeds, dict) else ()), table.get("FILES_STORE"), table.get("IMAGES_STORE")]
        for place in places:
            if isinstance(place, str) and ("://" in place or place.startswith("/")):
                yield Setting(name=place, instead="it is written in the run's folder, and becomes an artifact")


def imports_of(tree: SourceTree) -> dict[str, str]:
    """Top-level module → the first file that imports it, or something of Scrapy that needs it."""
    found: dict[str, str] = {}
    for module, file in modules(tree).items():
        found.setdefault(_IMAGES if module.startswith(_IMAGES_MODULE) else module.partition(".")[0], file)
    return found


def beside(project: SpiderProject) -> dict[str, Path]:
    """Modules that the project imports from the folder above its own, with their files or folders.

    Some projects add that folder to `sys.path`, or have a link to it. A module with the name of a package that is known
    here is that package.
    """
    if project.tree.only is not None:
        return {}
    own = {path.relative_to(project.root).parts[0].removesuffix(".py") for path in project.tree.files()}
    above = project.root.resolve().parent
    found: dict[str, Path] = {}
    for module in imports_of(project.tree).keys() - own - PACKAGES.keys() - sys.stdlib_module_names - {"scrapy", ""}:
        file, folder = above / f"{module}.py", above / module
        if file.is_file():
            found[module] = file
        elif folder.is_dir() and any(folder.glob("*.py")):
            found[module] = folder
    return found


def imports_told(project: SpiderProject) -> list[str]:
    """Notes about modules that are gone, and about what the project reads of its environment."""
    found = modules(project.tree)
    files = {gone: next((found[each] for each in found if f"{each}.".startswith(f"{gone}.")), "") for gone in GONE}
    notes = [f"{file} imports {gone}: {GONE[gone]}" for gone, file in files.items() if file]
    if variables := variables_of(project.tree):
        notes.append(f"the code reads environment variables: set {', '.join(variables)} in [config.environment]")
    if (project.root / ".env").is_file():
        notes.append(".env is not copied, because it may hold secrets: set its values in [config.environment]")
    return notes


def tables(project: SpiderProject) -> list[dict[str, Any]]:
    """The settings of the project, and those of each spider."""
    return [project.settings, *(spider.settings for spider in project.spiders)]


def settings_modules(project: SpiderProject) -> dict[str, str]:
    """Top-level modules that only settings name, with the setting."""
    found: dict[str, str] = {}
    for table in tables(project):
        for setting in COMPONENTS & table.keys():
            for text in texts(table[setting]):
                if _DOTTED.fullmatch(text):
                    found.setdefault(_IMAGES if text == _IMAGES_PIPELINE else text.partition(".")[0], setting)
    return found


def variables_of(tree: SourceTree) -> list[str]:
    """Environment variables that the code reads by a constant name, sorted."""
    trees = (parsed for path in tree.files() if (parsed := tree.tree(path)))
    return sorted({name for parsed in trees for node in ast.walk(parsed) if (name := _variable(node))})


def _variable(node: ast.AST) -> str:
    """`os.environ["X"]`, `os.environ.get("X")` and `os.getenv("X")`."""
    if isinstance(node, ast.Subscript) and last_name(node.value) == "environ":
        key: ast.AST = node.slice
    elif isinstance(node, ast.Call) and node.args and _reads_environment(node.func):
        key = node.args[0]
    else:
        return ""
    return (
        key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier() else ""
    )


def _reads_environment(function: ast.expr) -> bool:
    owner = last_name(function.value) if isinstance(function, ast.Attribute) else ""
    return last_name(function) == "getenv" or (owner == "environ" and last_name(function) in ("get", "pop"))


def texts(value: Any) -> Iterator[str]:
    """Every text in a setting, also in its tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in (*value, *value.values()):
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def modules(tree: SourceTree) -> dict[str, str]:
    """Each module that the code imports by its whole name → the first file that does. Nothing runs `setup.py`."""
    found: dict[str, str] = {}
    for path in (each for each in tree.files() if each != tree.root / "setup.py"):
        parsed = tree.tree(path)
        for node in ast.walk(parsed) if parsed else ():
            if isinstance(node, ast.ImportFrom) and node.level:
                continue
            for name in modules_of(node):
                found.setdefault(name, path.relative_to(tree.root).as_posix())
    return found
