"""Who calls, asked of every request: credentials in headers, kinds of credentials, refusals."""

from base64 import b64encode
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Scope

from scrapeyard.errors import Refusal
from scrapeyard.gateway.auth.authentication import Authentication
from scrapeyard.gateway.auth.credentials import Authenticator, token_of, unauthenticated
from scrapeyard.gateway.auth.permissions import RouteAccess
from scrapeyard.model.identity import EVERYONE, NOBODY, Identity, Role


def _scope(*headers: tuple[str, str]) -> Scope:
    return {"headers": [(name.encode(), value.encode()) for name, value in headers]}


def _basic(words: str) -> str:
    return f"Basic {b64encode(words.encode()).decode()}"


@pytest.mark.parametrize(
    "header",
    [
        ("authorization", "Bearer sy_1"),
        ("authorization", "bearer  sy_1 "),
        ("authorization", _basic("anyone:sy_1")),
        ("authorization", _basic(":sy_1")),
        ("x-api-key", "sy_1"),
    ],
)
def test_a_token_is_found_in_each_header(header: tuple[str, str]) -> None:
    assert token_of(_scope(("host", "x"), header)) == "sy_1"


@pytest.mark.parametrize(
    "headers",
    [
        [("authorization", "Bearer sy_1"), ("x-api-key", "sy_1")],
        [("x-api-key", "sy_1"), ("x-api-key", "sy_2")],
        [("authorization", "Digest sy_1")],
        [("authorization", "Bearer ")],
        [("authorization", "Basic ä")],
        [("authorization", _basic("sy_1"))],
        [("x-api-key", "s" * 20_000)],
    ],
)
def test_credentials_that_cannot_be_read_are_refused(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Refusal) as refused:
        token_of(_scope(*headers))
    assert (refused.value.status, refused.value.refusal_code) == (401, "unauthenticated")


def test_no_credentials_are_no_token() -> None:
    assert token_of(_scope(("host", "x"))) is None


class Words:
    """A kind of credentials: a word that names a role."""

    def __init__(self, in_use: bool = True) -> None:
        self.in_use = in_use

    async def identify(self, token: str | None, _scope: Scope) -> Identity | None:
        if token is None or not token.startswith("word-"):
            return None
        if token == "word-old":
            raise unauthenticated("the word is old")
        return Identity(client="tea", role=Role(token.removeprefix("word-")))


async def _tell(request: Request) -> PlainTextResponse:
    identity = request.scope["identity"]
    return PlainTextResponse({EVERYONE: "everyone", NOBODY: "nobody"}.get(identity, f"{identity.client}"))


PATHS = ("/api/live", "/api/scrape", "/api/stats", "/api/keys")


def _client(words: Words) -> httpx.AsyncClient:
    routes = [Route(path, _tell) for path in PATHS[:3]]
    app = Authentication(Starlette(routes=routes), Authenticator([words]), RouteAccess(routes), lambda _: "")
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with _client(Words()) as opened:
        yield opened


async def test_while_no_kind_is_in_use_everybody_may_do_everything() -> None:
    async with _client(Words(in_use=False)) as client:
        for path in PATHS[:3]:
            assert (await client.get(path)).text == "everyone"


async def test_roles_reach_what_the_table_says(client: httpx.AsyncClient) -> None:
    async def get(path: str, token: str | None) -> tuple[int, str]:
        response = await client.get(path, headers={"X-API-Key": token} if token else {})
        return response.status_code, response.text if response.status_code == 200 else response.json()["code"]

    assert await get("/api/live", None) == (200, "nobody")
    assert await get("/api/live", "word-old") == (200, "nobody")
    assert await get("/api/scrape", "word-client") == (200, "tea")
    assert await get("/api/stats", "word-client") == (403, "forbidden")
    assert await get("/api/stats", "word-viewer") == (200, "tea")
    for token in (None, "word-old", "other"):
        for path in PATHS[1:]:
            assert await get(path, token) == (401, "unauthenticated")


async def test_a_path_without_a_route_is_told_only_to_known_callers(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/keys")).status_code == 401
    assert (await client.get("/api/keys", headers={"X-API-Key": "word-client"})).status_code == 404


async def test_a_refusal_names_the_ways_to_authenticate(client: httpx.AsyncClient) -> None:
    ways = (await client.get("/api/scrape")).headers.get_list("www-authenticate")
    assert [way.split(" ")[0] for way in ways] == ["Bearer", "Basic"]
    of_a_script = await client.get("/api/scrape", headers={"Sec-Fetch-Mode": "cors"})
    assert [way.split(" ")[0] for way in of_a_script.headers.get_list("www-authenticate")] == ["Bearer"]
