"""Crawls with Scrapy itself: `python -m tests.services.plain_scrapy FOLDER SPIDER …` prints the items as JSON."""

import json
import os
import sys
from pathlib import Path

from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.conf import get_config
from scrapy.utils.reactor import install_reactor

install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")


def main(pairs: list[str]) -> None:
    """All in one process, which works in the last folder."""
    from twisted.internet import reactor
    from twisted.internet.defer import DeferredList

    crawls = [_crawler(*pair).crawl() for pair in zip(pairs[::2], pairs[1::2], strict=True)]
    DeferredList(crawls).addBoth(lambda _: reactor.stop())
    reactor.run()
    sys.stdout.write(json.dumps([json.loads((Path(folder) / "plain.json").read_bytes()) for folder in pairs[::2]]))


def _crawler(folder: str, spider: str) -> Crawler:
    os.chdir(folder)
    sys.path.insert(0, folder)
    settings = Settings()
    settings.setmodule(get_config().get("settings", "default"), priority="project")
    feeds = {**settings.getdict("FEEDS"), f"{folder}/plain.json": {"format": "json"}}
    forced = {"FEEDS": feeds, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False}
    for name, value in forced.items():
        settings.set(name, value, priority="cmdline")
    return Crawler(SpiderLoader.from_settings(settings).load(spider), settings)


if __name__ == "__main__":
    main(sys.argv[1:])
