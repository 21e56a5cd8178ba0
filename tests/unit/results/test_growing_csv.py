"""CSV of records that is written while they come is the same file as one that is written at the end."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from scrapeyard.model.job import ExportWish
from scrapeyard.results.exports.builder import ExportBuilder
from scrapeyard.results.exports.protocol import Line

WISH = ExportWish(type="records", format="csv")


def lines(*records: dict[str, Any]) -> list[Line]:
    return [
        Line(str(number), "success", 1.0, None, b"{}", json.dumps(each).encode()) for number, each in enumerate(records)
    ]


class Live:
    """A file that is written as rows come."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.restarts = 0
        self.builder = ExportBuilder(WISH, self.data.extend, restart=self.restart)

    def restart(self) -> None:
        self.restarts += 1
        self.data.clear()

    def add(self, block: Sequence[Line]) -> str:
        self.builder.add_lines(block)
        self.builder.pass_on()
        return self.data.decode("utf-8-sig")

    def finish(self) -> bytes:
        for _ in self.builder.finish():
            pass
        assert self.builder.written.bytes == len(self.data)
        return bytes(self.data)


def whole(blocks: Sequence[Sequence[Line]]) -> bytes:
    data = bytearray()
    builder = ExportBuilder(WISH, data.extend)
    for block in blocks:
        builder.add_lines(block)
    for _ in builder.finish():
        pass
    return bytes(data)


def test_rows_are_there_at_once_and_new_columns_write_the_file_anew() -> None:
    live = Live()
    assert live.add(lines({"a": 1})).splitlines()[1:] == ["0,1"]
    assert live.add(lines({"a": 2})).splitlines()[1:] == ["0,1", "0,2"]
    grown = live.add(lines({"a": 3, "b": 4}, {"b": 5}))
    assert grown.splitlines() == ["_item,a,b", "0,1,", "0,2,", "0,3,4", "1,,5"]
    assert live.finish().decode("utf-8-sig") == grown


@pytest.mark.parametrize("count", [0, 1, 40])
def test_it_is_the_same_file_and_is_not_written_anew_for_every_column(count: int) -> None:
    blocks = [lines({f"column_{number}": number, "same": "x"}) for number in range(count)]
    live = Live()
    for block in blocks:
        live.add(block)
    assert live.finish() == whole(blocks)
    assert live.restarts <= 8
