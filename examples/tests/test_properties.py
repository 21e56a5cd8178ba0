"""Property tests against a running server: what must hold for every input, not only for those one thinks of."""

import json
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
calls = settings(
    max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@calls
@given(given_input=st.dictionaries(texts, values, max_size=4))
def test_what_goes_in_comes_out(client: httpx.Client, given_input: dict[str, Any]) -> None:
    answer = client.post("/api/scrape", json={"scraper": "builtin/echo", "input": given_input})
    assert answer.json()["result"] == given_input


@calls
@given(body=values)
def test_no_body_breaks_the_server(client: httpx.Client, body: Any) -> None:
    answer = client.post("/api/scrape", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["remedy"]
