"""Signatures: what they bind, which keys count, and that nothing unsigned passes where keys are configured."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from scrapeyard.cli.main import app
from scrapeyard.errors import ScraperInvalid, ScrapeyardError, SettingsInvalid
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.archive.copies import SIGNATURE, Cache
from scrapeyard.repository.archive.files import scraper_files
from scrapeyard.repository.catalogue.loading import LoadTerms, identify, load_files
from scrapeyard.repository.trust.signing import (
    MAX_BYTES,
    PublicKey,
    check_signature,
    public_key_of,
    read_public_keys,
    sign,
)

REF = ScraperRef(id="shop/product", version="1.0.0", digest="d" * 64)
OURS, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
KEYS = (public_key_of(OURS, "team"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "product"
    place.mkdir()
    (place / "scraper.toml").write_text('id = "shop/product"\nversion = "1.0.0"\n')
    (place / "scraper.py").write_text("def run(ctx): ...\n")
    return place


def load(folder: Path, cache: Path, keys: tuple[PublicKey, ...] = KEYS) -> Scraper:
    terms = LoadTerms(ceiling=Limits(), public_keys=keys)
    return load_files(scraper_files(folder, folder.resolve(), folder.name), Cache(cache), terms, folder.name)


def refusal(folder: Path, cache: Path) -> str:
    with pytest.raises(ScraperInvalid) as caught:
        load(folder, cache)
    return caught.value.message


def write(folder: Path, private: Ed25519PrivateKey = OURS) -> None:
    (folder / SIGNATURE).write_bytes(sign(identify(folder)[0], private))


def test_a_signed_scraper_is_taken_and_its_digest_does_not_know(folder: Path, tmp_path: Path) -> None:
    unsigned = load(folder, tmp_path / "cache", keys=())
    write(folder)
    assert load(folder, tmp_path / "cache").ref == unsigned.ref


def test_unsigned_changed_or_signed_by_another_is_refused(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert f"no {SIGNATURE}" in refusal(folder, cache)
    assert f"{KEYS[0].id} (team)" in refusal(folder, cache)
    write(folder, OTHER)
    told = refusal(folder, cache)
    assert public_key_of(OTHER).id in told
    assert f"any of {KEYS[0].id} (team)" in told
    write(folder)
    (folder / "extra.py").write_text("x = 1\n")
    assert "sign it again" in refusal(folder, cache)


def test_a_signature_does_not_hold_for_another_version_or_scraper(folder: Path, tmp_path: Path) -> None:
    write(folder)
    manifest = folder / "scraper.toml"
    for text in ('id = "shop/product"\nversion = "1.0.1"\n', 'id = "shop/other"\nversion = "1.0.0"\n'):
        manifest.write_text(text)
        assert "sign it again" in refusal(folder, tmp_path / "cache")
    for other in (
        ScraperRef(id="shop/other", version="1.0.0", digest=REF.digest),
        ScraperRef(id="shop/product", version="1.0.1", digest=REF.digest),
        ScraperRef(id="shop/product", version="1.0.0", digest="e" * 64),
    ):
        with pytest.raises(ScraperInvalid):
            check_signature(sign(REF, OURS), other, KEYS, "x")


def test_a_copy_in_the_cache_keeps_its_signature_and_takes_a_later_one(folder: Path, tmp_path: Path) -> None:
    """What a process serves after a start without its source is read from the copies."""
    cache = tmp_path / "cache"
    copy = load(folder, cache, keys=()).folder
    assert copy is not None
    assert not (copy / SIGNATURE).exists()
    for private, keys in ((OURS, KEYS), (OTHER, (public_key_of(OTHER),))):
        write(folder, private)
        load(folder, cache, keys)
        again = load(copy, cache, keys)
        assert again.folder == copy
        assert (copy / SIGNATURE).read_bytes() == (folder / SIGNATURE).read_bytes()
    assert sorted(path.name for path in copy.iterdir()) == ["scraper.py", SIGNATURE, "scraper.toml"]


def test_one_good_line_of_several_is_enough() -> None:
    check_signature(sign(REF, OTHER) + sign(REF, OURS), REF, KEYS, "x")
    check_signature(sign(REF, OURS), REF, (public_key_of(OTHER), *KEYS), "x")


def test_a_signature_file_below_the_top_is_content(folder: Path, tmp_path: Path) -> None:
    before = identify(folder)[0]
    (folder / "lib").mkdir()
    (folder / "lib" / SIGNATURE).write_text("x")
    assert identify(folder)[0] != before


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"ed25519 x",
        b"ed25519 x ???",
        b"rsa x " + base64.b64encode(bytes(64)),
        b"ed25519 x " + base64.b64encode(bytes(63)),
        b"ed25519 \x1b[31m " + base64.b64encode(bytes(64)),
        sign(REF, OURS) + b"\nmore words than three here",
        sign(REF, OURS) * 17,
        sign(REF, OURS) + b" " * MAX_BYTES,
    ],
)
def test_a_broken_signature_is_refused(text: bytes) -> None:
    with pytest.raises(ScraperInvalid, match=r"not a signature|signed by"):
        check_signature(text, REF, KEYS, "x")


@given(st.binary(max_size=400))
def test_no_bytes_are_taken_for_a_signature(text: bytes) -> None:
    with pytest.raises(ScraperInvalid):
        check_signature(text, REF, KEYS, "x")


@pytest.mark.parametrize(
    "text",
    ["", "team:", "x" * 44, "team:AAAA", "Te am:" + KEYS[0].text, "a:b:" + "A" * 44],
    ids=["empty", "name alone", "not base64", "short", "space in name", "two names"],
)
def test_a_key_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"repository\.public_keys"):
        read_public_keys([text])


def test_keys_are_read_with_and_without_a_name() -> None:
    bare = KEYS[0].text.partition(":")[2]
    assert read_public_keys([KEYS[0].text, bare]) == (*KEYS, PublicKey(name="", raw=KEYS[0].raw))


def cli(*words: str) -> str:
    """What was printed. Raises what the command raises; `main` turns that into a message and an exit code."""
    ended = CliRunner().invoke(app, ["signing", *words], catch_exceptions=True)
    if ended.exception is not None:
        raise ended.exception
    return ended.stdout.strip()


def test_the_commands_make_a_key_sign_and_verify(folder: Path, tmp_path: Path) -> None:
    private = tmp_path / "private.pem"
    public = cli("make-key", str(private), "--name", "team")
    assert private.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ScrapeyardError, match="File exists"):
        cli("make-key", str(private))
    assert cli("sign", str(folder), "--key", str(private)) == str(folder / SIGNATURE)
    assert cli("verify", str(folder), "--public", public).startswith("shop/product@1.0.0 is signed")
    load(folder, tmp_path / "cache", read_public_keys([public]))
    with pytest.raises(ScraperInvalid, match="signed by"):
        cli("verify", str(folder), "--public", KEYS[0].text)
    (folder / "scraper.py").write_text("def run(ctx): return 1\n")
    with pytest.raises(ScraperInvalid, match="sign it again"):
        cli("verify", str(folder), "--public", public)
    assert sorted(path.name for path in folder.iterdir()) == ["scraper.py", SIGNATURE, "scraper.toml"]


def test_a_key_file_that_cannot_serve_is_refused(folder: Path, tmp_path: Path) -> None:
    private = tmp_path / "private.pem"
    with pytest.raises(ScrapeyardError, match="No such file"):
        cli("sign", str(folder), "--key", str(private))
    private.write_text("nonsense")
    with pytest.raises(ScrapeyardError, match="open to others"):
        cli("sign", str(folder), "--key", str(private))
    private.chmod(0o600)
    with pytest.raises(ScrapeyardError, match="not a private key"):
        cli("sign", str(folder), "--key", str(private))
    with pytest.raises(ScrapeyardError, match="no key to verify with"):
        cli("verify", str(folder))
