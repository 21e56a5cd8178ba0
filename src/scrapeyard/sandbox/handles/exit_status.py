"""What the death of a child means, and what of its words is kept."""

import signal

from scrapeyard.model import ExitReason, RunError
from scrapeyard.sandbox.handles.child import Exit
from scrapeyard.sandbox.port import Verdict

_SIGNAL_REASONS: dict[int, tuple[ExitReason, str]] = {
    signal.SIGXCPU: (ExitReason.CPU_LIMIT, "the run used its processor time"),
    signal.SIGXFSZ: (ExitReason.DISK_LIMIT, "the run wrote a file larger than limits.disk_mb"),
}


def judge_exit(end: Exit, cpu_limit: float) -> Verdict:
    """What the death of a child without a word means."""
    reason, message = ExitReason.CRASHED, "the child ended without a result"
    if end.signal in _SIGNAL_REASONS:
        reason, message = _SIGNAL_REASONS[end.signal]
    elif end.signal == signal.SIGKILL and end.cpu_ms >= cpu_limit * 1000:
        reason, message = ExitReason.CPU_LIMIT, "the run used its processor time"
    elif end.signal:
        message = f"the child was ended by {_signal_name(end.signal)}"
    error = RunError(message=message, details={"output": end.output} if end.output else {})
    return Verdict(exit_reason=reason, error=error, cpu_ms=end.cpu_ms, memory_mb=end.peak_kb / 1024)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def bounded(fields: dict[str, object]) -> dict[str, object]:
    """At most twenty fields, each a short plain value."""
    return {key[:100]: _plain(value) for key, value in list(fields.items())[:20]}


def _plain(value: object) -> object:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    return str(value)[:2000]
