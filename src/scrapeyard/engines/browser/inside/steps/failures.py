"""What went wrong in the browser, in our words and with our exit reason."""

import re
from typing import Final

from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

_NET: Final = re.compile(r"net::ERR_([A-Z0-9_]+)|(NS_ERROR_[A-Z_]+|SSL_ERROR_[A-Z_]+)")
_REASONS: Final = (
    (re.compile(r"NAME_NOT_RESOLVED|NAME_RESOLUTION|DNS_|UNKNOWN_HOST"), ExitReason.FETCH_DNS),
    (re.compile(r"^SSL_|^CERT_|BAD_SSL|^ECH_"), ExitReason.FETCH_TLS),
    (re.compile(r"^TIMED_OUT|CONNECTION_TIMED_OUT|NET_TIMEOUT"), ExitReason.FETCH_TIMEOUT),
    (re.compile(r"TOO_MANY_REDIRECTS|REDIRECT_LOOP"), ExitReason.FETCH_REDIRECTS),
    (re.compile(r"CONTENT_DECODING"), ExitReason.FETCH_DECODE),
    (re.compile(r"INVALID_URL|UNKNOWN_URL_SCHEME|UNSAFE_PORT|DISALLOWED_URL|MALFORMED_URI"), ExitReason.FETCH_BAD_URL),
    (
        re.compile(r"CONNECTION_|ADDRESS_|TUNNEL|PROXY|INTERNET_DISCONNECTED|NETWORK_|SOCKET_|SOCKS_|NET_RESET"),
        ExitReason.FETCH_CONNECT,
    ),
    (re.compile(r"EMPTY_RESPONSE|INVALID_|HTTP2?_|QUIC|RESPONSE_|CONTENT_LENGTH"), ExitReason.FETCH_PROTOCOL),
)
_CURL: Final = re.compile(r"^([A-Z][A-Za-z0-9]+) at [a-z]+:")
"""As the light browser tells it."""
_CURL_REASONS: Final = {
    "CouldntResolveHost": ExitReason.FETCH_DNS,
    "CouldntConnect": ExitReason.FETCH_CONNECT,
    "RecvError": ExitReason.FETCH_CONNECT,
    "SendError": ExitReason.FETCH_CONNECT,
    "GotNothing": ExitReason.FETCH_PROTOCOL,
    "WeirdServerReply": ExitReason.FETCH_PROTOCOL,
    "Http2": ExitReason.FETCH_PROTOCOL,
    "PartialFile": ExitReason.FETCH_PROTOCOL,
    "BadContentEncoding": ExitReason.FETCH_DECODE,
    "OperationTimedout": ExitReason.FETCH_TIMEOUT,
    "PeerFailedVerification": ExitReason.FETCH_TLS,
    "SslConnectError": ExitReason.FETCH_TLS,
    "TooManyRedirects": ExitReason.FETCH_REDIRECTS,
    "FilesizeExceeded": ExitReason.FETCH_TOO_LARGE,
    "UrlMalformat": ExitReason.FETCH_BAD_URL,
    "UnsupportedProtocol": ExitReason.FETCH_BAD_URL,
}
_CRASHED: Final = ("Target crashed", "Page crashed", "has crashed", "Connection closed", "browser has disconnected")
_CLOSED: Final = "has been closed"
_MAX_WORDS: Final = 500


def step_failed(message: str) -> FetchFailed:
    """It cannot be done so."""
    return FetchFailed(ExitReason.BROWSER_STEP, message)


def timed_out(what: str, seconds: float) -> FetchFailed:
    """It took longer than it may."""
    return FetchFailed(ExitReason.BROWSER_TIMEOUT, f"{what}: not within {seconds:g} s")


def crashed(message: str) -> FetchFailed:
    """The page, the browser or its process died."""
    return FetchFailed(ExitReason.BROWSER_CRASHED, message)


def too_large(what: str, max_bytes: int) -> FetchFailed:
    """More than may be carried."""
    return FetchFailed(ExitReason.FETCH_TOO_LARGE, f"{what} is larger than {max_bytes} bytes")


def is_gone(error: Exception) -> bool:
    """Whether an error of the driver says that what was asked is closed, or that its browser is gone."""
    return any(words in str(error) for words in (*_CRASHED, _CLOSED))


def explain(error: Exception, what: str) -> FetchFailed:
    """An error of the driver that is no time-out. `what` names the operation and what it was for."""
    text = _first_line(str(error))
    if any(words in text for words in _CRASHED):
        return crashed(f"{what}: the page crashed")
    if _CLOSED in text:
        return step_failed(f"{what}: the tab was closed meanwhile")
    if "Download is starting" in text:
        return step_failed(f"{what}: this is a file and no page; use `download`, or fetch it by plain HTTP")
    if found := _NET.search(text):
        name = found[1] or found[2]
        reason = next((reason for pattern, reason in _REASONS if pattern.search(name)), ExitReason.BROWSER_STEP)
        return FetchFailed(reason, f"{what}: the browser says {found[0]}", cause=found[0])
    if (named := _CURL.match(text)) and named[1] in _CURL_REASONS:
        return FetchFailed(_CURL_REASONS[named[1]], f"{what}: the browser says {named[1]}", cause=named[1])
    return step_failed(f"{what}: {text}")


def _first_line(text: str) -> str:
    """Without the method that the driver names first, and without its call log."""
    line = text.partition("\nCall log:")[0].strip().partition("\n")[0]
    return re.sub(r"^[A-Z]\w+\.\w+: (Error: )?", "", line)[:_MAX_WORDS]
