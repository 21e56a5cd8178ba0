"""Pipelines that only write items to a database on the network, which a run does not reach: it can do without them."""

import ast
from collections.abc import Iterator
from typing import Final

from scrapeyard.repository.scrapy.project import SpiderProject
from scrapeyard.repository.scrapy.reading import SourceClass, SourceTree, last_name
from scrapeyard.repository.scrapy.told import tables

DATABASES: Final = frozenset(
    {
        *("MySQLdb", "aiokafka", "aiomysql", "asyncpg", "boto3", "cassandra", "elasticsearch", "kafka", "motor"),
        *("mysql", "pika", "psycopg", "psycopg2", "pymongo", "pymysql", "redis", "txmongo"),
    }
)
_COPIES: Final = frozenset({"asdict", "copy", "deepcopy", "dict"})
_READS: Final = frozenset({"asdict", "copy", "deepcopy", "field_names", "get", "items", "keys", "values"})
"""Methods of an item that leave it as it is."""
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
    takers = [each for each in methods.values() if any(given.arg == item for given in each.args.args)]
    is_free = not any(_drops(node, item) for node in process.body)
    return is_whole and is_free and not calls & _FILES and not any(_changes(each, item) for each in takers)


def _drops(node: ast.AST, item: str) -> bool:
    """Whether it may raise; but not within `for data in item: if not data`, because no name of a field is empty."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id == item:
        tests = [each.test for each in node.body if isinstance(each, ast.If)]
        negated = [each.operand for each in tests if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)]
        target = last_name(node.target)
        if len(negated) == len(node.body) and all(last_name(each) == target for each in negated):
            return False
    return isinstance(node, ast.Raise | ast.Yield) or any(_drops(each, item) for each in ast.iter_child_nodes(node))


def _changes(function: ast.FunctionDef | ast.AsyncFunctionDef, item: str) -> bool:
    """Whether it sets something on the item, or on a name that may stand for it."""
    names = {item}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _stands_for(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == item and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Subscript | ast.Attribute) and last_name(node.value) in names:
            is_read = isinstance(node, ast.Subscript) or node.attr in _READS
            if not isinstance(node.ctx, ast.Load) or not is_read:
                return True
    return False


def _stands_for(value: ast.AST, names: set[str]) -> bool:
    """Whether the value holds the item itself, and no copy of it: `ItemAdapter(item)`."""
    called = last_name(value.func) if isinstance(value, ast.Call) else ""
    if isinstance(value, ast.Call) and (called in _COPIES or isinstance(value.func, ast.Attribute)):
        return False
    given = value.args if isinstance(value, ast.Call) else [value]
    return any(isinstance(each, ast.Name) and each.id in names for each in given)
