"""The FastAPI application: all routers, middleware, problem details, health checks, and the console."""

from collections.abc import Callable

from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from five.services.controller.console import static_files
from five.services.controller.http import problems
from five.services.controller.http.dependencies import Context
from five.services.controller.http.idempotency import IdempotencyStore
from five.services.controller.http.middleware import PROTECTED, RequestMiddleware
from five.services.controller.http.openapi import install_openapi
from five.services.controller.http.request_limits import RequestLimits
from five.services.controller.http.traces import TraceMiddleware
from five.services.controller.routes import (
    anneal,
    config,
    console,
    draft,
    events,
    games,
    matches,
    operations,
    opponents,
    play,
    ratings,
    rehearsal,
    revert,
    run,
    schedules,
    series,
    services,
    session,
    stream,
    surgery,
    versions,
)
from rapid.telemetry import tracing

# One per resource, with its own tag and paths below /v1.
ROUTERS: tuple[APIRouter, ...] = (
    run.router, versions.router, services.router, events.router, series.router, schedules.router, opponents.router,
    ratings.router, matches.router, config.router, stream.router, surgery.router, rehearsal.router, operations.router,
    anneal.router, revert.router, session.router, console.router, games.router, draft.router, play.router,
)


def allowed_methods(path: str) -> list[str]:
    """Return the methods of the API's routes for a path."""
    below = path.removeprefix(PROTECTED)
    return sorted({method for router in ROUTERS for route in router.routes
                   if isinstance(route, APIRoute) and route.path_regex.match(below) for method in route.methods or ()})


def create_app(context: Context, not_ready: Callable[[], str] = lambda: "",
               failure_reason: Callable[[], str] = lambda: "") -> FastAPI:
    """Create the application; its OpenAPI document is at /openapi.json.

    ``not_ready`` returns the reason why the service is not ready, or ''. ``failure_reason`` returns the reason why the
    process is unhealthy, or ''.
    """
    # FastAPI's own docs pages load scripts from other hosts; the console has a page for the API instead.
    app = FastAPI(title="Five", version="1", description="Control of a training run.", docs_url=None, redoc_url=None,
                  generate_unique_id_function=lambda route: route.name,
                  servers=[{"url": context.path_prefix}] if context.path_prefix else None)
    app.state.context = context
    problems.install(app, allowed_methods)
    for router in ROUTERS:
        app.include_router(router, prefix=PROTECTED)
    install_openapi(app)
    if tracing.is_on():
        app.add_middleware(TraceMiddleware)
    app.add_middleware(RequestMiddleware, authenticator=context.authenticator, sessions=context.sessions,
                       limits=RequestLimits(context.limits), hosts=context.hosts,
                       idempotency=IdempotencyStore(context.state.redis, context.run, context.limits.request_seconds),
                       on_change=context.overview_cache.invalidate)

    @app.get("/healthz", include_in_schema=False)
    async def alive() -> JSONResponse:  # async, because slow requests may occupy all threads
        reason = failure_reason()
        return JSONResponse({"status": reason or "alive"}, 503 if reason else 200)

    @app.get("/readyz", include_in_schema=False)
    def answers() -> JSONResponse:
        reason = not_ready()
        return JSONResponse({"status": reason or "ready"}, 503 if reason else 200)

    static_files.install(app, context.site)
    return app
