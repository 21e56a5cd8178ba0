"""The trace of one call, read back from real OTLP receivers: one tree from the caller to the store."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from scrapeyard.settings import Settings
from scrapeyard.wiring.platform import Platform
from tests.leaks import PATIENCE
from tests.services.scripted_site import ScriptedSite
from tests.services.valkey import ValkeyServer

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Received:
    """Spans by id, with the service that sent each."""

    def __init__(self) -> None:
        self.spans: dict[str, tuple[str, Any]] = {}
        self._lock = threading.Lock()

    def take(self, request: Any) -> None:
        with self._lock:
            for resource in request.resource_spans:
                (service,) = [
                    one.value.string_value for one in resource.resource.attributes if one.key == "service.name"
                ]
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        self.spans[span.span_id.hex()] = (service, span)


@contextmanager
def over_http(received: Received) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
            assert self.headers["x-tenant"] == "yard, one"
            received.take(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def over_grpc(received: Received) -> Iterator[str]:
    class Service(trace_service_pb2_grpc.TraceServiceServicer):  # type: ignore[misc]
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the name is gRPC's
            assert ("x-tenant", "yard, one") in context.invocation_metadata()
            received.take(request)
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@asynccontextmanager
async def cluster(
    folder: Path, redis_url: str, endpoint: str, protocol: str, *more: str
) -> AsyncIterator[httpx.AsyncClient]:
    place = folder / "scrapers" / "shop" / "product"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text("def run(ctx, url):\n    return [ctx.fetch(url).status, ctx.fetch(url).status]\n")
    (place / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    settings = Settings.model_validate(
        {
            "data_dir": folder / "data",
            "redis_url": redis_url,
            "gateway": {"port": 0},
            "repository": {"scrapers": folder / "scrapers", "installed": False},
            "worker": {"slots": 2},
            "http": {"allow_private": True},
            "telemetry": {
                "otlp_endpoint": endpoint,
                "otlp_protocol": protocol,
                "otlp_headers": "X-Tenant=yard%2C%20one",
            },
        }
    )
    worker, gateway = Platform(settings, ("worker", *more)), Platform(settings, ("gateway",))
    try:
        await worker.start()
        await gateway.start()
        assert gateway.gateway is not None
        async with httpx.AsyncClient(base_url=gateway.gateway.url, timeout=PATIENCE) as client:
            yield client
    finally:
        await gateway.stop()
        await worker.stop()


@pytest.mark.parametrize(("protocol", "receiver"), [("http/protobuf", over_http), ("grpc", over_grpc)])
async def test_a_call_is_one_tree(tmp_path: Path, protocol: str, receiver: Any) -> None:
    received = Received()
    with ValkeyServer() as valkey, ScriptedSite() as site, receiver(received) as endpoint:
        async with cluster(tmp_path, valkey.url, endpoint, protocol) as client:
            call = {"scraper": "shop/product", "input": {"url": f"{site.url}cookies"}}
            headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            answer = await client.post("/api/scrape", json=call, headers=headers)
            assert answer.json()["result"] == [200, 200]
            unsampled = {"traceparent": f"00-{'a' * 32}-{CALLER}-00"}
            assert (await client.post("/api/scrape", json=call, headers=unsampled)).status_code == 200
        # stopping has sent everything
    assert {span.trace_id.hex() for _, span in received.spans.values()} == {TRACE}
    path = {span_id: ways(received, span_id) for span_id in received.spans}
    told = sorted((path[span_id], service) for span_id, (service, _) in received.spans.items())
    gateway, worker = "scrapeyard-gateway", "scrapeyard-worker"
    assert told == [
        ("caller/call", gateway),
        ("caller/call/queue", worker),
        ("caller/call/run", worker),
        ("caller/call/run/child", worker),
        ("caller/call/run/child start", worker),
        ("caller/call/run/child/fetch", worker),
        ("caller/call/run/child/fetch", worker),
        ("caller/call/run/store", worker),
    ]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano for _, span in received.spans.values())


async def test_items_of_a_job_have_traces_that_link_to_its_call(tmp_path: Path) -> None:
    received = Received()
    with ValkeyServer() as valkey, ScriptedSite() as site, over_grpc(received) as endpoint:
        async with cluster(tmp_path, valkey.url, endpoint, "grpc", "dispatcher") as client:
            items = [{"url": f"{site.url}cookies?{number}"} for number in range(12)]
            headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            made = await client.post("/api/jobs", json={"scraper": "shop/product", "items": items}, headers=headers)
            assert made.status_code == 201, made.text
            place = made.json()["links"]["self"]
            unsampled = {"traceparent": f"00-{'a' * 32}-{CALLER}-00"}
            other = await client.post(
                "/api/jobs", json={"scraper": "shop/product", "items": items[:2]}, headers=unsampled
            )
            for path in (place, other.json()["links"]["self"]):
                await _completed(client, path)
    spans = [span for _, span in received.spans.values()]
    (created,) = [span for span in spans if span.name == "create job"]
    assert (created.trace_id.hex(), created.parent_span_id.hex()) == (TRACE, CALLER)
    roots = [span for span in spans if span.name == "item"]
    assert {(link.trace_id, link.span_id) for span in roots for link in span.links} == {
        (created.trace_id, created.span_id)
    }
    assert 10 <= len(roots) == len({span.trace_id for span in roots}) <= 12, "the first ten at least"
    first = min(roots, key=lambda span: span.start_time_unix_nano)
    under = sorted(span.name for span in spans if span.trace_id == first.trace_id)
    assert under == ["child", "child start", "fetch", "fetch", "item", "store"]


async def _completed(client: httpx.AsyncClient, path: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await client.get(path)).json()["status"] != "completed":
            await asyncio.sleep(0.1)


def ways(received: Received, span_id: str) -> str:
    """From the caller to a span, by names."""
    if span_id == CALLER:
        return "caller"
    _, span = received.spans[span_id]
    return f"{ways(received, span.parent_span_id.hex())}/{span.name}"
