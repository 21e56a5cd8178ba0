"""From files to a scraper: copy, then read and check the copy, so that what was checked is what will run."""

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from scrapeyard.errors import ScraperInvalid
from scrapeyard.model import Limits, Scraper, ScraperRef
from scrapeyard.repository.archive.copies import Cache, content_digest
from scrapeyard.repository.archive.files import ChangedMeanwhile, SourceFile, scraper_files
from scrapeyard.repository.environments.spec import LOCK_FILE, read_lock
from scrapeyard.repository.manifest.manifest import FILE_NAME, Manifest, read_manifest
from scrapeyard.repository.manifest.signature import MAX_BYTES, read_signature
from scrapeyard.repository.trust.signing import PublicKey, check_signature, signature_of


class LoadTerms(Struct, frozen=True, kw_only=True):
    """What the operator allows every scraper."""

    ceiling: Limits
    direct_network: Collection[str] = ()
    capabilities: Collection[str] = ("http", "browser", "captcha")
    """What this installation may offer; a scraper that needs more is refused. Whether a worker has a browser shows when
    a run meets it (`browser_unavailable`)."""
    public_keys: tuple[PublicKey, ...] = ()
    """If there are any, one of them must have signed each scraper, unless its source needs no signatures."""


def load_folder(path: Path, cache: Path, ceiling: Limits, *, direct_network: Collection[str] = ()) -> Scraper:
    """Read one scraper from its own folder, and copy it to the cache. Raises ScraperInvalid. Blocking."""
    if not (path / FILE_NAME).is_file():
        raise ScraperInvalid(f"{path}: no {FILE_NAME} here; `scrapeyard new` makes one")
    try:
        files = scraper_files(path, path.resolve(), str(path), cache.resolve())
        return load_files(files, Cache(cache), LoadTerms(ceiling=ceiling, direct_network=direct_network), str(path))
    except OSError as error:
        raise ScraperInvalid(f"{error.filename or path}: cannot be read: {error.strerror}") from None
    except ChangedMeanwhile:
        raise ScraperInvalid(f"{path}: changed while it was read; try again") from None


def identify(path: Path) -> tuple[ScraperRef, bytes | None]:
    """Id, version and digest of the scraper in this folder, and its signature or None. For signing; copies nothing.

    Raises ScraperInvalid.
    """
    try:
        files = scraper_files(path, path.resolve(), str(path), None)
        text = _read(path / FILE_NAME, str(path / FILE_NAME))
        manifest = read_manifest(text, str(path / FILE_NAME), lambda name: (path / name).read_bytes())
        ref = ScraperRef(id=manifest.id, version=manifest.version, digest=content_digest(files))
        return ref, signature_of(files)
    except OSError as error:
        raise ScraperInvalid(f"{error.filename or path}: cannot be read: {error.strerror}") from None
    except ChangedMeanwhile:
        raise ScraperInvalid(f"{path}: changed while it was read; try again") from None


def load_files(files: tuple[SourceFile, ...], cache: Cache, terms: LoadTerms, where: str) -> Scraper:
    """Copy to the cache, then read the copy: what was checked is what will run. `where` stands in error messages.

    Raises ScraperInvalid, ChangedMeanwhile or OSError.
    """
    digest, copy = cache.put(files)
    text = _read(copy / FILE_NAME, f"{where}/{FILE_NAME}")
    manifest = read_manifest(text, f"{where}/{FILE_NAME}", lambda name: (copy / name).read_bytes())
    _check_terms(manifest, terms, f"{where}/{FILE_NAME}")
    _check_lock(manifest, copy, where)
    ref = ScraperRef(id=manifest.id, version=manifest.version, digest=digest)
    check_signature(signature_of(files), ref, terms.public_keys, where)
    source = _read(copy / manifest.entry_file, f"{where}/{manifest.entry_file}")
    signature = read_signature(
        source,
        manifest.entry_function,
        f"{where}/{manifest.entry_file}",
        may_be_imported=manifest.input_schema is not None,
    )
    return _scraper(manifest, signature, ref, copy, terms)


def _check_terms(manifest: Manifest, terms: LoadTerms, where: str) -> None:
    if manifest.network == "direct" and manifest.id not in terms.direct_network:
        raise ScraperInvalid(f'{where}: network: "direct" is not granted here; use ctx.fetch, or ask the operator')
    missing = [name for name in manifest.capabilities if name not in terms.capabilities]
    if missing:
        offered = ", ".join(sorted(terms.capabilities)) or "none"
        raise ScraperInvalid(
            f"{where}: capabilities: {', '.join(missing)} is not offered by this installation, which has: {offered}"
        )


def _check_lock(manifest: Manifest, copy: Path, where: str) -> None:
    """Refuse a lock without requirements: nobody would see that the scraper needs packages."""
    try:
        lock = read_lock(copy)
    except ScraperInvalid as error:
        raise ScraperInvalid(f"{where}/{error.message}") from None
    if lock and not manifest.requirements:
        raise ScraperInvalid(
            f"{where}/{FILE_NAME}: requirements: missing, but there is a {LOCK_FILE}; name what the script imports"
        )


def _read(path: Path, where: str) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise ScraperInvalid(f"{where}: no such file; `entry` in {FILE_NAME} names it") from None


def _scraper(
    manifest: Manifest, signature: dict[str, object], ref: ScraperRef, copy: Path, terms: LoadTerms
) -> Scraper:
    return Scraper(
        ref=ref,
        folder=copy,
        entry=manifest.entry,
        name=manifest.name,
        description=manifest.description,
        input_schema=signature if manifest.input_schema is None else manifest.input_schema,
        output_schema=manifest.output_schema,
        limits=manifest.limits.within(terms.ceiling),
        allowed_hosts=manifest.allowed_hosts,
        network=manifest.network,
        lane=manifest.lane,
        nan=manifest.nan,
        isolation=manifest.isolation,
        config=manifest.config,
        policy=manifest.policy,
        requirements=manifest.requirements,
        capabilities=manifest.capabilities,
    )
