"""The tree of our errors. Each docstring gives the remedy.

    ScrapeyardError
    ├── BadRequest                 the caller sent something we cannot take; the message says which part
    │   ├── InputInvalid           the input does not fit the scraper's schema
    │   └── IdempotencyConflict    the same key with another body
    ├── NotFound                   no such run, scraper, artifact
    │   └── ScraperNotFound
    ├── Swept                      it was there; retention has removed it
    ├── ScraperInvalid             the scraper's files are wrong; its author must fix them
    ├── Unavailable                a dependency is away or full; try again after `retry_after` seconds
    │   ├── Overloaded             too many runs wait
    │   ├── QueueUnavailable
    │   │   └── QueueUncertain     it may have done what it was asked
    │   ├── StoreUnavailable
    │   │   └── StoreUncertain     it may have written what it was asked to
    │   ├── BlobsUnavailable
    │   ├── SinkUnavailable        a sink takes no results now
    │   └── SourceUnavailable      a repository of scrapers
    ├── FetchFailed                an engine could not get a page; carries an exit reason
    ├── ExportFailed               a file could not be made of a job; the message says why
    ├── SandboxError               a child could not be made
    ├── SettingsInvalid            the settings cannot be used as they are
    ├── SealBroken                 a secret in the database was changed or moved; write it again
    └── Refusal                    the gateway refuses a call for an HTTP reason; carries its status

Each error has a stable `code`, used in problem documents and logs.
"""

from typing import Any, ClassVar

from scrapeyard.model import ExitReason


class ScrapeyardError(Exception):
    """Base of all our errors. Catch it to tell ours from Python's."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class BadRequest(ScrapeyardError):
    """The request cannot be taken as it is. Correct the part that the message names."""

    code = "bad_request"


class InputInvalid(BadRequest):
    """The input does not fit the scraper's schema. `details["errors"]` lists each place; correct them."""

    code = "bad_input"


class IdempotencyConflict(BadRequest):
    """This Idempotency-Key was used with another body. Use a new key for a new request."""

    code = "idempotency_conflict"


class NotFound(ScrapeyardError):
    """No such thing. Check the id; runs are removed when their retention ends."""

    code = "not_found"


class ScraperNotFound(NotFound):
    """No scraper of that id and version. `GET /api/scrapers` lists what there is."""

    code = "scraper_not_found"


class Swept(ScrapeyardError):
    """It was there, and retention has removed it. Run it again if it is still wanted, or keep the next one longer."""

    code = "swept"


class ScraperInvalid(ScrapeyardError):
    """The scraper's files cannot be run. The message names the file and the fault; correct it and publish again."""

    code = "scraper_invalid"


class Unavailable(ScrapeyardError):
    """Something we depend on is away. Nothing is lost; try again after `retry_after` seconds."""

    code = "unavailable"
    retryable = True

    def __init__(self, message: str, *, retry_after: float = 2.0, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class Overloaded(Unavailable):
    """Too many runs wait already. Slow down, or add workers."""

    code = "overloaded"


class QueueUnavailable(Unavailable):
    """The queue does not answer. Check REDIS_URL or queue.url and the server behind it."""

    code = "queue_unavailable"


class QueueUncertain(QueueUnavailable):
    """The queue went away before it answered: it may or may not have done what it was asked."""


class StoreUnavailable(Unavailable):
    """The database does not answer. Check DATABASE_URL and the server behind it."""

    code = "store_unavailable"


class StoreUncertain(StoreUnavailable):
    """The database went away before it answered: it may or may not have written what it was asked to."""


class BlobsUnavailable(Unavailable):
    """The blob store does not answer or is full. Check the data directory."""

    code = "blobs_unavailable"


class SinkUnavailable(Unavailable):
    """A sink does not answer, or refuses what it is given. Check its address and permissions in `sinks`; the same
    records are delivered again later."""


class SourceUnavailable(Unavailable):
    """A repository of scrapers is away, slow or serves unusable data. Cached versions keep serving."""

    code = "source_unavailable"


class FetchFailed(ScrapeyardError):
    """An engine could not get a page. `reason` says in which way."""

    code = "fetch_failed"

    def __init__(self, reason: ExitReason, message: str, *, site_status: int | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.reason = reason
        self.site_status = site_status


class ExportFailed(ScrapeyardError):
    """A file could not be made of a job. The message says why and what to do."""

    code = "export_failed"


class SandboxError(ScrapeyardError):
    """A child could not be made. `scrapeyard doctor` tells which wall or limit stands in the way."""

    code = "sandbox_error"


class SettingsInvalid(ScrapeyardError):
    """The settings cannot be used. The message names the key; `scrapeyard config` shows what is in force."""

    code = "settings_invalid"


class SealBroken(ScrapeyardError):
    """A sealed value cannot be opened: it was changed, or moved from another row. Write the secret again."""

    code = "seal_broken"


class Refusal(ScrapeyardError):
    """A call refused for an HTTP reason. Carries its code, status and optionally Retry-After."""

    def __init__(self, code: str, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.refusal_code = code
        self.status = status
        self.retry_after = retry_after


def refuses_certificate(error: BaseException) -> bool:
    """Whether a connection failed because the server's TLS certificate was not accepted."""
    words, cause = str(error), error.__cause__ or error.__context__
    if "certificate verify failed" in words or "InvalidCertificate(" in words:  # of OpenSSL and of rustls
        return True
    return cause is not None and refuses_certificate(cause)
