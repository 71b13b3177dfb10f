"""`GET /`: the browser demo, or a word about where the API is."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.staticfiles import StaticFiles


class Welcome(BaseModel):
    """Where to find things."""

    name: str = "antiphon"
    speech: str = "/v1/audio/speech"
    documentation: str = "/docs"


def install_root(app: FastAPI, static_folder: Path) -> None:
    """Serves the browser demo at `/` if the folder holds one; otherwise says where the API is."""
    if (static_folder / "index.html").is_file():
        # As the fallback and not as a mount: a mount at / would also swallow requests with a wrong
        # method for an endpoint and turn their 405 into a 404.
        app.router.default = StaticFiles(directory=static_folder, html=True)
        return
    router = APIRouter(tags=["operation"])

    @router.get("/", summary="Where is the API?")
    async def root() -> Welcome:
        """Says where the API and its documentation are."""
        return Welcome()

    app.include_router(router)
