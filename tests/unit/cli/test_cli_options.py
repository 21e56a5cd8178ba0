"""How the words of a command line become values, and which commands are built for them."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from scrapeyard.cli.common.options import Commands, outlined


@pytest.fixture
def app() -> Commands:
    app = Commands(name="yard")
    group = Commands(name="jobs")

    @app.command()
    def read(
        page: str,
        more: Annotated[list[str] | None, typer.Argument()] = None,
        wait: Annotated[float, typer.Option(min=1)] = 3.0,
        depth: int = 2,
        form: Literal["csv", "json"] = "csv",
        output: Path | None = None,
        tag: Annotated[list[str] | None, typer.Option()] = None,
        *,
        quick: bool = False,
    ) -> None:
        """Read a page."""
        typer.echo(repr((page, more, wait, depth, form, output and str(output), tag, quick)))

    @group.command("list")
    def list_jobs(limit: int = 20) -> None:
        """List jobs."""
        typer.echo(f"{limit} jobs")

    @app.callback()
    def root() -> None:
        """A yard."""

    app.add_typer(group, name="jobs")
    return app


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["p"], ("p", None, 3.0, 2, "csv", None, None, False)),
        (["p", "a", "b", "--tag", "x", "--tag", "y"], ("p", ["a", "b"], 3.0, 2, "csv", None, ["x", "y"], False)),
        (["p", "--wait", "1.5", "--depth", "7", "--quick"], ("p", None, 1.5, 7, "csv", None, None, True)),
        (["p", "--form", "json", "--output", "a/b"], ("p", None, 3.0, 2, "json", "a/b", None, False)),
    ],
)
def test_values_have_their_types(app: Commands, words: list[str], read: tuple[object, ...]) -> None:
    assert CliRunner().invoke(app, ["read", *words]).output.strip() == repr(read)


@pytest.mark.parametrize("words", [["--wait", "0.5"], ["--wait", "soon"], ["--depth", "1.5"], ["--form", "xml"]])
def test_wrong_values_are_refused(app: Commands, words: list[str]) -> None:
    ended = CliRunner().invoke(app, ["read", "p", *words])
    assert ended.exit_code == 2
    assert words[0] in ended.output


def test_only_the_named_command_is_built_whole_and_help_stays(app: Commands) -> None:
    runner = CliRunner()
    whole = [runner.invoke(app, words).output for words in (["--help"], ["jobs", "--help"])]
    with outlined(app, ["read"]):
        built = get_command(app)
        assert [runner.invoke(app, words).output for words in (["--help"], ["jobs", "--help"])] == whole
    commands = built.commands  # type: ignore[attr-defined]
    assert (len(commands["read"].params), len(commands["jobs"].commands["list"].params)) == (8, 0)
    assert runner.invoke(app, ["jobs", "list"]).output == "20 jobs\n"
