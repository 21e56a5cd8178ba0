"""What a project's code uses that Scrapy 2.11 has and 2.19 has no longer, found without running it.

The names come from a comparison of every module of both versions, as installed.
"""

import ast
from collections.abc import Iterator
from typing import Any, Final

from scrapeyard.repository.scrapy.project import SpiderProject
from scrapeyard.repository.scrapy.reading import SourceClass, last_name
from scrapeyard.repository.scrapy.told import COMPONENTS, modules, tables, texts

_MODULES: Final = frozenset(
    {
        *("scrapy.core.downloader.handlers.http10", "scrapy.core.downloader.webclient"),
        *("scrapy.downloadermiddlewares.ajaxcrawl", "scrapy.downloadermiddlewares.decompression"),
        *("scrapy.http.common", "scrapy.loader.common", "scrapy.loader.processors"),
        *("scrapy.spidermiddlewares.offsite", "scrapy.spiders.init", "scrapy.utils.testproc"),
    }
)
_NAMES: Final = {
    "scrapy.contracts": "iterate_spider_output",
    "scrapy.crawler": "BaseSettings LogCounterHandler LogFormatter StatsCollector create_instance signals",
    "scrapy.downloadermiddlewares.httpcache": "Request Response Settings Spider",
    "scrapy.downloadermiddlewares.retry": "BackwardsCompatibilityMetaclass Request Settings Spider load_object",
    "scrapy.dupefilters": "BaseSettings Request Spider",
    "scrapy.extensions.feedexport": "build_storage create_instance",
    "scrapy.extensions.httpcache": "Headers Request Spider",
    "scrapy.extensions.memusage": "MailSender",
    "scrapy.http.headers": "CaselessDict",
    "scrapy.http.request": "escape_ajax obsolete_setter",
    "scrapy.http.request.form": "TextResponse",
    "scrapy.http.request.json_request": "JSONRequest",
    "scrapy.http.response": "obsolete_setter",
    "scrapy.http.response.text": "Request",
    "scrapy.middleware": "Settings Spider create_instance",
    "scrapy.pipelines": "Spider",
    "scrapy.pipelines.files": "Settings defer md5sum os threads",
    "scrapy.pipelines.images": "DropItem NoimagesDrop Settings get_func_args md5sum",
    "scrapy.pipelines.media": "Settings defer_result mustbe_deferred",
    "scrapy.robotstxt": "ReppyRobotParser",
    "scrapy.signals": "item_passed request_received stats_spider_closed stats_spider_closing stats_spider_opened",
    "scrapy.spiderloader": "BaseSettings walk_modules",
    "scrapy.spidermiddlewares.depth": "Request",
    "scrapy.spidermiddlewares.urllength": "Request",
    "scrapy.spiders.feed": "NotConfigured",
    "scrapy.statscollectors": "Spider",
    "scrapy.utils.conf": "ScrapyDeprecationWarning",
    "scrapy.utils.datatypes": "CaselessDict ScrapyDeprecationWarning",
    "scrapy.utils.defer": "IgnoreRequest defer is_asyncio_reactor_installed process_chain_both",
    "scrapy.utils.gz": "Response",
    "scrapy.utils.httpobj": "Request Response",
    "scrapy.utils.iterators": "re_rsearch xmliter",
    "scrapy.utils.log": "scrapy_components_versions",
    "scrapy.utils.misc": "create_instance extract_regex flatten md5sum replace_entities to_unicode",
    "scrapy.utils.python": "equal_attributes flatten iflatten",
    "scrapy.utils.request": "basic_auth_header request_authenticate request_fingerprint",
    "scrapy.utils.response": "Response deprecated response_httprepr",
    "scrapy.utils.serialize": "ScrapyJSONDecoder",
    "scrapy.utils.spider": "Request",
    "scrapy.utils.url": "add_or_replace_parameter add_or_replace_parameters canonicalize_url escape_ajax is_url "
    "file_uri_to_path parse_data_uri path_to_file_uri safe_download_url safe_url_string to_unicode url_query_cleaner "
    "url_query_parameter urldefrag",
}
"""By module: what can no longer be imported from it."""
_REMOVED: Final = _MODULES | {f"{module}.{name}" for module, names in _NAMES.items() for name in names.split()}
_REPLACED_METHODS: Final = {
    "from_settings": "from_crawler",
    "process_spider_output": "process_spider_output_async",
    "process_start_requests": "process_start",
}
"""Methods that Scrapy 2.11 calls and 2.19 does not, unless the class has the new one too."""
_OF_MEDIA: Final = frozenset({"file_downloaded", "file_path", "get_images", "image_downloaded", "thumb_path"})
"""Methods of pipelines for files and images, which Scrapy since 2.12 calls with the item."""
_MEDIA: Final = frozenset({"FilesPipeline", "ImagesPipeline", "MediaPipeline"})
"""Their bases, which want the crawler when they are made."""
_WITH_SPIDER: Final = {"_retry": 3, "_redirect": 4}
"""Methods of Scrapy's middlewares that took the spider too → with how many arguments."""


def needs_before(project: SpiderProject) -> list[str]:
    """What the project uses that the newest Scrapy no longer has, and that one before still has; sorted.

    Nothing for code with `async def start`, which that one does not call.
    """
    classes = project.tree.classes()
    functions = [each for found in classes for each in found.functions()]
    if any(isinstance(each, ast.AsyncFunctionDef) and each.name == "start" for each in functions):
        return []
    named = {text for table in tables(project) for setting in COMPONENTS for text in texts(table.get(setting))}
    ways = [way for found in classes for way in (*_uses(found), *(_methods(found) if _is_in(found, named) else ()))]
    gone = {text for text in named if text.startswith("scrapy.contrib.") or text.rpartition(".")[0] in _MODULES}
    return sorted({*(_REMOVED & modules(project.tree).keys()), *gone, *ways})


def _is_in(found: SourceClass, named: set[str]) -> bool:
    return f"{found.module}.{found.node.name}" in named


def _methods(found: SourceClass) -> Iterator[str]:
    """Methods of a class that settings name, which the newest Scrapy calls no longer, or not as plain generators."""
    methods = {each.name: each for each in found.functions()}
    for old, new in _REPLACED_METHODS.items():
        if isinstance(methods.get(old), ast.FunctionDef) and new not in methods:
            yield f"{found.node.name}.{old}"
    for name in sorted(_OF_MEDIA & methods.keys()):
        if not _takes(methods[name], "item"):
            yield f"{found.node.name}.{name} without item"
    if "__init__" in methods and _MEDIA & set(found.bases) and not _takes(methods["__init__"], "crawler"):
        yield f"{found.node.name}.__init__ without crawler"


def _uses(found: SourceClass) -> Iterator[str]:
    """What the class takes from a base of Scrapy's that is no longer there, or is called otherwise."""
    for node in ast.walk(found.node):
        name = node.attr if isinstance(node, ast.Attribute) else ""
        if name == "EXCEPTIONS_TO_RETRY" or (name == "start_requests" and _is_super(node)):
            yield f"{found.node.name}: {name} of its base"
        if name == "add" and isinstance(node, ast.Attribute) and last_name(node.value) == "fingerprints":
            yield f"{found.node.name}: fingerprints.add"
        if isinstance(node, ast.Call) and len(node.args) + len(node.keywords) >= _WITH_SPIDER.get(
            last_name(node.func), 1_000
        ):
            yield f"{found.node.name}: {last_name(node.func)} with the spider"


def _is_super(node: ast.AST) -> bool:
    """Whether it is an attribute of `super()`."""
    owner: Any = getattr(node, "value", None)
    return isinstance(owner, ast.Call) and last_name(owner.func) == "super"


def _takes(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether it has this parameter, or takes any."""
    given = function.args
    return given.kwarg is not None or any(each.arg == name for each in (*given.args, *given.kwonlyargs))
