"""Puts the server together, top to bottom."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from sqlalchemy import text
from starlette.responses import Response

from matcher.geocoding import Geocoder
from server.api import agents, delegations, events, notifications, privacy, subscriptions, zones
from server.api.access import TheNode
from server.api.bodies import answer
from server.api.problems import DESCRIBED, install
from server.controller.live import Controller
from server.gazetteer import load_gazetteer
from server.node import Node
from server.settings import Settings

__all__ = ["create_app"]

_ABOUT = """
Tells applications when something that moves enters or leaves a place, and lets the moving thing itself decide.
Every request shows an API key: `Authorization: Bearer fpk_...`. Errors are RFC 9457 problem details with a `code`.
"""


def create_app(settings: Settings, *, geocoder: Geocoder | None = None) -> FastAPI:
    """The application. A geocoder of your own takes the place of the gazetteer in the settings."""
    if geocoder is None and settings.gazetteer:
        geocoder = load_gazetteer(settings.gazetteer)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        node = Node(settings)
        app.state.node = node
        app.state.controller = Controller(node)
        await node.start()
        yield
        await node.stop()

    # With the pages' scripts from here: /docs works without the internet and tells no third party who reads it.
    app = FastAPIOffline(
        redoc_url=None, title="Fencepost", version="1", description=_ABOUT, lifespan=lifespan, responses=DESCRIBED
    )
    app.state.geocoder = geocoder
    install(app)
    for module in (zones, subscriptions, events, notifications, agents, privacy, delegations):
        app.include_router(module.router)

    @app.get("/healthz", tags=["health"], summary="The process is alive")
    async def healthz() -> Response:
        return answer({"status": "ok"})

    @app.get("/readyz", tags=["health"], summary="The store answers")
    def readyz(node: TheNode) -> Response:
        with node.engine.connect() as conn:
            conn.execute(text("SELECT 1"))
        return answer({"status": "ready"})

    @app.get("/metrics", tags=["health"], summary="Prometheus metrics")
    def metrics(node: TheNode) -> Response:
        return Response(node.metrics.exposition(), media_type="text/plain; version=0.0.4")

    return app
