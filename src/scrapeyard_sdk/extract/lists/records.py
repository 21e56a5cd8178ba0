"""The records of a listing page, each with the same fields under the same names.

Fields are places in the records. A place that most likely is the title, the link, the image, the price, the date, the
rating or the description has that name. Others are named by the table's header, by a label that stands in every value,
by `itemprop` or by class; what has none of these is `text`, `link` or `image` with a number.
"""

# ruff: noqa: RUF001 - the letters of other scripts are meant

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from scrapeyard_sdk.extract.dates import parse_date
from scrapeyard_sdk.extract.lists.groups import Element, ItemGroup, best_group, build
from scrapeyard_sdk.extract.lists.more_button import find_more_button
from scrapeyard_sdk.extract.page import Joiner, base_of, folded, image_source
from scrapeyard_sdk.extract.prices import parse_price

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_COLUMNS = 40
MAX_VALUE = 2000
"""Characters of one value."""
MAX_TEXT = 2_000_000
"""Characters of all records."""
_MAX_LEAVES = 200
_INLINE = frozenset(
    {"b", "i", "em", "strong", "br", "sup", "sub", "small", "mark", "u", "font", "wbr", "code", "abbr", "bdi", "q"}
)
_PRICE_NAME = re.compile(r"price|preis|prix|precio|prezzo|cena|ціна|цена|amount", re.IGNORECASE)
_OLD_NAME = re.compile(r"/(?:del|s|strike)\b|old|was|before|regular|list.?price|strike|uvp|rrp|msrp", re.IGNORECASE)
_TITLE_NAME = re.compile(r"title|headline|\bname|[-_.]name|heading|subject|caption", re.IGNORECASE)
_RATING_NAME = re.compile(r"rating|stars?\b|review-?score", re.IGNORECASE)
_RATING = re.compile(r"(\d(?:[.,]\d+)?)\s*(?:/|out of|of|von|sur|de|di|van|av|z|из)\s*(?:5|10)\b", re.IGNORECASE)
_STAR_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_LABEL = re.compile(r"^([^\W\d_][^:：\n]{0,30})[:：]\s*(?=\S)")
_NOT_NAME = re.compile(r"[^\w]+")
_HEADING = re.compile(r"/(?:h[1-6]|dt)(?:[./#]|$)")
_FIRST = ("title", "url", "image", "price", "currency", "old_price", "date", "author", "rating", "description")


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordList:
    """The records of one page."""

    records: list[dict[str, Any]]
    columns: dict[str, str]
    """By name: the place of the field in a record. It is the same on the next page, so names can be, too."""
    more_button: str | None = None
    """A CSS selector of the button that makes the list longer and has no address; None if there is none."""


@dataclass(slots=True)
class _Column:
    place: str
    kind: str
    values: list[Any]
    order: int
    name: str = ""
    label: str = ""
    texts: list[str] = field(default_factory=list)

    @property
    def filled(self) -> int:
        return sum(value is not None for value in self.values)

    def given(self) -> list[Any]:
        return [value for value in self.values if value is not None]


def read_records(tree: "LexborHTMLParser", url: str) -> RecordList | None:
    """The records of the page's main list; None if it shows none. `url` makes links absolute."""
    body = build(tree)
    group = best_group(body) if body is not None else None
    if body is None or group is None:
        return None
    rows = [_leaves(item, Joiner(base_of(tree, url))) for item in group.items]
    columns = _named(_columns(rows), _headers(group))
    written = _written(columns, len(rows))
    return replace(written, more_button=find_more_button(body, group))


def _written(columns: list[_Column], count: int) -> RecordList:
    room = MAX_TEXT
    records: list[dict[str, Any]] = []
    for number in range(count):
        record = {column.name: column.values[number] for column in columns}
        room -= sum(len(str(value)) for value in record.values())
        if room < 0:
            break
        if any(value is not None for value in record.values()):
            records.append(record)
    return RecordList(records=records, columns={column.name: f"{column.kind} {column.place}" for column in columns})


def _leaves(item: tuple[Element, ...], joiner: Joiner) -> dict[tuple[str, str], list[Any]]:
    """Values by place and kind, in order."""
    found: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for _, (place, kind, value) in zip(range(_MAX_LEAVES), _item_leaves(item, joiner), strict=False):
        found[place, kind].append(value)
    return found


def _item_leaves(item: tuple[Element, ...], joiner: Joiner) -> Iterator[tuple[str, str, Any]]:
    alone = len(item) == 1
    for part in item:
        yield from _below(part, "" if alone else f"/{part.name}", joiner)


def _below(node: Element, place: str, joiner: Joiner) -> Iterator[tuple[str, str, Any]]:
    attributes = node.attributes
    yield from _of_attributes(node, place, joiner)
    whole = _is_whole(node, place)
    own = node.text() if whole else node.own_text
    if own and any(letter.isalnum() for letter in own):
        yield place, "time" if node.tag == "time" else "text", (attributes.get("datetime") or own)[:MAX_VALUE]
    cells: Counter[str] = Counter()
    for child in node.children:
        if whole and child.tag not in ("a", "img", "time", "picture"):
            continue
        name = child.name if node.tag != "tr" else f"{child.tag}:{cells['']}"
        cells[""] += (
            int(child.attributes.get("colspan") or 1) if (child.attributes.get("colspan") or "1").isdigit() else 1
        )
        yield from _below(child, f"{place}/{name}", joiner)


def _of_attributes(node: Element, place: str, joiner: Joiner) -> Iterator[tuple[str, str, Any]]:
    attributes = node.attributes
    if node.tag == "a" and (link := _link(attributes.get("href"), joiner)):
        yield place, "link", link
    elif node.tag == "img" and (source := image_source(attributes)) and (link := joiner.absolute(source)):
        yield place, "image", link
    elif node.tag in ("meta", "data", "link") and (said := attributes.get("content") or attributes.get("value")):
        yield place, "text", folded(said)[:MAX_VALUE]
    if (rating := _rating(node)) is not None:
        yield place, "rating", rating


def _link(href: str | None, joiner: Joiner) -> str | None:
    return None if not href or href.strip().startswith("#") else joiner.absolute(href)


def _rating(node: Element) -> float | None:
    said = node.attributes.get("aria-label") or node.attributes.get("title") or ""
    if match := _RATING.search(said[:200]):
        return float(match[1].replace(",", "."))
    words = (node.attributes.get("class") or "").lower().split()
    if words and _RATING_NAME.search(words[0]):
        return next((float(_STAR_WORDS[word]) for word in words if word in _STAR_WORDS), None)
    return None


def _is_whole(node: Element, place: str) -> bool:
    """Whether its text is one value: words with marks of emphasis, or the parts of one price."""
    if not node.children:
        return True
    if all(child.tag in _INLINE for child in node.children) and node.own_text:
        return True
    inside = [child for child in node.children if child.length]
    parts = len(inside) + bool(node.own_text)
    small = parts > 1 and node.length <= 20 and not node.links and all(not child.children for child in inside)
    return small and bool(_PRICE_NAME.search(place)) and not any(child.tag in ("del", "s", "ins") for child in inside)


def _columns(rows: Sequence[dict[tuple[str, str], list[Any]]]) -> list[_Column]:
    """The places that several records have. A place that comes a varying number of times is one list."""
    places: dict[tuple[str, str], int] = {}
    for row in rows:
        for key in row:
            places[key] = places.get(key, 0) + 1
    least = 1 if len(rows) < 8 else max(2, len(rows) // 20)
    found: list[_Column] = []
    order = sorted((key for key in places if places[key] >= least), key=lambda key: _rank(key, rows))
    for key in order:
        counts = {len(row[key]) for row in rows if key in row}
        if max(counts) > 1 and len(counts) > 1:
            found.append(_Column(key[0], key[1], [row.get(key) for row in rows], len(found)))
            continue
        for number in range(max(counts)):
            values = [row[key][number] if key in row else None for row in rows]
            place = key[0] if number == 0 else f"{key[0]}#{number + 1}"
            found.append(_Column(place, key[1], values, len(found)))
    return [column for column in found[: 4 * MAX_COLUMNS] if not _says_nothing(column)]


def _rank(key: tuple[str, str], rows: Sequence[dict[tuple[str, str], list[Any]]]) -> float:
    places = [list(row).index(key) / len(row) for row in rows[:50] if key in row]
    return sum(places) / len(places) if places else 1.0


def _says_nothing(column: _Column) -> bool:
    """Whether it has the same in all records, as buttons do."""
    given = column.given()
    same = len(given) > 2 and all(value == given[0] for value in given[1:])
    return same and (column.kind != "text" or parse_price(str(given[0])).sign is None) and column.kind != "time"


def _headers(group: ItemGroup) -> list[str]:
    """The words above the columns of a table."""
    if group.items[0][0].tag != "tr":
        return []
    table = next((node for node in group.items[0][0].above() if node.tag == "table"), None)
    if table is None:
        return []
    for row in (node for node in table.walk() if node.tag == "tr"):
        cells = [cell.text() for cell in row.children if cell.tag == "th"]
        if len(cells) > 1 and len(cells) == len(row.children):
            return cells
    return []


def _named(columns: list[_Column], headers: list[str]) -> list[_Column]:
    columns = _without_doubles(columns)
    for column in columns:
        _strip_label(column)
    _name_by_header(columns, headers)
    for choose in (_choose_prices, _choose_dates, _choose_title, _choose_link, _choose_others):
        choose(columns)
    taken: Counter[str] = Counter()
    for column in columns:
        name = column.name or _own_name(column)
        taken[name] += 1
        column.name = name if taken[name] == 1 else f"{name}_{taken[name]}"
    columns = columns[:MAX_COLUMNS] + _currency(columns)
    return sorted(
        columns, key=lambda each: (_FIRST.index(each.name) if each.name in _FIRST else len(_FIRST), each.order)
    )


def _without_doubles(columns: list[_Column]) -> list[_Column]:
    """A link or a text that stands twice in every record counts once."""
    kept: list[_Column] = []
    for column in columns:
        if not any(_is_same(column, other) for other in kept if other.kind == column.kind):
            kept.append(column)
    return kept


def _is_same(one: _Column, other: _Column) -> bool:
    return all(a is None or a == b for a, b in zip(one.values, other.values, strict=True))


def _strip_label(column: _Column) -> None:
    """`Pages: 312` in every record is 312, named `pages`."""
    given = column.given()
    if column.kind != "text" or len(given) < 2 or not all(isinstance(value, str) for value in given):
        return
    labels = Counter(match[1].strip() for value in given if (match := _LABEL.match(value)))
    label, count = labels.most_common(1)[0] if labels else ("", 0)
    if count >= 0.8 * len(given) and len(given) > 2:
        column.label = label
        start = re.compile(rf"^{re.escape(label)}\s*[:：]\s*")
        column.values = [start.sub("", value) if value is not None else None for value in column.values]


def _name_by_header(columns: list[_Column], headers: list[str]) -> None:
    for column in columns:
        cell = re.match(r"/t[dh]:(\d+)", column.place)
        if cell and column.kind in ("text", "time") and int(cell[1]) < len(headers):
            column.name = _as_name(headers[int(cell[1])])


def _texts(columns: list[_Column]) -> list[_Column]:
    return [
        column
        for column in columns
        if column.kind == "text" and not column.name and not any(isinstance(value, list) for value in column.given())
    ]


def _choose_prices(columns: list[_Column]) -> None:
    prices = [column for column in _texts(columns) if _is_price(column)]
    old = [column for column in prices if _OLD_NAME.search(column.place) or _OLD_NAME.search(column.label)]
    now = [column for column in prices if column not in old] or old
    for column in prices:
        column.texts = [value or "" for value in column.values]
        column.values = [_amount(value) for value in column.values]
        column.name = "price" if column is now[0] else "old_price" if column in old else "other_price"


def _is_price(column: _Column) -> bool:
    given = column.given()
    if not given or sum(map(len, given)) > 40 * len(given):
        return False
    read = [parse_price(value) for value in given[:50]]
    signed = sum(price.amount is not None and price.sign is not None for price in read)
    named = bool(_PRICE_NAME.search(column.place) or _PRICE_NAME.search(column.label))
    return signed >= 0.7 * len(read) or (named and sum(price.amount is not None for price in read) >= 0.7 * len(read))


def _amount(value: str | None) -> float | None:
    amount = parse_price(value).amount if value is not None else None
    return None if amount is None else float(amount)


def _currency(columns: list[_Column]) -> list[_Column]:
    price = next((column for column in columns if column.name == "price" and column.texts), None)
    if price is None:
        return []
    codes = [parse_price(text).currency for text in price.texts]
    return [_Column(price.place, "currency", list(codes), price.order, "currency")] if any(codes) else []


def _choose_dates(columns: list[_Column]) -> None:
    for column in [column for column in columns if column.kind == "time"] + _texts(columns):
        given = [value for value in column.given() if isinstance(value, str)]
        if not given or column.name or sum(map(len, given)) > 45 * len(given):
            continue
        read = [parse_date(value) for value in given]
        if sum(each is not None for each in read) >= 0.8 * len(read):
            column.values = [_date(value) for value in column.values]
            column.name = "date"
            return


def _date(value: Any) -> str | None:
    found = parse_date(value) if isinstance(value, str) else None
    return None if found is None else found.isoformat()


def _choose_title(columns: list[_Column]) -> None:
    texts = _texts(columns)
    best = max(texts, key=lambda column: _title_points(column, columns), default=None)
    if best is not None:
        best.name = "title"


def _title_points(column: _Column, columns: list[_Column]) -> float:
    given = column.given()
    mean = sum(map(len, given)) / len(given)
    points = 2.0 * len(set(given)) / len(given) + 2.0 * column.filled / len(column.values)
    points += 3.0 * bool(_HEADING.search(column.place)) + 2.0 * bool(_TITLE_NAME.search(column.place))
    links = [each.place for each in columns if each.kind == "link"]
    points += 2.0 * any(column.place == link or column.place.startswith(f"{link}/") for link in links)
    points -= 3.0 * (mean > 150) + 3.0 * (mean < 3) + 0.1 * column.order + 2.0 * bool(column.label)
    return points - 3.0 * (sum(_is_number(value) for value in given) > len(given) / 2)


def _is_number(value: str) -> bool:
    digits = sum(letter.isdigit() for letter in value)
    return digits > 0.5 * len(value)


def _choose_link(columns: list[_Column]) -> None:
    links = [column for column in columns if column.kind == "link" and not column.name]
    title = next((column.place for column in columns if column.name == "title"), None)
    around = [column for column in links if title is not None and (title + "/").startswith(column.place + "/")]
    best = max(around or links, key=lambda each: (len(set(map(str, each.given()))), -each.order), default=None)
    if best is not None:
        best.name = "url"


def _choose_others(columns: list[_Column]) -> None:
    for kind, name in (("image", "image"), ("rating", "rating")):
        first = next((column for column in columns if column.kind == kind and not column.name), None)
        if first is not None:
            first.name = name
    long = [column for column in _texts(columns) if _mean_length(column) > 60]
    best = max(long, key=_mean_length, default=None)
    if best is not None:
        best.name = "description"


def _mean_length(column: _Column) -> float:
    given = column.given()
    return sum(map(len, given)) / len(given) if given else 0.0


def _own_name(column: _Column) -> str:
    """By its label, `itemprop` or class; otherwise by its kind."""
    if column.label:
        return _as_name(column.label)
    last = column.place.rpartition("/")[2].partition("#")[0]
    named = _as_name(last.partition(".")[2])
    kind = column.kind if column.kind != "time" else "date"
    return f"{named}_{kind}" if named and kind in ("link", "image", "rating") else named or kind


def _as_name(words: str) -> str:
    name = _NOT_NAME.sub("_", words.strip().lower()).strip("_")[:40]
    return f"field_{name}" if name[:1].isdigit() else name
