"""Answers are structs: one definition for what is sent and for what the OpenAPI document says of it."""

from typing import Annotated

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from msgspec import UNSET, Meta, Struct, UnsetType

from scrapeyard.gateway.app import ROUTERS
from scrapeyard.gateway.http.answers import AnswerRoute, schemas

ROUTES = [route for router in ROUTERS for route in router.routes]


class Shown(Struct, kw_only=True):
    """An answer."""

    size: Annotated[int, Meta(description="In bytes.")] = 0
    note: str | UnsetType = UNSET


def test_a_route_describes_what_its_handler_returns() -> None:
    router = APIRouter(route_class=AnswerRoute)

    @router.get("/sizes", responses={404: {"description": "None."}})
    async def get_size() -> Shown:
        """The size,
        and perhaps a note."""
        return Shown()

    document = get_openapi(title="", version="1", routes=router.routes)["paths"]["/sizes"]["get"]
    assert (document["operationId"], document["description"]) == ("get_size", "The size, and perhaps a note.")
    answer = document["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/Shown"}


def test_an_answer_has_every_field_but_unset_ones() -> None:
    described = schemas([Shown])["Shown"]
    assert described["required"] == ["size"]
    assert described["properties"] == {
        "size": {"type": "integer", "description": "In bytes."},
        "note": {"type": "string"},
    }


def test_a_name_in_the_document_means_one_thing() -> None:
    called = get_openapi(title="", version="1", routes=ROUTES)["components"]["schemas"]
    shown = schemas({answer for route in ROUTES if isinstance(route, AnswerRoute) for answer in route.answers})
    for name in called.keys() & shown.keys():
        assert sorted(called[name]["enum"]) == sorted(shown[name]["enum"])


def test_every_route_answers_with_a_struct_or_describes_its_bytes() -> None:
    plain = {getattr(route, "path", "") for route in ROUTES if not isinstance(route, AnswerRoute)}
    assert plain == {"/api/jobs/{job_id}/ws", "/api/scrape/{run_id}/live", "/api/session/oidc/callback"}
