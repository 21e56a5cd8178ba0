"""Sign-in with a browser: the session's cookie and CSRF token, and the way over an identity provider."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import pytest_asyncio
from pydantic import ValidationError
from starlette.responses import Response

from scrapeyard.gateway.auth.documents import KeyCall
from scrapeyard.gateway.auth.sessions import SESSION, SignedSession
from scrapeyard.model.identity import Role, new_secret
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import OidcSettings, Settings
from tests.integration.gateway_stand import Stand, open_stand
from tests.services.issuer import CLIENT, SECRET, Issuer, serve

pytestmark = pytest.mark.asyncio(loop_scope="module")
CSRF = "X-CSRF-Token"
START, CALLBACK = "/api/session/oidc/start", "/api/session/oidc/callback"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with serve() as server:
        yield server


def settings_of(issuer: Issuer, **more: Any) -> Settings:
    given = {"client_id": CLIENT, "client_secret": SECRET, "roles": ("boss=admin", "guest=viewer"), **more}
    return Settings(oidc=OidcSettings(issuer=issuer.url, audience="yard", **given))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stands(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> AsyncIterator[tuple[Stand, Stand]]:
    """Two gateways of one cluster."""
    folder, queue = tmp_path_factory.mktemp("sign-in"), MemoryQueue()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(open_stand(folder, settings_of(issuer), queue, "gw1"))
        second = await stack.enter_async_context(open_stand(folder, settings_of(issuer), queue, "gw2"))
        yield first, second


@pytest.fixture
def stand(stands: tuple[Stand, Stand]) -> Stand:
    return stands[0]


@asynccontextmanager
async def browser(stand: Stand, url: str = "http://gateway") -> AsyncIterator[httpx.AsyncClient]:
    """A client with cookies of its own."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(stand.app), base_url=url, timeout=120) as client:
        yield client


async def make(stand: Stand, role: Role = Role.OPERATOR, **more: Any) -> tuple[str, str]:
    call = KeyCall.model_validate({"name": f"a-{role}", "role": role, **more})
    key, secret = await stand.gateway.keys.create(call.draft(time.time()))
    return key.id, secret


async def change(client: httpx.AsyncClient, **headers: str) -> httpx.Response:
    return await client.put("/api/sites/a.example", json={"rate": 1.0}, headers=headers)


async def test_a_key_opens_a_session_on_every_gateway_and_ends_it(stands: tuple[Stand, Stand]) -> None:
    first, second = stands
    key_id, secret = await make(first)
    await second.gateway.keys._table.refresh()
    async with browser(first) as client:
        opened = await client.post("/api/session", json={"key": secret})
        assert opened.status_code == 201, opened.text
        assert secret not in opened.text
        assert secret not in opened.headers["set-cookie"]
        me = (await client.get("/api/session")).json()
        assert me == opened.json()
        assert (me["signed_in"], me["client"], me["role"], me["ways"]) == (
            True,
            "a-operator",
            "operator",
            ["key", "oidc"],
        )
        assert "platform:write" in me["permissions"]
        assert "admin" not in me["permissions"]
        assert (await client.get("/api/keys")).status_code == 403
        async with browser(second) as other:
            other.cookies = client.cookies
            assert (await other.get("/api/identity")).json()["client"] == "a-operator"
            await first.gateway.keys.revoke(key_id)
            await second.gateway.keys._table.refresh()
            for each in (client, other):
                assert (await each.get("/api/identity")).status_code == 401
                assert (await each.get("/api/session")).json()["signed_in"] is False


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
async def test_the_key_may_come_in_a_header(stand: Stand, header: str) -> None:
    _, secret = await make(stand, Role.VIEWER)
    value = f"Bearer {secret}" if header == "Authorization" else secret
    async with browser(stand) as client:
        assert (await client.post("/api/session", headers={header: value})).status_code == 201
        assert (await client.get("/api/jobs")).status_code == 200


async def test_the_cookie_is_closed_to_scripts_other_sites_and_plain_connections(stand: Stand) -> None:
    _, secret = await make(stand)
    for url, name in (("http://gateway", SESSION), ("https://gateway", f"__Host-{SESSION}")):
        async with browser(stand, url) as client:
            answer = await client.post("/api/session", json={"key": secret})
            ((told, morsel),) = SimpleCookie(answer.headers["set-cookie"]).items()
            assert (told, morsel["httponly"], morsel["samesite"], morsel["path"]) == (name, True, "strict", "/")
            assert bool(morsel["secure"]) == url.startswith("https")
            assert 0 < int(morsel["max-age"]) <= 12 * 3600
    async with browser(stand) as client:
        proxied = {"X-Forwarded-Proto": "https"}
        answer = await client.post("/api/session", json={"key": secret}, headers=proxied)
        assert answer.headers["set-cookie"].startswith("__Host-")
        planted = {"cookie": answer.headers["set-cookie"].removeprefix("__Host-").partition(";")[0]}
        assert (await client.get("/api/identity", headers=planted)).status_code == 200
        assert (await client.get("/api/identity", headers=planted | proxied)).status_code == 401


async def test_a_change_by_cookie_needs_the_token_of_its_session(stand: Stand) -> None:
    _, secret = await make(stand)
    async with browser(stand) as client, browser(stand) as other:
        token = (await client.post("/api/session", json={"key": secret})).json()["csrf_token"]
        another = (await other.post("/api/session", json={"key": secret})).json()["csrf_token"]
        for wrong in ({}, {CSRF: ""}, {CSRF: another}, {CSRF: "é"}):
            refused = await change(client, **{name: value.encode() for name, value in wrong.items()})  # type: ignore[arg-type]
            assert (refused.status_code, refused.json()["code"]) == (403, "csrf_refused"), wrong
        assert (await change(client, **{CSRF: token})).status_code == 200
        assert (await change(client, Authorization=f"Bearer {secret}")).status_code == 200, (
            "no page sends a key unasked"
        )
        assert (await client.delete("/api/session")).status_code == 403
        assert (await client.delete("/api/session", headers={CSRF: token})).status_code == 204
        assert (await client.get("/api/identity")).status_code == 401
        assert (await client.delete("/api/session")).status_code == 204


@pytest.mark.parametrize(
    "body",
    [None, {"key": "sy_short"}, {"key": new_secret()}, {"key": "e30.e30.e30"}],
    ids=["none", "short", "unknown", "token"],
)
async def test_without_a_key_in_force_nobody_signs_in(stand: Stand, body: dict[str, str] | None) -> None:
    await make(stand)
    async with browser(stand) as client:
        answer = await client.post("/api/session", json=body) if body else await client.post("/api/session")
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert "set-cookie" not in answer.headers


async def test_a_cookie_that_is_forged_or_old_is_refused(stand: Stand) -> None:
    key_id, _ = await make(stand)
    gateway = stand.gateway
    now = int(gateway.services.clock())
    good = gateway.sessions.open(gateway.keys.checked(gateway.keys.get(key_id)))
    cookies = {
        "good": _cookie(stand, good),
        "forged": _cookie(stand, good)[:-1] + "x",
        "no signature": _cookie(stand, good).rpartition(".")[0],
        "nonsense": "a.b",
        "old": _cookie(stand, SignedSession(id="1", until=now - 1, key_id=key_id)),
        "no such key": _cookie(stand, SignedSession(id="1", until=now + 60, key_id="key_" + "0" * 32)),
        "another issuer": _cookie(stand, SignedSession(id="1", until=now + 60, issuer="https://old", client="a")),
    }
    async with browser(stand) as client:
        answers = {
            name: (await client.get("/api/identity", headers={"Cookie": f"x=1; {SESSION}={value}"})).status_code
            for name, value in cookies.items()
        }
    assert answers == {**dict.fromkeys(cookies, 401), "good": 200}


def _cookie(stand: Stand, session: SignedSession) -> str:
    answer = Response()
    stand.gateway.sessions.give(answer, session, {"type": "http", "scheme": "http", "headers": []})
    return SimpleCookie(answer.headers["set-cookie"])[SESSION].value


async def test_who_signs_in_stands_in_the_audit(stand: Stand, issuer: Issuer) -> None:
    _, admin = await make(stand, Role.ADMIN, client="boss")
    async with browser(stand) as client:
        issuer.claims = {"sub": "bo"}
        await sign_in(client)
        await client.post("/api/session", json={"key": admin})
        await stand.gateway.audit._flush()
        rows = (await client.get("/api/audit")).json()["rows"]
    found = [(row["action"], row["client"]) for row in rows]
    assert {("create_session", "boss"), ("finish_oidc", "bo")} <= set(found)


async def test_while_nobody_is_asked_everybody_may_do_everything(tmp_path: Path) -> None:
    async with open_stand(tmp_path) as stand:
        me = (await stand.client.get("/api/session")).json()
        assert (me["auth_required"], me["signed_in"], me["role"], me["ways"]) == (False, True, "admin", ["key"])
        assert (me["csrf_token"], me["oidc_url"]) == (None, None)
        assert (await stand.client.get(START)).status_code == 404
        assert (await stand.client.get(CALLBACK)).status_code == 404


async def sign_in(client: httpx.AsyncClient, **query: str) -> httpx.Response:
    """As a browser does it: to the provider, and back."""
    return await client.get(await at_provider(client, **query))


async def at_provider(client: httpx.AsyncClient, **query: str) -> str:
    begun = await client.get(START, params=query)
    assert begun.status_code == 303, begun.text
    async with httpx.AsyncClient(trust_env=False) as world:
        return (await world.get(begun.headers["location"])).headers["location"]


@pytest.fixture(autouse=True)
def _usual(issuer: Issuer) -> None:
    issuer.denies, issuer.claims, issuer.secret_in = False, {}, "client_secret_basic"


async def test_people_sign_in_at_the_provider(stand: Stand, issuer: Issuer) -> None:
    issuer.claims = {"sub": "bo", "roles": ["boss"]}
    async with browser(stand) as client:
        me = (await client.get("/api/session")).json()
        assert (me["signed_in"], me["oidc_url"]) == (False, START)
        back = await sign_in(client, next="/jobs?a=<b>")
        assert back.status_code == 200, back.text
        assert 'url=/jobs?a=&lt;b&gt;"' in back.text
        me = (await client.get("/api/session")).json()
        assert (me["client"], me["role"]) == ("bo", "admin")
        assert (await change(client)).status_code == 403
        assert (await change(client, **{CSRF: me["csrf_token"]})).status_code == 200


@pytest.mark.parametrize(("secret_in", "secret"), [("client_secret_post", SECRET), (None, "")])
async def test_the_secret_goes_into_the_form_or_there_is_none(
    tmp_path: Path, issuer: Issuer, secret_in: str | None, secret: str
) -> None:
    issuer.secret_in = secret_in
    async with open_stand(tmp_path, settings_of(issuer, client_secret=secret)) as stand, browser(stand) as client:
        assert (await sign_in(client)).status_code == 200


async def test_the_way_back_is_checked(stand: Stand, issuer: Issuer) -> None:
    async with browser(stand) as client, browser(stand) as victim:
        url = await at_provider(client)
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        wrong = {
            "another browser": await victim.get(url),
            "another state": await client.get(CALLBACK, params={**query, "state": "x"}),
            "another issuer": await client.get(CALLBACK, params={**query, "iss": "https://evil.example"}),
            "no code": await client.get(CALLBACK, params={"state": query["state"]}),
            "unknown code": await client.get(CALLBACK, params={**query, "code": "x"}),
        }
        assert {name: answer.status_code for name, answer in wrong.items()} == dict.fromkeys(wrong, 403)
        assert all(SESSION not in answer.headers.get("set-cookie", "") for answer in wrong.values())
        assert (await client.get(url)).status_code == 200
        assert (await client.get(url)).status_code == 403, "once"
        issuer.denies = True
        denied = await sign_in(client)
        assert (denied.status_code, denied.json()["detail"]) == (
            403,
            "the identity provider says: access_denied: not today?",
        )


@pytest.mark.parametrize(
    ("claims", "status", "words"),
    [
        ({"nonce": "x"}, 403, "another sign-in"),
        ({"nonce": None}, 403, "another sign-in"),
        ({"aud": "yard"}, 401, "Audience"),
        ({"aud": [CLIENT, "x"], "azp": "x"}, 403, "another client"),
        ({"iss": "https://evil.example"}, 401, "issuer"),
        ({"exp": 1}, 401, "expired"),
        ({"roles": []}, 403, "is a role here"),
    ],
)
async def test_an_id_token_must_be_for_this_sign_in(
    stand: Stand, issuer: Issuer, claims: dict[str, Any], status: int, words: str
) -> None:
    issuer.claims = claims
    async with browser(stand) as client:
        back = await sign_in(client)
        assert (back.status_code, "set-cookie" in back.headers) == (status, False)
        assert words in back.json()["detail"]


@pytest.mark.parametrize("place", ["//evil.example", "/\\evil.example", "https://evil.example", "/a b", "jobs"])
async def test_the_way_onward_leads_nowhere_else(stand: Stand, place: str) -> None:
    assert (await stand.client.get(START, params={"next": place})).status_code == 422


@pytest.mark.parametrize(
    "given", [{"client_id": "x"}, {"issuer": "https://id.example", "audience": "a", "scopes": ["profile"]}]
)
async def test_settings_with_which_nobody_could_sign_in_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"client_id|openid"):
        OidcSettings(**given)
