"""What a client raises.

ClientError
├── NoAnswer        the server cannot be reached, or hung up
├── ApiError        the server refused the call, or failed
│   └── RunFailed   the run ended badly
├── FileFailed    the file could not be made or downloaded
├── WaitTimeout     what was waited for goes on
└── PandasMissing   `to_frame()` without pandas
"""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """Anything that this package raises by itself."""


class NoAnswer(ClientError):
    """No answer from the server. Check that it runs and that the address is right."""


class ApiError(ClientError):
    """The server's answer is a problem. `code` is stable; `remedy` tells what to do."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", ""))
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail", ""))
        self.remedy = str(problem.get("remedy", ""))
        self.retryable = bool(problem.get("retryable", False))
        self.errors: list[dict[str, str]] = list(problem.get("errors", ()))
        super().__init__(self._words())

    def _words(self) -> str:
        if not self.code:
            return f"the server answered {self.status} without saying why; is it a Scrapeyard server?"
        return f"{self.status} {self.code}: {self.detail or self.title}. {self.remedy}".rstrip()


class RunFailed(ApiError):
    """The run ended badly. `exit_reason` says how; `client.runs.get(error.run_id)` has what is known of it."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(status, problem)
        self.run_id = str(problem.get("id", ""))
        self.exit_reason = str(problem.get("exit_reason", ""))


class FileFailed(ClientError):
    """An export could not be made or was damaged on its way: ask for it again. Or a stream to upload was used up."""


class WaitTimeout(ClientError):
    """It has not ended within the time given. It goes on: wait again, or cancel it."""

    def __init__(self, what: str, waited_id: str, seconds: float) -> None:
        super().__init__(f"{what} {waited_id} has not ended within {seconds:g} s; it goes on")
        self.id = waited_id


class PandasMissing(ClientError, ImportError):
    """pandas is not installed: `pip install pandas`."""
