"""Tables of a page as rows."""

from scrapeyard_sdk import parse_html


def test_a_table_with_headers_gives_records() -> None:
    html = """<table><caption>Sizes</caption><tr><th>Name<th>Price<th>Price<th></tr>
    <tr><td>Tea <b>pot</b><td>1<td>2<td>x</tr><tr><td colspan=4></tr><tr><td>Cup<td>3</tr></table>"""
    (table,) = parse_html(html).tables()
    assert (table.caption, table.headers) == ("Sizes", ["Name", "Price", "Price", ""])
    assert table.rows == [["Tea pot", "1", "2", "x"], ["Cup", "3", "", ""]]
    assert table.records[0] == {"Name": "Tea pot", "Price": "1", "Price_2": "2", "column_4": "x"}


def test_cells_that_span_are_repeated() -> None:
    html = """<table><thead><tr><th rowspan=2>City<th colspan=2>Heat<tr><th>Day<th>Night</thead>
    <tr><td rowspan=2>Bonn<td>9<td>1</tr><tr><td colspan=2>8</tr><tfoot><tr><td>Sum<td>17<td>9</table>"""
    (table,) = parse_html(html).tables()
    assert table.headers == ["City", "Heat Day", "Heat Night"]
    assert table.rows == [["Bonn", "9", "1"], ["Bonn", "8", "8"], ["Sum", "17", "9"]]


def test_a_table_inside_another_is_its_own() -> None:
    html = "<table><tr><td>out<table><tr><td>in</td></tr></table></td><td>b</td></tr></table><table></table>"
    outer, inner = parse_html(html).tables()
    assert (outer.headers, outer.rows) == ([], [["out in", "b"]])
    assert outer.records == []
    assert inner.rows == [["in"]]


def test_absurd_spans_are_bounded() -> None:
    html = f"<table><tr><td colspan=99999999 rowspan=x>a</td></tr>{'<tr><td colspan=999 rowspan=999>b' * 3}</table>"
    (table,) = parse_html(html).tables()
    assert max(map(len, table.rows)) <= 500
