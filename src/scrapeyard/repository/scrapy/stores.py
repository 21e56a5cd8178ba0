"""Pipelines that only write items to a database on the network, which a run does not reach: it can do without them."""

import ast
from collections.abc import Iterator
from typing import Final

from scrapeyard.repository.scrapy.project import SpiderProject
from scrapeyard.repository.scrapy.reading import SourceClass, SourceTree, last_name
from scrapeyard.repository.scrapy.told import tables

Function = ast.FunctionDef | ast.AsyncFunctionDef

DATABASES: Final = frozenset(
    {
        *("MySQLdb", "aiokafka", "aiomysql", "asyncpg", "boto3", "cassandra", "elasticsearch", "kafka", "motor"),
        *("mysql", "pika", "psycopg", "psycopg2", "pymongo", "pymysql", "redis", "txmongo"),
    }
)
_COPIES: Final = frozenset({"asdict", "copy", "deepcopy", "dict"})
_READS: Final = frozenset({"asdict", "copy", "deepcopy", "field_names", "get", "items", "keys", "values"})
"""Methods of an item that leave it as it is."""
_CHANGES: Final = frozenset(
    {
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"),
        *("sort", "update"),
    }
)
"""Methods that change a list, a set or a dictionary, as a part of an item may be."""
_READERS: Final = _COPIES | {"ItemAdapter", "isinstance", "len", "list", "print", "repr", "sorted", "str", "type"}
"""Functions that leave an item as it is."""
_FILES: Final = frozenset({"open", "start_exporting"})


def store_pipelines(project: SpiderProject) -> dict[str, str]:
    """Each pipeline that the settings name and that only writes to a database → the module that it connects with."""
    named = {text for table in tables(project) for text in _pipelines(table.get("ITEM_PIPELINES"))}
    found = {f"{each.module}.{each.node.name}": each for each in project.tree.classes()}
    return {
        name: module
        for name in sorted(named & found.keys())
        if (module := _database(project.tree, found[name])) and _passes_items_on(found[name])
    }


def _pipelines(table: object) -> list[str]:
    return [each for each in table if isinstance(each, str)] if isinstance(table, dict | list) else []


def _database(tree: SourceTree, found: SourceClass) -> str:
    """The module of a database that the class uses; empty if there is none."""
    parsed = tree.tree(tree.root / found.file)
    known = {name: module for node in ast.walk(parsed) for name, module in _bound(node)} if parsed else {}
    for node in ast.walk(found.node):
        if isinstance(node, ast.Name) and node.id in known:
            return known[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in DATABASES:
            return node.value  # adbapi.ConnectionPool("pymysql", …)
    return ""


def _bound(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that an import of a database gives to a file."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if (top := alias.name.partition(".")[0]) in DATABASES:
                yield alias.asname or top, top
    elif isinstance(node, ast.ImportFrom) and (top := (node.module or "").partition(".")[0]) in DATABASES:
        yield from ((alias.asname or alias.name, top) for alias in node.names)


def _passes_items_on(found: SourceClass) -> bool:
    """Whether every item comes out of it unchanged, and it writes no file."""
    methods = {each.name: each for each in found.functions()}
    process = methods.get("process_item")
    if process is None or set(found.bases) - {"object"} or len(process.args.args) < 2:
        return False
    item = process.args.args[1].arg
    returned = [node.value for node in ast.walk(process) if isinstance(node, ast.Return)]
    ends = isinstance(process.body[-1], ast.Return)
    is_whole = ends and all(isinstance(each, ast.Name) and each.id == item for each in returned)
    calls = {last_name(node.func) for node in ast.walk(found.node) if isinstance(node, ast.Call)}
    is_free = not any(_drops(node, item) for node in process.body)
    return is_whole and is_free and not calls & _FILES and not any(_changes(*each) for each in _takers(methods, item))


def _takers(methods: dict[str, Function], item: str) -> Iterator[tuple[Function, str]]:
    """The methods that are given an item, and what each calls it."""
    for method in methods.values():
        yield from ((method, item) for given in method.args.args if given.arg == item)
    calls = [node for method in methods.values() for node in ast.walk(method) if isinstance(node, ast.Call)]
    for call in calls:
        taker = methods.get(last_name(call.func))
        for place, given in enumerate(call.args, 1):  # after `self`
            if taker and isinstance(given, ast.Name) and given.id == item and place < len(taker.args.args):
                yield taker, taker.args.args[place].arg


def _drops(node: ast.AST, item: str) -> bool:
    """Whether it may raise; but not within `for data in item: if not data`, because no name of a field is empty."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id == item:
        tests = [each.test for each in node.body if isinstance(each, ast.If)]
        negated = [each.operand for each in tests if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)]
        target = last_name(node.target)
        if len(negated) == len(node.body) and all(last_name(each) == target for each in negated):
            return False
    return isinstance(node, ast.Raise | ast.Yield) or any(_drops(each, item) for each in ast.iter_child_nodes(node))


def _changes(function: Function, item: str) -> bool:
    """Whether it sets something on the item or a part of it, also by another name, or lets another function do so."""
    names, parts = {item}, set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _stands_for(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Assign) and _owner(node.value) in names | parts:
            parts |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.For) and _owner(node.iter) in names | parts:
            parts.add(last_name(node.target))
    return any(_is_change(node, item, names, names | parts) for node in ast.walk(function))


def _is_change(node: ast.AST, item: str, names: set[str], parts: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id == item and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _READERS:
        return any(isinstance(each, ast.Name) and each.id in names for each in node.args)
    if not isinstance(node, ast.Subscript | ast.Attribute) or _owner(node) not in parts:
        return False
    if not isinstance(node.ctx, ast.Load) or isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    return node.attr in _CHANGES or (last_name(node.value) in names and node.attr not in _READS)


def _owner(node: ast.AST) -> str:
    """`item` of `item["seller"]["name"]`; empty for what is no such name."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _stands_for(value: ast.AST, names: set[str]) -> bool:
    """Whether the value holds the item itself, and no copy of it: `ItemAdapter(item)`."""
    called = last_name(value.func) if isinstance(value, ast.Call) else ""
    if isinstance(value, ast.Call) and (called in _COPIES or isinstance(value.func, ast.Attribute)):
        return False
    given = value.args if isinstance(value, ast.Call) else [value]
    return any(isinstance(each, ast.Name) and each.id in names for each in given)
