"""Files by extension, inputs from words, text for terminals."""

from pathlib import Path

import pytest

from scrapeyard.cli.common.inputs import (
    check_output,
    complete,
    is_address,
    is_url,
    read_input,
    whole_file,
    write_result,
)
from scrapeyard.cli.common.output import age, duration, encode, log_line, plain, size
from scrapeyard.errors import BadRequest


def written(path: Path, result: object) -> str:
    write_result(path, result)
    return path.read_bytes().decode()


def test_csv_has_all_keys_and_nested_values_as_json(tmp_path: Path) -> None:
    records = [{"a": 1, "b": "x,y"}, {"c": {"d": [True]}, "a": None}]
    assert written(tmp_path / "r.csv", records) == 'a,b,c\r\n1,"x,y",\r\n,,"{""d"":[true]}"\r\n'
    assert written(tmp_path / "one.CSV", {"a": 1.5}) == "a\r\n1.5\r\n"
    assert written(tmp_path / "none.csv", []) == "\r\n"


@pytest.mark.parametrize("result", [1, "x", [1], [{"a": 1}, 2], None])
def test_csv_refuses_what_is_no_table_and_leaves_no_file(tmp_path: Path, result: object) -> None:
    with pytest.raises(BadRequest, match=r"list of objects"):
        write_result(tmp_path / "r.csv", result)
    assert list(tmp_path.iterdir()) == []


def test_jsonl_has_one_record_a_line(tmp_path: Path) -> None:
    assert written(tmp_path / "r.jsonl", [{"a": "é"}, 2]) == '{"a":"é"}\n2\n'
    assert written(tmp_path / "one.jsonl", {"a": 1}) == '{"a":1}\n'


def test_a_file_that_fails_midway_keeps_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def fail() -> None:
        with whole_file(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("r.json", "old")]


def test_other_extensions_and_folders_are_refused(tmp_path: Path) -> None:
    check_output(None)
    check_output(tmp_path / "r.JSON")
    (tmp_path / "d.json").mkdir()
    for path in (tmp_path / "r.xml", tmp_path / "r", tmp_path / "d.json", tmp_path / "none" / "r.json"):
        with pytest.raises(BadRequest):
            check_output(path)


def test_pairs_are_json_unless_the_schema_says_text() -> None:
    schema = {"properties": {"sku": {"type": "string"}}}
    value = read_input(None, ["sku=12", "n=12", "on=true", "list=[1]", "word=a=b", "empty="], lambda: schema)
    assert value == {"sku": "12", "n": 12, "on": True, "list": [1], "word": "a=b", "empty": ""}


def test_a_schema_is_asked_only_for_pairs() -> None:
    def never() -> dict[str, object]:
        raise AssertionError

    assert read_input('{"a": 1}', [], never, "http://x/") == {"a": 1, "url": "http://x/"}


@pytest.mark.parametrize("pairs", [["a"], ["=1"], ["a=1", "a=2"]])
def test_wrong_pairs_are_refused(pairs: list[str]) -> None:
    with pytest.raises(BadRequest):
        read_input(None, pairs, dict)


@pytest.mark.parametrize("given", ["", "1", "[]", '{"a": NaN}', "[" * 100_000, "@/none/there"])
def test_wrong_inputs_are_refused(given: str) -> None:
    with pytest.raises(BadRequest, match="--input"):
        read_input(given, [], dict)


def test_two_urls_are_refused() -> None:
    with pytest.raises(BadRequest, match="url"):
        read_input('{"url": "http://a/"}', [], dict, "http://b/")
    assert is_url("HTTPS://a/")
    assert not is_url("shop/http")


def test_control_characters_are_spelled_out() -> None:
    assert plain("a\x1b[2J\r\n\u202eb\tc\x9b") == "a\\x1b[2J\\r\\n\\u202eb\tc\\x9b"
    assert plain("a\nb\x07", lines=True) == "a\nb\\x07"
    line = {"stream": "log", "text": "t\n", "level": "info", "fields": {"k": "\x1b"}}
    assert log_line(line) == "[info] t\\n k=\\x1b"


def test_json_for_terminals_has_no_control_characters_and_never_fails() -> None:
    assert encode({"a": "\x1b\x9b"}, pretty=True) == b'{\n  "a": "\\u001b\\u009b"\n}'
    assert encode("\ud800", pretty=False) == b'"\\ud800"'


def test_sizes_and_times_for_people() -> None:
    assert (size(812), size(1_500_000), duration(12.4), duration(3400)) == ("812 B", "1.4 MB", "12 ms", "3.4 s")
    assert age("2000-01-01T00:00:00.000Z").endswith(" d")


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("example.com", "https://example.com"),
        ("Example.com/P/1?a=b", "https://Example.com/P/1?a=b"),
        ("shop.example:8443/x/y", "https://shop.example:8443/x/y"),
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8800/product/1", "http://127.0.0.1:8800/product/1"),
        ("[::1]:8800/", "http://[::1]:8800/"),
        ("http://example.com", "http://example.com"),
    ],
)
def test_an_address_needs_no_scheme(target: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_address(target)
    assert complete(target) == url
    assert (url in capsys.readouterr().err) == (target != url)


@pytest.mark.parametrize(
    "target", ["shop/product", "shop.example/product", "shop.example/product@1.2.3", "shop", "a b.c", ".", ".."]
)
def test_a_scraper_or_a_word_is_no_address(target: str) -> None:
    assert not is_address(target)


def test_what_exists_here_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.example").mkdir()
    assert not is_address("shop.example")


def test_a_lone_address_is_the_url_of_the_input() -> None:
    def schema() -> dict[str, object]:
        return {"properties": {"page": {"type": "integer"}}}

    assert read_input(None, ["https://a.example/?x=1"], schema) == {"url": "https://a.example/?x=1"}
    assert read_input(None, ["page=2", "a.example/p"], schema) == {"page": 2, "url": "https://a.example/p"}
    with pytest.raises(BadRequest, match="one URL"):
        read_input(None, ["https://a.example/", "https://b.example/"], schema)
    with pytest.raises(BadRequest, match="url of its own"):
        read_input(None, ["url=https://a.example/", "https://b.example/"], schema)


def test_text_that_looks_like_a_number_stays_text_where_text_comes_first() -> None:
    kinds = {"a": ["string", "null"], "b": ["string", "number", "array", "null"], "c": ["integer", "string"]}
    schema = {"properties": {name: {"type": each} for name, each in kinds.items()}}
    found = read_input(None, ["a=007", "b=1.50"], lambda: schema)
    assert found == {"a": "007", "b": "1.50"}
    assert read_input(None, ["a=null", "b=[1]", "c=1"], lambda: schema) == {"a": None, "b": [1], "c": 1}
    assert read_input(None, ["a=true", "b=x"], lambda: schema) == {"a": "true", "b": "x"}
