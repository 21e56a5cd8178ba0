"""Serves the tools with the official SDK of the Model Context Protocol: over stdin and stdout, or over HTTP.

Over stdin the caller is whoever started the command, with that user's key. Over HTTP every request carries the caller's
own key or token, which goes on to the server: the tools can do what the caller may do, and nothing else.
"""

from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs
import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from scrapeyard import __version__
from scrapeyard.cli.mcp.calls import Api, CallRefused, Credentials, ScraperTool
from scrapeyard.cli.mcp.tools import TOOLS, ToolSpec, run
from scrapeyard.errors import BadRequest, ScrapeyardError

PATH: Final = "/mcp"
MAX_TEXT: Final = 200_000
"""Characters of one answer: more would fill the caller's context."""
MAX_BODY: Final = 4 * 2**20
_CREDENTIALS: Final = ("authorization", "x-api-key")
_INSTRUCTIONS: Final = (
    "Reads web pages and runs scrapers on a Scrapeyard server. scrape reads one page; crawl and create_job make jobs, "
    "which job_status and job_results tell about. Tools named run_… are the scrapers of this server."
)
_SPECS: Final = {spec.name: spec for spec in TOOLS}
_MAX_FAULTS: Final = 3


class ToolServer:
    """The tools of one server for its callers. `who` tells the credentials of a request."""

    def __init__(self, api: Api, who: Callable[[Any], Credentials]) -> None:
        self._api = api
        self._who = who
        self.server: Server[Any] = Server(
            "scrapeyard",
            version=__version__,
            title="Scrapeyard",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, context: Any, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        try:
            scrapers = await self._api.scraper_tools(self._who(context))
        except ScrapeyardError as error:
            raise MCPError(types.INTERNAL_ERROR, error.message) from None
        return types.ListToolsResult(tools=[*map(_tool_of, TOOLS), *map(_tool_of_scraper, scrapers)])

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        who, given = self._who(context), dict(params.arguments or {})
        try:
            return _answer(await self._performed(who, params.name, given))
        except ScrapeyardError as error:
            return _failed(error.message)

    async def _performed(self, who: Credentials, name: str, given: dict[str, Any]) -> Any:
        spec = _SPECS.get(name)
        if spec is not None:
            _check(spec, given)
            return await spec.perform(self._api, who, given)
        for tool in await self._api.scraper_tools(who):
            if tool.name == name:
                return await run(self._api, who, tool.scraper, given)
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:100]!r}; list the tools again")


def _check(spec: ToolSpec, given: dict[str, Any]) -> None:
    faults = jsonschema_rs.validator_for(spec.input_schema).iter_errors(given)
    words = [f"/{'/'.join(map(str, fault.instance_path))}: {fault.message}"[:500] for fault in faults][:_MAX_FAULTS]
    if words:
        raise BadRequest(f"the arguments do not fit the tool {spec.name}: {'; '.join(words)}")


def _answer(value: Any) -> types.CallToolResult:
    text = msgspec.json.encode(value).decode()
    if len(text) <= MAX_TEXT:
        return types.CallToolResult(content=[_text(text)], structured_content=value)
    cut = f"[cut: {len(text) - MAX_TEXT} more characters; ask for other formats, or for fewer items]"
    return types.CallToolResult(content=[_text(text[:MAX_TEXT]), _text(cut)])


def _failed(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(words)], is_error=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _tool_of(spec: ToolSpec) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=spec.reads_only, open_world_hint=not spec.reads_only)
    return types.Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=spec.input_schema,
        annotations=hints,
    )


def _tool_of_scraper(tool: ScraperTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=types.ToolAnnotations(read_only_hint=False, open_world_hint=True),
    )


async def serve_stdio(url: str, key: str) -> None:
    """Serve whoever started this process, until stdin ends."""
    own = {"authorization": f"Bearer {key}"} if key else {}
    api = Api(url)
    server = ToolServer(api, lambda _: own).server
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await api.close()


def http_app(api: Api, host: str) -> ASGIApp:
    """The application at PATH. On loopback, calls under other names and from web pages are refused."""
    server = ToolServer(api, _credentials_of).server
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, max_request_body_size=MAX_BODY, host=host
    )
    return KnownCallers(app, api)


def _credentials_of(context: Any) -> Credentials:
    return credentials(context.request.headers)


def credentials(headers: Headers) -> Credentials:
    """What of a request says who calls."""
    return {name: headers[name] for name in _CREDENTIALS if name in headers}


class KnownCallers:
    """Asks the server who calls, before anything is answered."""

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._api.identity(credentials(Headers(scope=scope)))
        except CallRefused as error:
            status = error.status if error.status in (401, 403, 429) else 503
            headers = {"WWW-Authenticate": 'Bearer realm="scrapeyard"'} if status == 401 else {}
            await JSONResponse({"error": error.message}, status, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)
