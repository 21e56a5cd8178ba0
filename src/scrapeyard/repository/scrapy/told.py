"""What becomes of a project's settings and imports: honoured, replaced by the platform's own, or without effect."""

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from scrapeyard.repository.scrapy.project import SpiderProject
from scrapeyard.repository.scrapy.reading import SourceTree

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
    "bs4": "beautifulsoup4",
    "cssselect": "cssselect",
    "dateparser": "dateparser",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "extruct": "extruct",
    "html2text": "html2text",
    "jmespath": "jmespath",
    "jsonpath_ng": "jsonpath-ng",
    "lxml": "lxml",
    "numpy": "numpy",
    "openpyxl": "openpyxl",
    "pandas": "pandas",
    "price_parser": "price-parser",
    "pydantic": "pydantic",
    "requests": "requests",
    "scrapy_playwright": "scrapy-playwright",
    "sqlalchemy": "sqlalchemy",
    "tldextract": "tldextract",
    "validators": "validators",
    "yaml": "pyyaml",
}
"""Packages for modules that many projects use without saying so. Others are told, not guessed."""


class Setting(Struct, frozen=True, kw_only=True):
    """One setting of a project."""

    name: str
    instead: str = ""
    """What is there instead; empty for a setting that is honoured."""


def settings_told(project: SpiderProject) -> list[Setting]:
    """Each setting that the project or a spider sets, by name."""
    names = set(project.settings).union(*(spider.settings for spider in project.spiders))
    told = [Setting(name=name, instead=_instead(name)) for name in sorted(map(str, names))]
    return [*told, *_far_feeds(project)]


def _instead(name: str) -> str:
    return next((instead for start, instead in REPLACED.items() if name.startswith(start)), "")


def _far_feeds(project: SpiderProject) -> Iterator[Setting]:
    """Feeds and stores that are written elsewhere than in the project's folder."""
    for table in (project.settings, *(spider.settings for spider in project.spiders)):
        feeds: Any = table.get("FEEDS")
        places = [*(feeds if isinstance(feeds, dict) else ()), table.get("FILES_STORE"), table.get("IMAGES_STORE")]
        for place in places:
            if isinstance(place, str) and ("://" in place or place.startswith("/")):
                yield Setting(name=place, instead="it is written in the run's folder, and becomes an artifact")


def imports_of(tree: SourceTree) -> dict[str, str]:
    """Top-level module → the first file that imports it."""
    found: dict[str, str] = {}
    for path in tree.files():
        parsed = tree.tree(path)
        for node in ast.walk(parsed) if parsed else ():
            for name in _imported(node):
                found.setdefault(name, path.relative_to(tree.root).as_posix())
    return found


def _imported(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module.partition(".")[0]]
    return ()
