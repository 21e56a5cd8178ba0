"""A migration must leave the version before it working: both run on one database while a cluster is upgraded.

So it only adds: tables, indexes, columns that may be empty or have a default of the database. What is to go goes a
release later, in a migration that `LATER` names with the reason.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import scrapeyard

VERSIONS = Path(scrapeyard.__file__).parent / "store" / "migrations" / "versions"
FIRST = "0031"
"""The first migration after the version that nobody upgraded to yet."""
LATER: dict[str, str] = {}
"""Migrations that take something away, and since which version nothing uses it."""
REFUSED = {
    "drop_column",
    "drop_table",
    "drop_constraint",
    "drop_index",
    "rename_table",
    "alter_column",
    "batch_alter_table",
    "create_check_constraint",
    "create_unique_constraint",
}
_WORDS = ("DROP ", "RENAME ", "ALTER COLUMN", "SET NOT NULL", "TRUNCATE")


def faults(source: str) -> Iterator[str]:
    """What in `upgrade` could break the version before."""
    upgrade = next(
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "upgrade"
    )
    for node in ast.walk(upgrade):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in REFUSED:
                yield f"line {node.lineno}: {node.func.attr}"
            if node.func.attr == "add_column" and _must_be_given(node):
                yield f"line {node.lineno}: a new column that older programs do not fill: nullable, or server_default"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (f"line {node.lineno}: {word.strip()}" for word in _WORDS if word in node.value.upper())


def _must_be_given(call: ast.Call) -> bool:
    for node in ast.walk(call):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Column":
            given = {word.arg: word.value for word in node.keywords}
            is_needed = isinstance(given.get("nullable"), ast.Constant) and given["nullable"].value is False  # type: ignore[attr-defined]
            return is_needed and "server_default" not in given
    return False


def _new() -> list[Path]:
    return sorted(path for path in VERSIONS.glob("[0-9]*.py") if path.name[:4] >= FIRST and path.stem not in LATER)


def test_migrations_only_add() -> None:
    assert not {path.stem: told for path in _new() if (told := list(faults(path.read_text("utf-8"))))}


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ('op.add_column("runs", sa.Column("a", sa.Text))', 0),
        ('op.add_column("runs", sa.Column("a", sa.Text, nullable=False, server_default=""))', 0),
        ('op.create_table("a", sa.Column("b", sa.Text, nullable=False))', 0),
        ('op.create_index("a", "runs", ["b"])', 0),
        ('op.add_column("runs", sa.Column("a", sa.Text, nullable=False))', 1),
        ('op.drop_column("runs", "a")', 1),
        ('op.execute("ALTER TABLE runs RENAME TO walks")', 1),
        ('with op.batch_alter_table("runs") as batch:\n        batch.drop_column("a")', 2),
    ],
)
def test_the_guard_sees_what_breaks(statement: str, count: int) -> None:
    assert len(list(faults(f"def upgrade():\n    {statement}\n"))) == count
