"""Pages behind a login: try the page, log in if the site asks for it, try again once."""

import re
from typing import Any

from scrapeyard_sdk import Context, Fail, Page


async def run(ctx: Context, site: str, user: str) -> dict[str, Any]:
    password = ctx.config["passwords"].get(user)
    if password is None:
        raise Fail(f"there is no password for {user} in [config.passwords]")
    page = await ctx.fetch(f"{site}/account", session=user)  # cookies are kept by this name, across runs and workers
    if is_login(page):
        page = await ctx.fetch(f"{site}/login", form={"user": user, "password": password}, session=user)
        if page.status == 401 or is_login(page):
            raise Fail(f"the site does not accept the password of {user}")
        ctx.log("logged in", user=user)
    page.raise_for_status()
    name = re.search(r"Signed in as (\S+)\.", page.text(".user") or "")
    points = re.search(r"\d+", page.text(".points") or "")
    if name is None or points is None:
        raise Fail(f"{page.url} is not the page of an account")
    return {"user": name[1], "points": int(points[0])}


def is_login(page: Page) -> bool:
    return page.css_first("input[type=password]") is not None
