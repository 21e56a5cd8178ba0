"""A page in the form wanted, and fields without a script: from the command line, with and without a server."""

import json
from collections.abc import Iterator

import pytest

from tests.integration.cli_stand import Ended, Stand

_BOTH = ("scrape", "run")


class Yard:
    """A server with a site, and commands that use them."""

    def __init__(self, stand: Stand, server: str, site: str) -> None:
        self.stand = stand
        self.server = server
        self.site = site.removesuffix("/")

    def __call__(self, *words: str) -> Ended:
        private = ("--allow-private",) if words[0] == "run" else ()
        return self.stand.cli(*words, *private, SCRAPEYARD_URL=self.server)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    stand = Stand(tmp_path_factory.mktemp("pages"))
    up = ("up", "--port", "0", "--data-dir", "data", "--allow-private")
    with (
        stand.serving("demo-site", "--port", "0", says=b"open at ") as site,
        stand.serving(*up, says=b"listens on ") as server,
    ):
        yield Yard(stand, server, site)


@pytest.mark.parametrize("command", _BOTH)
def test_a_page_as_a_file(yard: Yard, command: str) -> None:
    for name, part in (("page.md", "# Aurora Lamp"), ("page.html", "<h1"), ("page.txt", "Aurora Lamp")):
        ended = yard(command, f"{yard.site}/product/1", "-o", name)
        assert ended.status == 0, ended.err
        assert part in (yard.stand.folder / name).read_text()


@pytest.mark.parametrize("command", _BOTH)
def test_formats(yard: Yard, command: str) -> None:
    result = yard(command, f"{yard.site}/product/1", "--formats", "links,metadata").json
    assert result["metadata"]["h1"] == "Aurora Lamp"
    assert (bool(result["links"]), result["markdown"]) == (True, None)
    ended = yard(command, f"{yard.site}/product/1", "--formats", "pdf")
    assert ended.status != 0
    assert '"pdf" is not one of markdown, html, raw_html' in ended.err


@pytest.mark.parametrize("command", _BOTH)
def test_fields_without_a_script(yard: Yard, command: str) -> None:
    (yard.stand.folder / "fields.json").write_text(json.dumps({"none": {"css": ".none", "default": 0}}))
    words = ("--field", "title=h1", "--field", "link=a@href", "--fields", "@fields.json")
    result = yard(command, f"{yard.site}/product/1", *words).json
    assert (result["title"], result["none"], result["warnings"]) == ("Aurora Lamp", 0, [])
    assert list(result) == ["url", "status", "none", "title", "link", "warnings"]
    ended = yard(command, f"{yard.site}/product/1", "--field", "title=h1[")
    assert ended.status != 0
    assert '"h1[" is not a "selector"' in ended.err


def test_a_job_has_the_fields_as_columns(yard: Yard) -> None:
    urls = [f"{yard.site}/product/{number}" for number in (1, 2)]
    fields = json.dumps({"title": "h1", "price": {"css": ".price", "as": "price"}})
    ended = yard("jobs", "create", "--urls", *urls, "--fields", fields, "--watch")
    assert ended.status == 0, ended.err
    job = ended.out.split()[0]
    rows = yard("jobs", "results", job, "--format", "csv").out.lstrip("\ufeff").splitlines()
    columns = rows[0].split(",")
    assert {"url", "title", "price.amount", "price.currency"} < set(columns)
    assert len(rows) == 3


def test_a_list_without_a_server(yard: Yard) -> None:
    (yard.stand.folder / "urls.txt").write_text(f"{yard.site}/product/1\n")
    words = ("run", "builtin/select", "--file", "urls.txt", "--field", "title=h1", "-o", "rows.jsonl")
    ended = yard(*words)
    assert ended.status == 0, ended.err
    assert json.loads((yard.stand.folder / "rows.jsonl").read_text())["title"] == "Aurora Lamp"
