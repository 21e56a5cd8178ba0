"""`jobs watch`: shows a job's progress live until it ends. The job does not depend on being watched."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from scrapeyard.cli.common.options import DEFAULT_URL, AsJson, JobId, ServerUrl, Strict

if TYPE_CHECKING:
    from scrapeyard.cli.common.client import Event, Server
    from scrapeyard.cli.common.progress import JobBar

POLL_SECONDS = 1.0
STREAM_SECONDS = 10.0
"""Seconds before an unavailable stream is requested again; until then the job is polled."""
AWAY_SECONDS = 120.0
"""Seconds after which an unreachable server is given up; until then it may be restarting."""
_FAILURES_SHOWN = 10


def add_to(group: typer.Typer) -> None:
    """Add the command."""
    group.command()(watch)


def watch(job_id: JobId, strict: Strict = False, url: ServerUrl = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show a job's progress until it ends. Ctrl-C leaves the job running. With --json each event is a line of JSON."""
    from scrapeyard.cli.common.client import Server
    from scrapeyard.cli.common.output import encode
    from scrapeyard.cli.jobs.documents import end

    hear = (lambda event: typer.echo(encode(_table(event), pretty=False))) if as_json else None
    end(watched(Server(url), job_id, hear), strict=strict)


def watched(server: "Server", job_id: str, hear: "Callable[[Event], None] | None" = None) -> dict[str, Any]:
    """Show progress until the job ends and return its document; Ctrl-C prints how to resume, and exits."""
    from scrapeyard.cli.common.progress import JobBar
    from scrapeyard.cli.jobs.documents import FINAL, path_of

    first: dict[str, Any] = server.get(path_of(server, job_id))
    job_id = first["id"]
    if first["status"] in FINAL and hear is None:
        return first
    try:
        with JobBar(first["name"] or job_id) as bar:
            bar.show(first)
            return JobWatch(server, job_id, bar, hear).until_end()
    except KeyboardInterrupt:
        typer.echo(f"\nscrapeyard: the job goes on; come back with: scrapeyard jobs watch {job_id}", err=True)
        raise typer.Exit(130) from None


class JobWatch:
    """Follows one job by its events. Resumes a broken stream where it stopped; without a stream, polls the job every
    second."""

    def __init__(
        self,
        server: "Server",
        job_id: str,
        bar: "JobBar",
        hear: "Callable[[Event], None] | None" = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = server
        self._job_id = job_id
        self._bar = bar
        self._receive = hear
        self._clock = clock
        self._sleep = sleep
        self._last = 0
        self._failures = 0
        self._stream_at = float("-inf")
        self._answered_at = clock()
        self._is_away = False

    def until_end(self) -> dict[str, Any]:
        """The document of the ended job. Raises ServerUnreachable when the server stays away, Refused when the job is
        gone."""
        from scrapeyard.cli.jobs.documents import FINAL

        while True:
            if self._clock() >= self._stream_at:
                self._stream_at = self._clock() + (0 if self._followed() else STREAM_SECONDS)
            job = self._looked_up()
            if job is not None:
                self._bar.show(job)
                if job["status"] in FINAL:
                    return job
            self._sleep(POLL_SECONDS)

    def _followed(self) -> bool:
        """Receive events until the stream ends. False if there were none."""
        from scrapeyard.cli.common.client import Refused, ServerUnreachable

        heard = False
        try:
            with self._server.events(f"/api/jobs/{self._job_id}/stream", self._last) as events:
                for event in events:
                    heard = True
                    self._take(event)
                    if event.name == "end":
                        break
        except (ServerUnreachable, Refused):  # polling the job reports what is wrong
            return heard
        return heard

    def _take(self, event: "Event") -> None:
        self._last = event.number or self._last
        self._present()
        if self._receive is not None:
            self._receive(event)
        elif event.name == "progress":
            self._bar.show(event.data)
        elif event.name == "item_failed":
            self._tell_failure(event.data)
        elif words := _words(event.name, event.data):
            self._bar.note(words)

    def _looked_up(self) -> dict[str, Any] | None:
        """Poll the job's document; None if the server is away for now."""
        from scrapeyard.cli.common.client import Refused, RefusedCall, ServerUnreachable

        try:
            job = dict(self._server.get(f"/api/jobs/{self._job_id}"))
        except RefusedCall:
            raise
        except (ServerUnreachable, Refused) as error:
            if self._clock() - self._answered_at > AWAY_SECONDS:
                raise ServerUnreachable(
                    f"{error.message}; watch again with: scrapeyard jobs watch {self._job_id}"
                ) from None
            if not self._is_away:
                self._is_away = True
                self._bar.note("the server does not answer; trying again")
            return None
        self._present()
        return job

    def _present(self) -> None:
        self._answered_at = self._clock()
        if self._is_away:
            self._is_away = False
            self._stream_at = float("-inf")
            self._bar.note("the server is back")

    def _tell_failure(self, data: dict[str, Any]) -> None:
        self._failures += 1
        if self._failures <= _FAILURES_SHOWN:
            self._bar.note(f"{data['key']} failed: {data['exit_reason']}: {data['message']}")
        elif self._failures == _FAILURES_SHOWN + 1:
            self._bar.note(f"further failures: scrapeyard jobs items {self._job_id} --status error")


def _words(name: str, data: dict[str, Any]) -> str:
    """The line for an event; empty if it is not worth one."""
    if name in ("progress", "end"):
        return ""
    if name == "status":
        why = f": {data['reason']}" if data.get("reason") else ""
        return f"the job is {data.get('status')}{why}"
    if name == "breaker" and data.get("state") == "open":
        again = f" at {data['until']}" if data.get("until") else " later"
        return (
            f"too many items failed ({data.get('reason')}): the job pauses and tries a few items{again}; "
            "`jobs items ID --status error` shows why, `jobs resume ID` goes on at once"
        )
    if name == "export":
        return f"export {data.get('type')} as {data.get('format')} is {data.get('state')}: {data.get('rows', 0):,} rows"
    fields = ", ".join(f"{key} {value}" for key, value in data.items() if key != "at" and value not in ("", None))
    return f"{name.replace('_', ' ')}: {fields}"


def _table(event: "Event") -> dict[str, Any]:
    return {"event": event.name, "id": event.number, "data": event.data}
