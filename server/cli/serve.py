"""`fencepost serve`: the server in this process, until SIGTERM or Ctrl-C."""

import argparse
import gc
import logging
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi import FastAPI

from server.cli.database import add_database_argument, database_errors
from server.cli.output import add_json_argument, print_json
from server.settings import Settings, read_settings
from server.store.engine import check_migrated, open_engine
from server.store.migrate import upgrade
from server.store.sole import sole_server
from zones.errors import CallerError

__all__ = ["AddressUnusable", "add_arguments", "run"]

_GRACE_S = 10  # for requests that are being answered when the end comes


class AddressUnusable(CallerError):
    code = "address_unusable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="the address to listen on (default: FENCEPOST_HOST, or 127.0.0.1)")
    parser.add_argument("--port", type=int, help="the port (default: FENCEPOST_PORT, or 8000; 0 takes a free one)")
    add_database_argument(parser)
    parser.add_argument(
        "--gazetteer", metavar="FILE", help="places by name, CSV or GeoJSON (default: FENCEPOST_GAZETTEER, or none)"
    )
    parser.add_argument("--no-upgrade", action="store_true", help="fail if the database is not of this version")
    parser.add_argument("--verbose", action="store_true", help="log what happens, not only what goes wrong")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    settings = read_settings(
        os.environ, host=args.host, port=args.port, database=args.database, gazetteer=args.gazetteer
    )
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.WARNING)
    if args.verbose:
        logging.getLogger("fencepost").setLevel(logging.INFO)
    _allow_connections()
    with database_errors():
        _prepare_database(settings, may_upgrade=not args.no_upgrade)
    from server.app import create_app  # the whole server: too much for `fencepost serve --help`

    app = create_app(settings)
    _collect_seldom()
    with sole_server(settings.database, lost=_stop_this_process), _listen(settings) as listener:
        server = uvicorn.Server(_config(app, settings))
        with _stopped_by_signals(server):
            _announce(settings.host, listener.getsockname()[1], as_json=args.json)
            server.run(sockets=[listener])
        return 0 if server.started else 1  # if not, uvicorn has logged why


def _collect_seldom() -> None:
    """The world in memory has no cycles and events make none. To look for some after every few hundred events, through
    all zones and subscriptions, would take a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _stop_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _allow_connections() -> None:
    """Every connection is an open file, and shells commonly allow 1,024: fewer than one server can serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems name a limit that they do not give
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _prepare_database(settings: Settings, *, may_upgrade: bool) -> None:
    if may_upgrade:
        upgrade(settings.database)
    engine = open_engine(settings.database)
    try:
        check_migrated(engine)
    finally:
        engine.dispose()


def _listen(settings: Settings) -> socket.socket:
    """Bind before anything is started, so that a taken port is one clear sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        # Python's own text would repeat the address; the errors of name resolution have numbers below 0.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
        raise AddressUnusable(
            f"Can't listen on {settings.host} port {settings.port}: {reason}.",
            hint="Is another server running there? Choose another with --host and --port.",
        ) from error


def _announce(host: str, port: int, *, as_json: bool) -> None:
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    if as_json:
        print_json({"url": url, "docs": f"{url}/docs"})
    else:
        print(f"Fencepost is at {url}, the API docs at {url}/docs. Ctrl-C stops it.", flush=True)


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="on",
        ws="websockets-sansio",
        ws_max_size=settings.max_frame_bytes,
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
    )


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """An ordered stop at either signal is no failure, whenever it comes.

    While it serves, uvicorn listens to them itself, and at the end sends them again for whoever else wants to know.
    """

    def stop(_number: int, _frame: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
