"""`scrape`: call a running server and wait for the answer."""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scrapeyard.cli.common.listing import complete_scrapers
from scrapeyard.cli.common.options import DEFAULT_URL, Input, Output, Pairs, ServerUrl, WholeRun
from scrapeyard.cli.common.page_options import (
    Body,
    Cookies,
    EngineName,
    ExcludeTags,
    FieldPairs,
    Fields,
    FormatsOrFormat,
    IncludeTags,
    Method,
    OnlyMain,
    PageOptions,
    RequestHeaders,
    Screenshot,
    WaitFor,
)

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import RefusedCall, Server

_LONGEST_WAIT = 30.0
"""Maximum seconds per request; a longer wait takes several, so that no server limit ends it."""
_FIRST_WAIT = 2.0
"""The same for the first request where there is a spinner: the run's id is known after it, and so what it waits for."""
_FINAL = ("succeeded", "failed", "cancelled")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(scrape)


def scrape(
    target: Annotated[
        str,
        typer.Argument(help="URL, or scraper (site/task or site/task@version).", autocompletion=complete_scrapers),
    ],
    *,
    pairs: Pairs = None,
    given: Input = None,
    formats: FormatsOrFormat = None,
    field: FieldPairs = None,
    fields: Fields = None,
    header: RequestHeaders = None,
    cookie: Cookies = None,
    method: Method = None,
    body: Body = None,
    only_main: OnlyMain = None,
    include_tag: IncludeTags = None,
    exclude_tag: ExcludeTags = None,
    engine: EngineName = None,
    wait_for: WaitFor = None,
    screenshot: Screenshot = False,
    policy: Annotated[
        str | None,
        typer.Option(help='Policy for fetching, as a JSON object or @file: {"max_age_seconds": 600, "proxy": "home"}.'),
    ] = None,
    wait: Annotated[float, typer.Option(help="Maximum seconds to wait.", min=0.001, max=86_400)] = 300.0,
    in_background: Annotated[
        bool, typer.Option("--async", help="Print the run id at once; the run continues on the server.")
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key", help="Repeating a call with the same key starts no second run.", show_default=False
        ),
    ] = None,
    url: ServerUrl = DEFAULT_URL,
    as_json: WholeRun = False,
    output: Output = None,
) -> None:
    """Run a scraper, or read a page, on a running server. Ctrl-C while it waits cancels the run."""
    from scrapeyard.cli.common.client import RefusedCall, Server
    from scrapeyard.cli.common.inputs import check_output

    page = PageOptions.among(locals())
    check_output(output)
    server = Server(url)
    headers = {"Idempotency-Key": key} if key is not None else {}
    try:
        call = _call(server, target, given, pairs or [], page.table(output)) | _policy(policy)
        if in_background:
            _submit(server, call, headers, as_json)
            return
        run = _Waiting(server, time.monotonic() + wait).answer(call, headers, target)
    except RefusedCall as refusal:
        raise _with_scheme(refusal, target) from None
    _finish(run, as_json, output)


def _call(server: "Server", target: str, given: str | None, pairs: list[str], page: dict[str, Any]) -> dict[str, Any]:
    from scrapeyard.cli.common.inputs import complete, is_address, read_input

    if is_address(target):
        value = read_input(given, pairs, lambda: _schema(server, "builtin/page"), complete(target)) | page
        return {"url": value.pop("url"), "input": value}
    return {"scraper": target, "input": read_input(given, pairs, lambda: _schema(server, target)) | page}


def _policy(given: str | None) -> dict[str, Any]:
    from scrapeyard.cli.common.inputs import read_object

    return {} if given is None else {"policy": read_object(given, "--policy")}


def _schema(server: "Server", target: str) -> dict[str, Any]:
    from scrapeyard.cli.runs.scrapers import path_of

    return server.get(path_of(target.partition("@")[0])).get("input_schema") or {}


def _submit(server: "Server", body: dict[str, Any], headers: dict[str, str], as_json: bool) -> None:
    from scrapeyard.cli.common.output import show_json

    _, handle = server.call("POST", "/api/scrape", body={**body, "wait": 0}, headers=headers)
    if as_json:
        show_json(handle)
    else:
        typer.echo(handle["id"])


class _Waiting:
    """One run, until it ends or the time is over."""

    def __init__(self, server: "Server", until: float) -> None:
        self._server = server
        self._until = until

    def answer(self, body: dict[str, Any], headers: dict[str, str], target: str) -> dict[str, Any]:
        """The run as it stands at the end of the wait. Raises Refused or ServerUnreachable."""
        from scrapeyard.cli.common.output import spinner

        with spinner(f"scraping {target}") as say:
            run = self._start(body, headers)
            if run["status"] not in _FINAL and sys.stderr.isatty():
                threading.Thread(target=self._tell_waits, args=(run["id"], say), daemon=True).start()
            while run["status"] not in _FINAL and self._left() > 0:
                run = self._poll(run["id"])
        return run

    def _tell_waits(self, run_id: str, say: Callable[[str], None]) -> None:
        """Show what the run waits for, until it ends. Whoever waits for its end reports what goes wrong."""
        from scrapeyard.errors import ScrapeyardError

        try:
            with self._server.events(f"/api/scrape/{run_id}/events", 0) as events:
                for event in events:
                    say(event.data["message"] if event.name == "waiting" else "")
        except ScrapeyardError:
            return

    def _start(self, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        from scrapeyard.cli.common.client import Refused

        wait = min(self._left(), _FIRST_WAIT if sys.stderr.isatty() else _LONGEST_WAIT)
        call = {**body, "wait": wait, "on_disconnect": "cancel"}
        try:
            _, run = self._server.call("POST", "/api/scrape", body=call, headers=headers, patience=wait + 30)
        except KeyboardInterrupt:  # the server cancels the run, because nobody waits for it
            typer.echo("scrapeyard: the run is cancelled", err=True)
            raise
        except Refused as refusal:
            if not refusal.document.get("exit_reason"):
                raise
            run = self._server.get(f"/api/scrape/{refusal.document['id']}")
            run["remedy"] = refusal.document.get("remedy")
        return dict(run)

    def _poll(self, run_id: str) -> dict[str, Any]:
        from scrapeyard.cli.common.client import ServerUnreachable

        wait = max(0.0, min(self._left(), _LONGEST_WAIT))
        try:
            return dict(self._server.get(f"/api/scrape/{run_id}", wait=wait, patience=wait + 30))
        except ServerUnreachable as error:
            raise ServerUnreachable(f"{error.message}; the run was accepted as {run_id}") from None
        except KeyboardInterrupt:
            self._server.call("DELETE", f"/api/scrape/{run_id}")
            typer.echo(f"scrapeyard: {run_id} is cancelled", err=True)
            raise

    def _left(self) -> float:
        return self._until - time.monotonic()


def _with_scheme(refusal: "RefusedCall", target: str) -> "RefusedCall":
    """The refusal of a scraper that is not there tells how a page of that name is read."""
    from scrapeyard.cli.common.inputs import looks_like_address

    if refusal.document.get("code") == "scraper_not_found" and looks_like_address(target):
        refusal.message += f" For the page write https://{target}"
    return refusal


def _finish(run: dict[str, Any], as_json: bool, output: Path | None) -> None:
    from scrapeyard.cli.common.inputs import write_result
    from scrapeyard.cli.common.output import show_json

    remedy = str(run.pop("remedy", "") or "")
    good = run["status"] == "succeeded"
    if good and output is not None:
        write_result(output, run["result"])
    if as_json:
        show_json(run)
    elif good and output is None:
        show_json(run["result"])
    if not good:
        _report(run, remedy)
        raise typer.Exit(1)
    if run.get("error"):
        from scrapeyard.cli.common.output import plain

        typer.echo(f"scrapeyard: {plain(str(run['exit_reason']))}: {plain(str(run['error']['message']))}", err=True)


def _report(run: dict[str, Any], remedy: str) -> None:
    from scrapeyard.cli.runs.summary import tell_bad_end

    if run["status"] in _FINAL:
        tell_bad_end(str(run["exit_reason"]), run["error"], remedy)
        typer.echo(f"  more: scrapeyard runs explain {run['id']}", err=True)
    else:
        typer.echo(f"scrapeyard: not finished in time; it goes on: scrapeyard runs show {run['id']}", err=True)
