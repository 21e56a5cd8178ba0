"""Learned patterns in the store: versions, health, and changes of two at once."""

from msgspec.structs import replace

from scrapeyard.store.ports.operations import PATTERN_VERSIONS, AnsweredPage, PatternHealth, StoredPattern
from scrapeyard.store.sql import SqlStore

PAGE = AnsweredPage(url="https://a.example/1", html="<p>1</p>", values={"title": "One", "price": 1.5, "weight": None})
ONE = StoredPattern(
    id="pattern_" + "1" * 32,
    site="a.example",
    client="ann",
    key="k",
    fields=("title", "price"),
    status="learning",
    marks=(1, 2, 3),
    checked=4,
    examples=(PAGE,),
    created_at=1.0,
    changed_at=1.0,
)


async def test_a_pattern_is_found_by_site_client_and_fields(store: SqlStore) -> None:
    written = await store.patterns.put(ONE)
    assert written == replace(ONE, revision=1, taught=1)
    assert await store.patterns.get(ONE.id) == written
    assert await store.patterns.known("a.example", "ann", "k") == (replace(written, examples=()),)
    for where in (("a.example", "bob", "k"), ("b.example", "ann", "k"), ("a.example", "ann", "j")):
        assert await store.patterns.known(*where) == ()
    assert [each.id for each in await store.patterns.listed(client="ann")] == [ONE.id]
    assert await store.patterns.listed(client="bob") == await store.patterns.listed(after=ONE.id) == ()
    assert await store.patterns.get("pattern_x") is None


async def test_of_two_changes_at_once_the_second_must_look_again(store: SqlStore) -> None:
    seen = await store.patterns.put(ONE)
    assert seen is not None
    ready = replace(seen, status="ready", version=1, pattern="{}")
    assert await store.patterns.put(ready) is not None
    assert await store.patterns.put(replace(seen, status="stale")) is None
    now = await store.patterns.get(ONE.id)
    assert now is not None
    assert (now.status, now.version, now.revision) == ("ready", 1, 2)


async def test_the_last_versions_are_kept(store: SqlStore) -> None:
    pattern = await store.patterns.put(ONE)
    for version in range(1, PATTERN_VERSIONS + 4):
        assert pattern is not None
        pattern = await store.patterns.put(replace(pattern, version=version, pattern=f'{{"n": {version}}}'), "edited")
    versions = await store.patterns.versions(ONE.id)
    assert [each.version for each in versions] == list(range(PATTERN_VERSIONS + 3, 3, -1))
    assert (versions[0].pattern, versions[0].origin) == (f'{{"n": {PATTERN_VERSIONS + 3}}}', "edited")


async def test_health_is_of_one_version(store: SqlStore) -> None:
    pattern = await store.patterns.put(replace(ONE, version=2, status="ready"))
    assert pattern is not None
    more = PatternHealth(pages=3, asked=1, filled={"title": 3}, used_at=9.0)
    for version in (2, 2, 1):
        await store.patterns.count(ONE.id, version, more)
    found = await store.patterns.get(ONE.id)
    assert found is not None
    assert found.health == PatternHealth(pages=6, asked=2, filled={"title": 6}, used_at=9.0)


async def test_a_pattern_is_removed_with_its_versions(store: SqlStore) -> None:
    await store.patterns.put(replace(ONE, version=1, status="ready"))
    assert await store.patterns.remove(ONE.id)
    assert not await store.patterns.remove(ONE.id)
    assert await store.patterns.versions(ONE.id) == ()
