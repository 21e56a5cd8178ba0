"""Which pipelines of a Scrapy project an import leaves out, because they only write to a database."""

import tomllib
from pathlib import Path

import pytest

from scrapeyard.repository.scrapy.project import read_project
from scrapeyard.repository.scrapy.scrapers import write_scrapers
from scrapeyard.repository.scrapy.stores import store_pipelines

STORE = """
import logging
import pymongo
from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem


class Part:
    def open_spider(self, spider):
        self.client = pymongo.MongoClient()

    def process_item(self, item, spider):
        {body}
"""
SPIDER = "from scrapy import Spider\nclass One(Spider):\n    name = 'one'\n"


def _made(root: Path, code: str) -> Path:
    files = {
        "scrapy.cfg": "[settings]\ndefault = made.settings\n",
        "made/__init__.py": "",
        "made/settings.py": "ITEM_PIPELINES = {'made.parts.Part': 1, 'made.parts.Gone': 2}",
        "made/parts.py": code,
        "made/spiders/__init__.py": SPIDER,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    "body",
    [
        "self.client.d.c.insert_one(dict(item)); return item",
        "self.client.d.c.insert_one(ItemAdapter(item).asdict()); return item",
        "row = dict(item); row['at'] = 1; self.client.d.c.insert_one(row); return item",
        "row = [item['a'].strip(), str(item)]; row.append(1); self.client.d.c.insert_one(row); return item",
        "self.save(item); return item\n\n    def save(self, data):\n        self.client.d.c.insert_one(dict(data))",
        "for data in item:\n            if not data:\n                raise DropItem(data)\n        return item",
        "if item.get('a'):\n            return item\n        logging.info(item['b'])\n        return item",
    ],
)
def test_a_pipeline_that_passes_items_on_is_left_out(tmp_path: Path, body: str) -> None:
    done = write_scrapers(read_project(_made(tmp_path / "made", STORE.format(body=body))), tmp_path / "to")
    config = tomllib.loads((done.folders[0] / "scraper.toml").read_text())["config"]
    assert config["skip_pipelines"] == ["made.parts.Part"]
    assert [note.partition(":")[0] for note in done.notes if "only writes" in note] == ["made.parts.Part is left out"]


@pytest.mark.parametrize(
    "code",
    [
        STORE.format(body="item['at'] = 1; return item"),
        STORE.format(body="adapter = ItemAdapter(item); adapter['at'] = 1; return item"),
        STORE.format(body="item.update(at=1); return item"),
        STORE.format(body="item = dict(item); return item"),
        STORE.format(body="return dict(item)"),
        STORE.format(body="self.client.d.c.insert_one(dict(item))"),
        STORE.format(body="if item['a']:\n            return item"),
        STORE.format(body="if not item['a']:\n            raise DropItem('no a')\n        return item"),
        STORE.format(body="open('copy.txt', 'w').write(item['a']); return item"),
        STORE.format(body="return self.clean(item)\n\n    def clean(self, item):\n        return item"),
        STORE.format(body="self.f(item); return item\n\n    def f(self, item):\n        item['at'] = 1"),
        STORE.format(body="self.f(item); return item\n\n    def f(self, data):\n        data['at'] = 1"),
        STORE.format(body="item['tags'].append('new'); return item"),
        STORE.format(body="item['seller']['name'] = 'A'; return item"),
        STORE.format(body="del item['seller']['name']; return item"),
        STORE.format(body="tags = item['tags']; tags.append('new'); return item"),
        STORE.format(body="for one in item['offers']:\n            one['at'] = 1\n        return item"),
        STORE.format(body="clean(item); return item"),
        STORE.format(body="return item").replace("class Part:", "class Part(Other):"),
        STORE.format(body="return item").replace("pymongo", "sqlite3"),
    ],
)
def test_any_other_pipeline_stays(tmp_path: Path, code: str) -> None:
    assert store_pipelines(read_project(_made(tmp_path, code))) == {}
