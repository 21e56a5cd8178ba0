"""Sends spans to a collector: OTLP over HTTP as JSON or protobuf, or over gRPC. The last two need the extra `otlp`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

import msgspec
from wreq import Client
from wreq import exceptions as wreq_errors

from scrapeyard.errors import SettingsInvalid
from scrapeyard.extras import missing
from scrapeyard.settings import TelemetrySettings
from scrapeyard.telemetry.spans import Attributes, FinishedSpan, document, nanoseconds

_RETRYABLE = (429, 502, 503, 504)
_ERRORS = tuple(getattr(wreq_errors, name) for name in wreq_errors.__all__)


class NotSent(Exception):
    """The collector rejected it or did not answer. `again` says whether a retry may help."""

    def __init__(self, why: str, *, again: bool) -> None:
        super().__init__(why)
        self.again = again


class Collector(Protocol):
    """Where spans go."""

    async def send(self, spans: Sequence[FinishedSpan]) -> None:
        """Raises NotSent."""

    async def close(self) -> None:
        """Close connections."""


def make_collector(settings: TelemetrySettings, service: str, version: str, seconds: float) -> Collector:
    """The collector that the settings name. Raises SettingsInvalid if the extra is not installed."""
    if settings.otlp_protocol != "http/json" and (words := missing("otlp")):
        raise SettingsInvalid(f"telemetry.otlp_protocol: {words}")
    if settings.otlp_protocol == "grpc":
        return GrpcCollector(settings.otlp_endpoint, service, version, seconds, settings.headers_of_otlp())
    as_json, headers = settings.otlp_protocol == "http/json", settings.headers_of_otlp()
    return HttpCollector(settings.otlp_endpoint, service, version, seconds, as_json=as_json, headers=headers)


class HttpCollector:
    """Posts to `{endpoint}/v1/traces`."""

    def __init__(
        self,
        endpoint: str,
        service: str,
        version: str,
        seconds: float,
        *,
        as_json: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._headers = dict(headers or {})
        self._url = endpoint.rstrip("/") + "/v1/traces"
        self._names = service, version
        self._as_json = as_json
        self._client = Client(timeout=timedelta(seconds=seconds))

    async def send(self, spans: Sequence[FinishedSpan]) -> None:
        """Raises NotSent."""
        if self._as_json:
            body, kind = msgspec.json.encode(document(*self._names, spans)), "application/json"
        else:
            body, kind = as_protobuf(*self._names, spans).SerializeToString(), "application/x-protobuf"
        try:
            response = await self._client.post(self._url, body=body, headers={**self._headers, "content-type": kind})
            status = response.status.as_int()
            await response.close()
        except _ERRORS as error:
            # the error text contains the URL, which may contain a password
            raise NotSent(type(error).__name__, again=True) from None
        if not 200 <= status < 300:
            raise NotSent(f"HTTP {status}", again=status in _RETRYABLE)

    async def close(self) -> None:
        """Close connections."""
        self._client.close()


class GrpcCollector:
    """Calls the trace service at `host:port`, `http://host:port` or, over TLS, `https://host:port`."""

    def __init__(
        self, endpoint: str, service: str, version: str, seconds: float, headers: Mapping[str, str] | None = None
    ) -> None:
        self._metadata = tuple((headers or {}).items())
        import grpc  # noqa: PLC0415 - an extra
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc  # noqa: PLC0415

        scheme, _, place = endpoint.rstrip("/").rpartition("://")
        secure = scheme == "https"
        credentials = grpc.ssl_channel_credentials() if secure else None
        channel = grpc.aio.secure_channel(place, credentials) if secure else grpc.aio.insecure_channel(place)
        self._channel = channel
        self._stub = trace_service_pb2_grpc.TraceServiceStub(channel)  # type: ignore[no-untyped-call]
        self._again = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        self._error: type[Any] = grpc.aio.AioRpcError
        self._names = service, version
        self._seconds = seconds

    async def send(self, spans: Sequence[FinishedSpan]) -> None:
        """Raises NotSent."""
        try:
            await self._stub.Export(as_protobuf(*self._names, spans), timeout=self._seconds, metadata=self._metadata)
        except self._error as error:
            raise NotSent(f"gRPC {error.code().name}", again=error.code() in self._again) from None

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()


def as_protobuf(service: str, version: str, spans: Sequence[FinishedSpan]) -> Any:
    """An ExportTraceServiceRequest."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: PLC0415

    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    _fill(of_resource.resource.attributes, {"service.name": service, "service.version": version})
    of_scope = of_resource.scope_spans.add()
    of_scope.scope.name, of_scope.scope.version = "scrapeyard", version
    for span in spans:
        made = of_scope.spans.add(
            trace_id=bytes.fromhex(span.trace_id),
            span_id=bytes.fromhex(span.span_id),
            parent_span_id=bytes.fromhex(span.parent),
            name=span.name,
            kind=span.kind,
            start_time_unix_nano=nanoseconds(span.start),
            end_time_unix_nano=nanoseconds(max(span.start, span.end)),
        )
        _fill(made.attributes, span.attributes)
        if span.link is not None:
            made.links.add(trace_id=bytes.fromhex(span.link.trace_id), span_id=bytes.fromhex(span.link.span_id))
        if span.error != "":
            made.status.code = 1 if span.error is None else 2
            made.status.message = span.error or ""
    return request


def _fill(into: Any, values: Attributes) -> None:
    for key, value in values.items():
        if isinstance(value, bool):
            into.add(key=key).value.bool_value = value
        elif isinstance(value, int):
            into.add(key=key).value.int_value = value
        elif isinstance(value, float):
            into.add(key=key).value.double_value = value
        elif value is not None:
            into.add(key=key).value.string_value = value
