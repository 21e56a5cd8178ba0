"""One run in one child: hands it over, serves its requests, enforces its limits, and judges how it ended.

A child that serves the items of a job has a session for each of them, one after another.
"""

import asyncio
import math
import time

import msgspec
from msgspec import Raw

from scrapeyard.model import ExitReason, Limits, LogLine, RunError, RunProgress
from scrapeyard.sandbox.handles.child import Child, Exit, bounded, judge_exit
from scrapeyard.sandbox.handles.frames import (
    CLAIMABLE,
    Error,
    FetchFrame,
    Frame,
    Head,
    LogFrame,
    PageHead,
    ProgressFrame,
    Ready,
    Record,
    Result,
    fault_of,
)
from scrapeyard.sandbox.handles.requests import ChildRequests
from scrapeyard.sandbox.handles.unread import UnreadPages
from scrapeyard.sandbox.port import ChildServices, Verdict, Work

_REQUEST_BODY = 16 * 1024 * 1024
_MAX_REFUSALS = 1000
_MAX_PROGRESS = 100_000
_EXIT_PATIENCE = 2.0
_BIG_JSON = 256 * 1024
_MB = 1024 * 1024


_OF_THE_STORE = frozenset({"ArtifactError", "StateError"})
"""Errors that a script gets when the platform cannot save something."""
_SPENDING = frozenset({ExitReason.MEMORY_LIMIT, ExitReason.DISK_LIMIT, ExitReason.PROTOCOL_ERROR})
"""After an error of these types a child gets no other item."""


def frame_room(limits: Limits) -> int:
    """How large a frame of a child may be."""
    return int(max(limits.output_mb, limits.artifact_mb) * _MB) + _REQUEST_BODY


class Session:
    """The conversation with one busy child."""

    def __init__(self, child: Child, work: Work, services: ChildServices, pages: UnreadPages, item: int = 0) -> None:
        """`item` is an unguessable number for a child that serves several items; frames with another number do not
        belong to this item. 0 if the child serves this run alone."""
        self.imports: tuple[str, ...] = ()
        """Modules the script imported while it ran."""
        self.peak_kb = 0.0
        """Peak memory of the child, as it reports it."""
        self.reusable = False
        """Whether the child may be given another item."""
        self.left: tuple[str, ...] = ()
        """What the item left behind, as the child reports it."""
        self._item = item
        self._cpu_before: float | None = None if item else 0.0
        self.handed_at = 0.0
        """When the run was handed to the child, by the performance counter."""
        self._child = child
        self._work = work
        self._limits = work.limits
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Verdict] = self._loop.create_future()
        self._records = bytearray()
        self._record_count = 0
        self._output_bytes = 0
        self._log_bytes = 0
        self._logs_cut = False
        self._refusals = 0
        self._progress_frames = 0
        self._concluding = False
        self._gate = pages.gate(child, lambda why: self.stop(ExitReason.MEMORY_LIMIT, why))
        self._requests = ChildRequests(self, work.limits, services, self._gate)
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = 0.0

    @property
    def child(self) -> Child:
        """The child this session speaks with."""
        return self._child

    async def run(self) -> Verdict:
        """Run to the end. Kills the child on timeout or cancellation; on return the child has exited or is exiting."""
        limits = self._limits
        child = self._child
        if not self._item:
            child.allow_frames(frame_room(limits))
        child.on_frame, child.on_broken = self._on_frame, self._on_broken
        self._started = time.perf_counter()
        timer = self._loop.call_later(limits.wall_seconds, self._on_timeout)
        try:
            if not child.open:
                self._on_broken("")
            child.send(self._start_frame(), bytes(self._work.input))
            await child.drained()
            self.handed_at = time.perf_counter()
            verdict = await self._ended
        finally:
            timer.cancel()
            for task in self._tasks:
                task.cancel()
            self._gate.close()
            if not self._left_well():
                child.kill()
        return await self._with_records(verdict)

    async def _with_records(self, verdict: Verdict) -> Verdict:
        """The verdict; if the run ended badly, with the records that the script yielded before."""
        if verdict.result is not None or not self._records or verdict.exit_reason is ExitReason.SKIPPED:
            return verdict
        raw = b"[" + self._records + b"]"
        self._records.clear()
        fault = await asyncio.to_thread(fault_of, raw) if len(raw) > _BIG_JSON else fault_of(raw)
        return verdict if fault else msgspec.structs.replace(verdict, result=Raw(raw))

    def cpu_before(self, now: float) -> float:
        """CPU time that the child had used before this run, taken from the first sample."""
        if self._cpu_before is None:
            self._cpu_before = now
        return self._cpu_before

    def _left_well(self) -> bool:
        """Whether the child exits by itself, or stays for the next item."""
        if self._item:
            return self.reusable
        return self._ended.done() and not self._ended.cancelled() and self._ended.result().result is not None

    def tell(self, words: str, level: str) -> None:
        """Add a line of ours to the script's log, whatever room it has left."""
        at_ms = round((time.perf_counter() - self._started) * 1000, 2)
        self._services.log(LogLine(at_ms=at_ms, stream="log", text=words, level=level, fields={"from": "sandbox"}))

    def stop(self, reason: ExitReason, message: str) -> None:
        """End the run from outside: kill the child and settle the verdict."""
        self.reusable = False
        self._child.kill()
        self._settle(Verdict(exit_reason=reason, error=RunError(message=message)))

    def _start_frame(self) -> dict[str, object]:
        return {
            "t": "run",
            **({"i": self._item, "warm": self._work.warm} if self._item else {}),
            "run_id": self._work.run_id,
            "attempt": self._work.attempt,
            "config": self._work.config,
            "seconds": self._limits.wall_seconds,
            "fetches": self._limits.fetches,
            "nan": self._work.nan,
            "log_bytes": self._limits.log_kb * 1024,
            "output_bytes": int(self._limits.output_mb * _MB),
        }

    def _settle(self, verdict: Verdict) -> None:
        if self._ended.done():
            return
        told = msgspec.structs.replace(
            verdict,
            wall_ms=(time.perf_counter() - self._started) * 1000,
            records=self._record_count,
            output_bytes=self._output_bytes,
            log_bytes=self._log_bytes,
            logs_cut=self._logs_cut,
        )
        self._ended.set_result(told)

    def _on_timeout(self) -> None:
        seconds = self._limits.wall_seconds
        self.stop(ExitReason.TIMEOUT, f"the run took longer than {seconds:g} s; raise limits.wall_seconds or do less")

    def _on_broken(self, why: str) -> None:
        if self._ended.done() or self._concluding:
            return
        if why:
            self.stop(ExitReason.PROTOCOL_ERROR, why)
        else:
            self.spawn(self._judge_death())

    async def _judge_death(self) -> None:
        try:
            async with asyncio.timeout(_EXIT_PATIENCE):
                end = await asyncio.shield(self._child.exited)
        except TimeoutError:
            self._child.kill()
            end = Exit()
        self._settle(judge_exit(end, math.inf if self._item else self._limits.cpu_seconds))

    def spawn(self, work: "asyncio._CoroutineLike[None]") -> None:
        """Run it until it is done or the run has ended."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_frame(self, frame: Frame, raw: bytes) -> None:
        if self._ended.done() or self._concluding:
            self._on_late_frame()
            return
        if frame.i != self._item:
            self.stop(ExitReason.PROTOCOL_ERROR, "the child spoke for another item than the one it was given")
            return
        match frame:
            case FetchFrame():
                self._requests.fetch(frame, raw)
            case LogFrame():
                self._on_log(frame)
            case ProgressFrame():
                self._on_progress(frame)
            case Record():
                self._on_record(raw)
            case Result():
                self._on_result(frame, raw)
            case Error():
                self._on_error(frame)
            case Ready():
                self.stop(ExitReason.PROTOCOL_ERROR, "the child said `ready` twice")
            case _:
                self._requests.serve(frame, raw)

    def _on_late_frame(self) -> None:
        """A child that sends frames after the end of its item gets no other item; the verdict stands."""
        if self._item:
            self.reusable = False
            self._child.kill()

    def answer(self, head: Head, raw: bytes = b"") -> None:
        """Send the answer to a request of this item."""
        if self._item:
            if isinstance(head, PageHead):
                head.i = self._item
            else:
                head = {**head, "i": self._item}
        self._child.send_soon(head, raw)

    def _on_log(self, frame: LogFrame) -> None:
        room = self._limits.log_kb * 1024 - self._log_bytes
        self._logs_cut = self._logs_cut or frame.cut or room <= 0
        if room <= 0:
            self.count_refusal(f"the log may have {self._limits.log_kb} KB; limits.log_kb")
            return
        if frame.cut and not frame.text:
            return
        fields = bounded(frame.fields)
        size = len(frame.text.encode()) + 32 + (len(msgspec.json.encode(fields)) if fields else 0)
        self._log_bytes += size
        self._logs_cut = self._logs_cut or size > room
        line = LogLine(at_ms=frame.at_ms, stream=frame.stream, text=frame.text[:room], level=frame.level, fields=fields)
        self._services.log(line)

    def _on_progress(self, frame: ProgressFrame) -> None:
        self._progress_frames += 1
        if self._progress_frames > _MAX_PROGRESS:
            self.count_refusal(f"a run may tell its progress {_MAX_PROGRESS} times")
            return
        self._services.progress(RunProgress(done=frame.done, total=frame.total, message=frame.message))

    def count_refusal(self, why: str) -> None:
        """End the run after too many refusals: the SDK stops at its limits, so such a child floods us on purpose."""
        self._refusals += 1
        if self._refusals > _MAX_REFUSALS:
            message = f"the child went on after {_MAX_REFUSALS} refused frames; the last: {why}"
            self.stop(ExitReason.PROTOCOL_ERROR, message)

    def _on_record(self, raw: bytes) -> None:
        if not raw:
            self.stop(ExitReason.PROTOCOL_ERROR, "the child sent a record without content")
        elif not self._output_over(len(raw) + 1):
            self._records += b"," if self._record_count else b""
            self._records += raw
            self._record_count += 1

    def _output_over(self, more: int) -> bool:
        self._output_bytes += more
        if self._output_bytes <= self._limits.output_mb * _MB:
            return False
        self.stop(
            ExitReason.OUTPUT_LIMIT, f"the result is larger than {self._limits.output_mb:g} MB; raise limits.output_mb"
        )
        return True

    def _on_result(self, frame: Result, raw: bytes) -> None:
        if frame.records:
            raw = b"[" + self._records + b"]"
            self._records.clear()
        elif self._output_over(len(raw)):
            return
        self._concluding = True
        self._end_with(frame)
        if not self._item:
            self._child.close()
        if len(raw) > _BIG_JSON:
            self.spawn(self._check_large(frame, raw))
        else:
            self._conclude(frame, raw, fault_of(raw))

    async def _check_large(self, frame: Result, raw: bytes) -> None:
        self._conclude(frame, raw, await asyncio.to_thread(fault_of, raw))

    def _conclude(self, frame: Result, raw: bytes, fault: tuple[ExitReason, str] | None) -> None:
        if fault is not None:
            self.stop(*fault)
            return
        self._settle(
            Verdict(
                exit_reason=ExitReason.SUCCEEDED,
                result=Raw(raw),
                cpu_ms=frame.cpu_ms,
                memory_mb=frame.peak_kb / 1024,
            )
        )

    def _end_with(self, frame: Result | Error) -> None:
        self.imports, self.peak_kb = frame.imports, frame.peak_kb
        self.left = frame.left
        self.reusable = bool(self._item) and not frame.left

    def _on_error(self, frame: Error) -> None:
        self._end_with(frame)
        try:
            reason = ExitReason(frame.reason)
        except ValueError:
            reason = ExitReason.SCRIPT_ERROR
        if reason not in CLAIMABLE:
            reason = ExitReason.PROTOCOL_ERROR
        if frame.type in _OF_THE_STORE and self._requests.store_fault:  # the platform's fault, not the script's
            reason = ExitReason.INTERNAL_ERROR
        self.reusable = self.reusable and reason not in _SPENDING
        error = RunError(
            message=frame.message,
            type=frame.type,
            traceback=frame.traceback,
            site_status=frame.site_status,
            details=bounded(frame.details),
        )
        self._settle(
            Verdict(
                exit_reason=reason,
                error=error,
                cpu_ms=frame.cpu_ms,
                memory_mb=frame.peak_kb / 1024,
                retry_after=frame.after if reason is ExitReason.RETRY or reason.is_fetch else None,
            )
        )
