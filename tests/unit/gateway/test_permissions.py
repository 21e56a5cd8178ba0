"""The table of permissions has every route of the application, and nothing else."""

import pytest
from fastapi import FastAPI
from starlette.routing import Mount, Route

from scrapeyard.gateway.app import ROUTERS
from scrapeyard.gateway.audit.middleware import USE
from scrapeyard.gateway.auth.permissions import ROUTES, WEBSOCKET, Permission, RouteAccess, asked_for, names_of
from scrapeyard.gateway.document import reference
from scrapeyard.gateway.http.paths import PATHS, our_path
from scrapeyard.gateway.limits.middleware import HOLDS, SPENDS


def _routes() -> list[str]:
    app = FastAPI(openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, routes=[*reference.ROUTES])
    routes = [*app.routes, *(route for router in ROUTERS for route in router.routes)]
    return [name for route in routes for _, name in names_of(route)]


def test_every_route_has_one_permission() -> None:
    named = [name for names in ROUTES.values() for name in names]
    assert sorted(named) == sorted(set(_routes())), "each route once, and no other"


def test_an_application_with_an_unknown_route_does_not_start() -> None:
    with pytest.raises(KeyError, match="GET /api/unheard-of has no permission"):
        RouteAccess([Route("/api/unheard-of", lambda _: None)])
    with pytest.raises(TypeError):
        RouteAccess([Mount("/files", FastAPI())])


@pytest.fixture(scope="module")
def access() -> RouteAccess:
    app = FastAPI(openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, routes=[*reference.ROUTES])
    return RouteAccess([*app.routes, *(route for router in ROUTERS for route in router.routes)])


@pytest.mark.parametrize("name", asked_for())
def test_a_request_needs_what_its_route_asks_for(access: RouteAccess, name: str) -> None:
    method, path = name.split(" ")
    scope = {"path": path.replace("{", "").replace("}", "")}
    if method != WEBSOCKET:
        scope["method"] = method
    assert access.permission(scope) is asked_for()[name]
    if method == "GET":
        assert access.permission({**scope, "method": "HEAD"}) is asked_for()[name]


def test_other_spellings_need_the_same(access: RouteAccess) -> None:
    for alias, ours in PATHS.items():
        assert access.permission({"method": "GET", "path": our_path(alias + "/")}) is asked_for()[f"GET {ours}"]


def test_what_no_route_answers_needs_nothing_more(access: RouteAccess) -> None:
    assert access.permission({"method": "GET", "path": "/api/nowhere"}) is None
    assert access.permission({"method": "BREW", "path": "/api/scrape"}) is None
    assert Permission.OPEN in ROUTES


def test_calls_that_make_runs_or_jobs_are_counted_and_used() -> None:
    made = {route.removeprefix("POST ") for route in ROUTES[Permission.WORK_WRITE] if route.startswith("POST ")}
    new = {path for path in made if "{" not in path} - {"/api/schedule"}
    assert new == SPENDS, "a budget must allow it, and concurrency count it if it waits for a run"
    assert new - {"/api/jobs", "/api/crawl", "/api/cache/warm"} == HOLDS
    assert HOLDS | {"/api/cache/warm"} == USE
