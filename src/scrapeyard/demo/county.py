"""The practice county: a search form, a list of results, and a parcel whose data is spread over several pages.

Everything in it is made up, and it has no people. The form wants the cookie and the hidden field that its page sets, as
many public registers do.
"""

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import urlencode

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scrapeyard.demo.http import html_answer, read_form
from scrapeyard.demo.parts import crumbs, document, pager

PARCELS = 36
PER_PAGE = 8
BILLS_PER_PAGE = 3
MAX_QUERY = 60
_COOKIE, _VISIT, _FORM = "county", "practice", "practice-form"
_FIRST_YEAR, _LAST_YEAR = 2019, 2025
_STREETS = ("Sample Street", "Example Avenue", "Placeholder Road", "Fixture Lane")
_CLASSES = ("Residential", "Commercial", "Agricultural", "Vacant")
_RATE = 125
"""Tax in cents for each 100 of value."""


class LandParcel(Struct, frozen=True, kw_only=True):
    """A piece of land that does not exist."""

    id: str
    address: str
    use: str
    square_feet: int
    built: int | None
    land: int
    building: int

    def value(self, year: int) -> tuple[int, int]:
        """Land and building in that year."""
        grown = 100 + 3 * (year - _FIRST_YEAR)
        return self.land * grown // 100, self.building * grown // 100

    def tax_cents(self, year: int) -> int:
        """The bill of that year."""
        return sum(self.value(year)) * _RATE // 100


def make_parcels() -> dict[str, LandParcel]:
    """All parcels by their number. Every fifth one has a second unit, whose number begins alike."""
    made = {}
    for number in range(1, PARCELS + 1):
        units = ("", "-A") if number % 5 == 0 else ("",)
        for unit in units:
            use = _CLASSES[number % len(_CLASSES)]
            parcel = LandParcel(
                id=f"PC-{number:04}{unit}",
                address=f"{number * 10}{unit[1:]} {_STREETS[number % len(_STREETS)]}, Testville",
                use=use,
                square_feet=4_000 + number * 250,
                built=None if use == "Vacant" else 1950 + number,
                land=20_000 + number * 1_000,
                building=0 if use == "Vacant" else 90_000 + number * 2_500,
            )
            made[parcel.id] = parcel
    return made


class County:
    """The county's pages, below `/county`."""

    def __init__(self) -> None:
        self._parcels = make_parcels()

    @property
    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/county", self.form),
            Route("/county/search", self.search, methods=["GET", "POST"]),
            Route("/county/parcel/{parcel}", self.parcel),
            Route("/county/parcel/{parcel}/values", self.values),
            Route("/county/parcel/{parcel}/taxes", self.taxes),
        ]

    async def form(self, request: Request) -> Response:
        """The search form."""
        body = f"""<h1>Practice County</h1><p class="blurb">Parcels of a county that does not exist.</p>
<form class="form" method="post" action="/county/search">
<input type="hidden" name="form_id" value="{_FORM}">
<label>Parcel or street <input name="query" required></label>
<button>Search</button></form>"""
        answer = html_answer(request, document("Practice County", "/county", body))
        answer.set_cookie(_COOKIE, _VISIT, httponly=True, samesite="lax")
        return answer

    async def search(self, request: Request) -> Response:
        """Parcels whose number or street has the text; the first page by the form, the others by links."""
        fields = dict(request.query_params)
        if request.method == "POST":
            fields = await read_form(request)
        if request.cookies.get(_COOKIE) != _VISIT or fields.get("form_id") != _FORM:
            expired = '<h1>Expired</h1><p class="problem">Open the form again.</p>'
            return html_answer(request, document("Expired", "/county", expired), 403)
        query = fields.get("query", "").strip()[:MAX_QUERY]
        words = query.lower()
        found = [each for each in self._parcels.values() if words and words in f"{each.id} {each.address}".lower()]
        body = _results(query, found, _number(fields.get("page", "1")))
        return html_answer(request, document("Results", "/county/search", body))

    async def parcel(self, request: Request) -> Response:
        """What the parcel is, and where the rest stands."""
        parcel = self._find(request)
        here = f"/county/parcel/{parcel.id}"
        facts = {"Address": parcel.address, "Use": parcel.use, "Lot": f"{parcel.square_feet:,} sq ft"}
        if parcel.built is not None:
            facts["Built"] = str(parcel.built)
        listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
        body = f"""{_trail(parcel)}<h1>Parcel <span class="parcel-id">{parcel.id}</span></h1>
<dl class="facts">{listed}</dl>
<ul><li><a class="values" href="{here}/values">Assessed values</a></li>
<li><a class="taxes" href="{here}/taxes">Tax bills</a></li></ul>"""
        return html_answer(request, document(f"Parcel {parcel.id}", here, body))

    async def values(self, request: Request) -> Response:
        """A row for each year."""
        parcel = self._find(request)
        rows = [
            (str(year), *(f"${value:,}" for value in (*parcel.value(year), sum(parcel.value(year)))))
            for year in range(_LAST_YEAR, _FIRST_YEAR - 1, -1)
        ]
        body = f"{_trail(parcel)}<h1>Assessed values</h1>{_table(('Year', 'Land', 'Building', 'Total'), rows)}"
        return html_answer(request, document("Assessed values", f"/county/parcel/{parcel.id}/values", body))

    async def taxes(self, request: Request) -> Response:
        """Bills, the newest first, three on a page. The newest one of every fourth parcel is not paid."""
        parcel = self._find(request)
        years = list(range(_LAST_YEAR, _FIRST_YEAR - 1, -1))
        pages = -(-len(years) // BILLS_PER_PAGE)
        page = min(_number(request.query_params.get("page", "1")), pages)
        shown = years[(page - 1) * BILLS_PER_PAGE : page * BILLS_PER_PAGE]
        rows = [(str(year), f"${parcel.tax_cents(year) / 100:,.2f}", _state(parcel, year)) for year in shown]
        here = f"/county/parcel/{parcel.id}/taxes"
        table = _table(("Year", "Amount", "State"), rows)
        body = f"{_trail(parcel)}<h1>Tax bills</h1>{table}{pager(here, page, pages)}"
        return html_answer(request, document("Tax bills", here, body))

    def _find(self, request: Request) -> LandParcel:
        parcel = self._parcels.get(request.path_params["parcel"])
        if parcel is None:
            raise HTTPException(404, "There is no such parcel in the county.")
        return parcel


def _state(parcel: LandParcel, year: int) -> str:
    is_open = year == _LAST_YEAR and parcel.land // 1000 % 4 == 0
    return "Due" if is_open else "Paid"


def _results(query: str, found: Sequence[LandParcel], page: int) -> str:
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(page, pages)
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    rows = "".join(
        f'<tr><td><a class="result" href="/county/parcel/{each.id}">{each.id}</a></td><td>{each.address}</td></tr>'
        for each in shown
    )
    following = escape(urlencode({"form_id": _FORM, "query": query, "page": page + 1}))
    more = f'<p><a rel="next" href="/county/search?{following}">More</a></p>' if page < pages else ""
    return (
        f'<h1>Results</h1><p class="blurb"><span class="hits">{len(found)}</span> for “{escape(query)}”</p>'
        f'<table class="results"><tbody>{rows}</tbody></table>{more}'
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _trail(parcel: LandParcel) -> str:
    return crumbs([("County", "/county"), (parcel.id, f"/county/parcel/{parcel.id}")])


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 6 else 1
