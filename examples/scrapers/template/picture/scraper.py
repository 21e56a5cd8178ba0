"""A file of a page, streamed into an artifact: `download` passes it by the script."""

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from scrapeyard_sdk import Skip, SyncContext


def run(ctx: SyncContext, url: str) -> dict[str, Any]:
    page = ctx.fetch(url).raise_for_status()
    source = page.attr(".product img", "src")
    if source is None:
        raise Skip("the page shows no picture")
    picture = page.url_join(source)
    name = PurePosixPath(urlsplit(picture).path).name
    ctx.download(picture, name).raise_for_status()
    return {"url": picture, "artifact": name}
