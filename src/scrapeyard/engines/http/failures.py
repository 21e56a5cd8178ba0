"""What went wrong in wreq, in our words and with our exit reason.

wreq tells kinds apart by class but puts the cause into its text only, so the text is looked at, for a few fixed words.

Through a proxy, what fails before the site was reached is the proxy's: refused and dead connections to it, credentials
it does not take, a tunnel it does not open or closes, silence while connecting.
"""

import re

from wreq import exceptions

from scrapeyard.engines.http.url import Target
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason

WREQ_ERRORS: tuple[type[Exception], ...] = tuple(getattr(exceptions, name) for name in exceptions.__all__)

_TLS = re.compile(r"ssl|tls|certificate|handshake", re.IGNORECASE)
_DNS = re.compile(r"dns error", re.IGNORECASE)
_TIMED_OUT = re.compile(r"timed ?out", re.IGNORECASE)
CONNECTING = "connecting"
"""`details["stage"]` of a time-out before there was a connection."""
_CONNECT = "kind: Connect"
_CUT_OFF = "code: SYSCALL"
_BAD_LENGTH = "ContentLengthInvalid"
_THROUGH_PROXY = "is_proxied: true"
_URI = re.compile(r"uri: [^,]*,")
_CAUSE = re.compile(
    r'reason: "([^"]+)"|message: "([^"]+)"|error: ("[^"]+"|\w+)|Some\((?:netty::Error\()?([^{}"]+?)\)*,'
)


def explain(error: Exception, target: Target, proxy: str = "") -> FetchFailed:
    """The failure as ours. Its message says what to do; `details["cause"]` holds wreq's own words. `proxy` names the
    proxy that was used; empty: none was."""
    # wreq repeats the URL in its text, and a host may be called tls.example.
    text = _URI.sub("", str(error))
    reason = _proxy_reason(error, text) if proxy else None
    reason = reason or _reason(error, text)
    cause = _cause(text)
    message = _message(reason, target, cause, proxy, text)
    failure = FetchFailed(reason, message, host=target.host, cause=text[:500])
    if reason is ExitReason.FETCH_TIMEOUT and _CONNECT in text:
        failure.details["stage"] = CONNECTING
    return failure


def refused_by_proxy(target: Target, proxy: str) -> FetchFailed:
    """An answer 407: the proxy does not take our credentials."""
    message = f"the proxy {proxy} does not take our credentials on the way to {target.host}; correct them in its pool"
    return FetchFailed(ExitReason.FETCH_PROXY, message, host=target.host, cause="407")


def is_stale_connection(error: Exception) -> bool:
    """Whether the server closed the connection before a byte of the answer, as it may with one that was idle."""
    return isinstance(error, exceptions.RequestError | exceptions.ConnectionResetError) and (
        "IncompleteMessage" in str(error) or "ConnectionReset" in str(error) or "BrokenPipe" in str(error)
    )


def _proxy_reason(error: Exception, text: str) -> ExitReason | None:
    """None: it is the site's."""
    if isinstance(error, exceptions.ProxyConnectionError):
        return ExitReason.FETCH_PROXY
    connecting = isinstance(error, exceptions.ConnectionError)
    if connecting and (_CUT_OFF in text or not _TLS.search(text)):
        return ExitReason.FETCH_PROXY
    closed = is_stale_connection(error) and _THROUGH_PROXY in text
    return ExitReason.FETCH_PROXY if closed else None


def _reason(error: Exception, text: str) -> ExitReason:
    match error:
        case exceptions.TimeoutError():
            return ExitReason.FETCH_TIMEOUT
        case exceptions.TlsError():
            return ExitReason.FETCH_TLS
        case exceptions.BuilderError():
            return ExitReason.FETCH_BAD_URL
        case exceptions.ConnectionError() | exceptions.ProxyConnectionError():
            return _connect_reason(text)
        case exceptions.BodyError() if _TIMED_OUT.search(text):
            return ExitReason.FETCH_TIMEOUT
        case _:
            return ExitReason.FETCH_PROTOCOL


def _connect_reason(text: str) -> ExitReason:
    if _TIMED_OUT.search(text):
        return ExitReason.FETCH_TIMEOUT
    if _DNS.search(text):
        return ExitReason.FETCH_DNS
    return ExitReason.FETCH_TLS if _TLS.search(text) else ExitReason.FETCH_CONNECT


def _message(reason: ExitReason, target: Target, cause: str, proxy: str, text: str) -> str:
    where = f"{target.host}:{target.port}"
    match reason:
        case ExitReason.FETCH_PROXY:
            return f"the proxy {proxy} failed on the way to {where} ({cause}); the site is not at fault"
        case ExitReason.FETCH_TIMEOUT if _CONNECT in text:
            return (
                f"no connection to {where} in time; is it up? Or raise policy.connect_seconds or http.connect_seconds"
            )
        case ExitReason.FETCH_TIMEOUT:
            return f"{where} fell silent; try again later, or raise http.read_seconds"
        case ExitReason.FETCH_TLS:
            return f"no secure connection to {where} ({cause}); the site's certificate or TLS setup is at fault"
        case ExitReason.FETCH_CONNECT if _CUT_OFF in text:
            return (
                f"{where} closed the connection during the TLS handshake; it may be down, refuse this client, or know "
                "only TLS versions before 1.2, which are not used"
            )
        case ExitReason.FETCH_CONNECT:
            return f"cannot connect to {where} ({cause}); check the port and that the site is up"
        case ExitReason.FETCH_BAD_URL:
            return f"the request to {where} cannot be built ({cause}); check its URL and headers"
        case ExitReason.FETCH_DNS:
            return f"the name {target.host} does not resolve; check its spelling"
        case ExitReason.FETCH_PROTOCOL if _BAD_LENGTH in text:
            return f"{where} sends an invalid Content-Length, so its answer has no known end; the site is at fault"
        case _:
            return f"{where} broke off or did not speak HTTP ({cause}); trying again may help"


def _cause(text: str) -> str:
    match = _CAUSE.search(text, text.find("{"))
    return next(group for group in match.groups() if group).strip('"') if match else "no cause given"
