"""`/docs`: the OpenAPI document as pages, by Swagger UI. The gateway serves every file of it."""

from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

PATH: Final = "/docs"
_PAGE: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Scrapeyard API</title>
<link rel="icon" href="{PATH}/favicon-32x32.png">
<link rel="stylesheet" href="{PATH}/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>This page needs JavaScript. <a href="/api/openapi.json">The document</a> does not.</noscript>
<script src="{PATH}/swagger-ui-bundle.js"></script>
<script src="{PATH}/start.js"></script>
</body>
</html>
"""
_START: Final = """SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  validatorUrl: null,
});
"""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing comes from elsewhere and no inline script runs. Swagger UI writes styles into the page."""
_ASSETS: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}
_CACHED: Final = {"Cache-Control": "public, max-age=3600"}


async def _page(_request: Request) -> Response:
    return Response(_PAGE, media_type="text/html", headers={"Content-Security-Policy": _POLICY})


async def _start(_request: Request) -> Response:
    return Response(_START, media_type="text/javascript", headers=_CACHED)


async def _asset(request: Request) -> Response:
    name = request.url.path.rpartition("/")[2]
    file = files("fastapi_swagger.resources") / name
    return FileResponse(str(file), media_type=_ASSETS[name], headers=_CACHED)


ROUTES: Final = (
    Route(PATH, _page),
    Route(f"{PATH}/start.js", _start),
    *(Route(f"{PATH}/{name}", _asset) for name in _ASSETS),
)
