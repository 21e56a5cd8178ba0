"""`publish`: a version to a folder, a bucket or a web server. `signing`: keys, signatures, and whether they hold."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrapeyard.cli.common.options import AsJson, Commands

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from scrapeyard.repository.publish.publish import Published
    from scrapeyard.settings import Settings

_WORDS = {
    "published": "published to",
    "moved": "was there already; the channel now points to it at",
    "unchanged": "was there already, the same, at",
}
_WOULD = {
    "published": "would be published to",
    "moved": "is there already; the channel would point to it at",
    "unchanged": "is there already, the same, at",
}


def register_publish(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(publish)


def publish(
    folder: Annotated[Path, typer.Argument(help="The scraper's folder.", exists=True, file_okay=False)],
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help="A folder, s3://bucket/prefix or http(s)://….")],
    *,
    channel: Annotated[str, typer.Option(help="Point this channel, e.g. stable, to the version.")] = "",
    sign: Annotated[
        Path | None, typer.Option(help="Sign it with this private key; the folder stays as it is.", dir_okay=False)
    ] = None,
    endpoint: Annotated[str, typer.Option(help="URL of an S3-compatible server other than Amazon's.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and show what would happen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a scraper, pack it and publish it. A version that is there is never replaced by other content."""
    import asyncio

    from scrapeyard.cli.common.output import show_json
    from scrapeyard.settings import load

    _check(folder, to, channel)
    given = {"repository": {"source": {"endpoint": endpoint or None}}}
    done = asyncio.run(_publish(folder, to, load(given), channel=channel, sign=sign, dry_run=dry_run))
    words = (_WOULD if dry_run else _WORDS)[done.outcome]
    typer.echo(
        f"{done.id}@{done.version} {words} {done.target}" + (f", channel {channel}" if channel else ""), err=True
    )
    if as_json:
        show_json({name: getattr(done, name) for name in done.__struct_fields__} | {"dry_run": dry_run})
    else:
        typer.echo(f"{done.id}@{done.version} {done.digest}")


def _check(folder: Path, to: str, channel: str) -> None:
    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.manifest.channels import is_channel

    if channel and not is_channel(channel):
        raise BadRequest(f"--channel {channel[:50]!r}: write a word in lower case, e.g. stable")
    if "://" not in to and Path(to).resolve().is_relative_to(folder.resolve()):
        raise BadRequest(f"--to {to}: lies in the scraper's own folder; choose one outside of it")


async def _publish(
    folder: Path, to: str, settings: "Settings", *, channel: str, sign: Path | None, dry_run: bool
) -> "Published":
    import asyncio
    import tempfile

    from scrapeyard.cli.common.output import size, spinner
    from scrapeyard.repository.publish.publish import pack_scraper, publish
    from scrapeyard.repository.publish.targets import open_target

    target = open_target(to, settings.repository.source, settings.repository.timeout_seconds)
    private = read_private_key(sign) if sign else None
    with tempfile.TemporaryDirectory(prefix="scrapeyard-publish-") as work:
        parcel = await asyncio.to_thread(pack_scraper, folder, Path(work), settings.limits.as_limits(), private)
        with spinner(f"{parcel.ref}: {size(parcel.entry.size)} to {target.name}"):
            return await publish(parcel, target, channel=channel, dry_run=dry_run)


Folder = Annotated[Path, typer.Argument(help="The scraper's folder.", exists=True, file_okay=False)]
_MAX_KEY = 16 * 1024


def register_signing(app: typer.Typer) -> None:
    """Add the group."""
    group = Commands(name="signing", help="Sign scrapers, so that only yours are run.", no_args_is_help=True)
    group.command("make-key")(make_key)
    group.command()(sign)
    group.command()(verify)
    app.add_typer(group)


def make_key(
    file: Annotated[Path, typer.Argument(help="Where to write the private key; must not exist.", dir_okay=False)],
    name: Annotated[str, typer.Option(help="What to call it in messages: lower-case letters, digits, '-'.")] = "",
) -> None:
    """Make a private key, for you alone, and print its public half, for `repository.public_keys`."""
    _check_extra()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.trust.signing import public_key_of, read_public_keys

    private = Ed25519PrivateKey.generate()
    (public,) = read_public_keys([public_key_of(private, name).text])
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
            stream.write(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    except OSError as error:
        raise BadRequest(f"{file}: cannot be written: {error.strerror}") from None
    typer.echo(public.text)


def sign(
    folder: Folder,
    key: Annotated[Path, typer.Option(help="The private key that `make-key` wrote.", dir_okay=False)],
) -> None:
    """Sign the scraper as it stands; writes scraper.sig beside its manifest. Sign again after every change."""
    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.archive.copies import SIGNATURE
    from scrapeyard.repository.catalogue.loading import identify
    from scrapeyard.repository.trust import signing

    private = read_private_key(key)
    ref, _ = identify(folder)
    fresh = folder / f".{SIGNATURE}-{os.getpid()}"
    try:
        fresh.write_bytes(signing.sign(ref, private))
        fresh.replace(folder / SIGNATURE)
    except OSError as error:
        raise BadRequest(f"{folder / SIGNATURE}: cannot be written: {error.strerror}") from None
    typer.echo(f"{ref} signed by {signing.public_key_of(private)}", err=True)
    typer.echo(str(folder / SIGNATURE))


def verify(
    folder: Folder,
    public: Annotated[
        list[str] | None, typer.Option(help="A public key; may be repeated. Default: repository.public_keys.")
    ] = None,
) -> None:
    """Tell whether the scraper is signed by one of these keys, as it stands. Ends with 1 when it is not."""
    from scrapeyard import settings
    from scrapeyard.errors import BadRequest
    from scrapeyard.repository.catalogue.loading import identify
    from scrapeyard.repository.trust.signing import check_signature, read_public_keys

    keys = read_public_keys(public or settings.load().repository.public_keys)
    if not keys:
        raise BadRequest("no key to verify with; give --public, or set repository.public_keys")
    ref, signature = identify(folder)
    check_signature(signature, ref, keys, str(folder))
    typer.echo(f"{ref} is signed ({ref.digest})")


def read_private_key(file: Path) -> "Ed25519PrivateKey":
    """A key that `make-key` wrote, for its owner alone. Raises BadRequest."""
    _check_extra()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from scrapeyard.errors import BadRequest

    try:
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_mode & 0o077:
                raise BadRequest(f"{file}: the private key is open to others; chmod it to 600")
            private = load_pem_private_key(stream.read(_MAX_KEY), password=None)
    except OSError as error:
        raise BadRequest(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadRequest(
            f"{file}: not a private key without password; `scrapeyard signing make-key` makes one"
        ) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise BadRequest(f"{file}: not an Ed25519 key; `scrapeyard signing make-key` makes one")
    return private


def _check_extra() -> None:
    from scrapeyard.errors import BadRequest
    from scrapeyard.extras import missing

    if words := missing("signing"):
        raise BadRequest(words)
