"""`publish`: a version of a scraper to a folder, an S3 bucket or a web server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrapeyard.cli.common.options import AsJson

if TYPE_CHECKING:
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


def register(app: typer.Typer) -> None:
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
    endpoint: Annotated[str, typer.Option(help="S3-compatible server other than Amazon's.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and tell what would happen.")] = False,
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

    from scrapeyard.cli.authoring.signing import read_private_key
    from scrapeyard.cli.common.output import size, spinner
    from scrapeyard.repository.publish.publish import pack_scraper, publish
    from scrapeyard.repository.publish.targets import open_target

    target = open_target(to, settings.repository.source, settings.repository.timeout_seconds)
    private = read_private_key(sign) if sign else None
    with tempfile.TemporaryDirectory(prefix="scrapeyard-publish-") as work:
        parcel = await asyncio.to_thread(pack_scraper, folder, Path(work), settings.limits.as_limits(), private)
        with spinner(f"{parcel.ref}: {size(parcel.entry.size)} to {target.name}"):
            return await publish(parcel, target, channel=channel, dry_run=dry_run)
