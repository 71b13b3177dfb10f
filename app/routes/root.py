"""`GET /`: the browser demo, or a word about where the API is."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

DEMO_HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    ),
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Asked for anew each time, answered with 304 unless it changed.
    "Cache-Control": "no-cache",
}
"""The demo needs nothing but its own files and this server, and nobody may put it in a frame."""


class Welcome(BaseModel):
    """Where to find things."""

    name: str = "antiphon"
    speech: str = "/v1/audio/speech"
    documentation: str = "/docs"


class DemoFiles(StaticFiles):
    """The demo's files, under a policy that lets them do only what they must."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file with the demo's headers."""
        response = await super().get_response(path, scope)
        response.headers.update(DEMO_HEADERS)
        return response


def install_root(app: FastAPI, static_folder: Path) -> None:
    """Serves the browser demo at `/` if the folder holds one; otherwise says where the API is."""
    if (static_folder / "index.html").is_file():
        # As the fallback and not as a mount: a mount at / would also swallow requests with a wrong
        # method for an endpoint and turn their 405 into a 404.
        app.router.default = DemoFiles(directory=static_folder, html=True)
        return
    router = APIRouter(tags=["operation"])

    @router.get("/", summary="Where is the API?")
    async def root() -> Welcome:
        """Says where the API and its documentation are."""
        return Welcome()

    app.include_router(router)
