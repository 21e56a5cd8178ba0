"""What went wrong at an object store, in words that tell what to do. Nothing that a server said is passed on but codes:
its text may hold anything, and its URLs may hold secrets."""

import re
from typing import Final

from obstore.exceptions import PermissionDeniedError, PreconditionError, UnauthenticatedError

_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_REGION: Final = "the bucket is in another region; check S3_REGION"
_CODES: Final = {
    "NoSuchBucket": "there is no such bucket; check S3_BUCKET_NAME",
    "InvalidAccessKeyId": "the access key is not known there; check S3_ACCESS_KEY",
    "SignatureDoesNotMatch": "the secret key is not the access key's; check S3_SECRET_KEY",
    "AccessDenied": "access is denied; the key must be allowed to get and list objects of this bucket and prefix",
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "NotImplemented": "it does not know conditional writes, which publishing needs",
    "RequestTimeTooSkewed": "its clock and this machine's differ; set the clock",
}
_WORDS: Final = (
    ("Unable to canonicalize", "the folder is not there"),
    ("without LOCATION", _REGION),
    ("169.254.", "no credentials; set S3_ACCESS_KEY and S3_SECRET_KEY"),
    ("error following redirect", "redirects in a circle, or more than ten times"),
    ("Content-Length Header missing", "the server does not say how long its files are; serve them as plain files"),
    ("TimedOut", "the answer did not come in time"),
    ("Timeout", "the answer did not come in time"),
    ("body error", "the transfer broke off"),
    ("error sending request", "cannot be reached; check the address, and that the server runs"),
)


class Absent(Exception):
    """There is no such object."""


def explain(error: Exception) -> str | None:
    """In one line; None when an object is not there, which may be no fault."""
    text = str(error)
    code = found[1] if (found := _CODE.search(text)) else ""
    if code in _CODES:
        return _CODES[code]
    if isinstance(error, FileNotFoundError):
        return None
    if isinstance(error, PreconditionError):
        return "it changed while it was read; look again"
    status = found[1] if (found := _STATUS.search(text)) else ""
    if isinstance(error, UnauthenticatedError) or status == "401":
        return "refuses our credentials (401); check the token or keys"
    if isinstance(error, PermissionDeniedError) or status == "403":
        return "access is denied (403); check the token or keys, and what they are allowed"
    if status:
        return f"answers {status} {code}".strip()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    words = (words for part, words in _WORDS if part in text)
    return next(words, f"cannot be used ({type(error).__name__})")
