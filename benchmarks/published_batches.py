"""What does a published fix cost the server, from an HTTP batch to recorded notifications?

    python -m benchmarks.published_batches --json

A real server on SQLite, with fences over a city: half of them circles, half polygons of 8 to 40 corners. Vans wander
about, and a location feed publishes their fixes in batches over one connection. The fences are set up in two ways, each
on a server of its own: one subscription to all zones, and a subscription for each zone. The shop that subscribes is
not the vans' owner, so every notification passes the owner's grant.

What is counted of the server is its CPU, user and system time of all its threads, divided by the fixes: reading and
checking JSON, matching, and a durable commit for each batch included. The bound is 15 microseconds a fix; the best
geofencing server that could be built here in Go needs 16. Before any figure is given, every notification is compared
with a plain reference that asks every zone about every fix.

In process, without HTTP and without a database that has to be waited for, the same fixes go one by one through the code
that publishing uses: checking, matching, states and notifications, up to the rows that would be written.
"""

import asyncio
import http.client
import json
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import perf_counter, sleep
from typing import Any
from urllib.parse import urlsplit

import msgspec
from shapely import Point as shapely_point
from shapely import STRtree, box

from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.spread import percentile, spread
from benchmarks.support.usage import cpu_seconds
from matcher.event_format import parse_event, parse_instant
from matcher.events import Event
from matcher.places import Place
from privacy.policies import Operation
from server.node import Node
from server.pubsub.grants import add_grant
from server.pubsub.publishing import publish
from server.pubsub.subscriptions import NewSubscription, put_subscription
from server.pubsub.work import Work
from server.pubsub.zones import NewZone, import_zones
from server.settings import Settings
from server.store.accounts import Account, UserRecord, add_user
from server.store.engine import for_writing, open_engine
from server.store.migrate import upgrade
from simulators.demo.http_api import HttpUser
from simulators.demo.server_process import ServerProcess, running_server
from zones.covers import outline
from zones.geojson import feature_from_geojson, features_from_geojson
from zones.names import ZoneName
from zones.shapes import Point

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "published_batches"
_BOUND_US = 15.0
_WEST, _SOUTH, _SIDE = 13.0, 52.3, 0.5  # the city, in degrees
_METRE = 1 / 111_000
_FIRST_TS = 1_790_000_000_000
_USERS = ("ada", "acme", "shop")  # an administrator, the vans' owner, and who wants to know
_WARM_UP = 10  # batches that are published before the clock runs

Edge = tuple[str, int, str, str]  # oid, ts, target, mode


class Options(msgspec.Struct, frozen=True):
    fences: int = 5_000
    vans: int = 2_000
    batch: int = 500
    batches: int = 200
    step_m: float = 60.0
    seed: int = 1

    @property
    def small(self) -> "Options":
        return msgspec.structs.replace(self, fences=self.fences // 10, batches=max(1, self.batches // 10))


def measure(options: Options, *, runs: int = 3, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    say(f"Warming up with {options.small.fences} fences.")
    small = measure_once(options.small)
    large = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with {options.fences} fences.")
        large.append(measure_once(msgspec.structs.replace(options, seed=options.seed + run - 1)))
    return {"options": msgspec.structs.asdict(options), "runs": runs, "small": spread([small]), "large": spread(large)}


def measure_once(options: Options) -> dict[str, Any]:
    scene = _Scene(options)
    return {
        "one_subscription": asyncio.run(_published(options, scene, is_each=False)),
        "one_for_each_zone": asyncio.run(_published(options, scene, is_each=True)),
        "in_process": _in_process(scene),
    }


# --- what happens ----------------------------------------------------------------------------------------


class _Scene:
    """The zones, the batches, and what a subscriber must hear of them."""

    def __init__(self, options: Options) -> None:
        rng = Random(options.seed)
        self.zones = [_draw_zone(rng, number) for number in range(options.fences)]
        places = [_place(rng) for _ in range(options.vans)]
        self.batches: list[list[dict[str, Any]]] = []
        fix = 0
        for _ in range(options.batches + _WARM_UP):
            batch = []
            for _ in range(options.batch):
                van, round_ = fix % options.vans, fix // options.vans
                angle = rng.uniform(0, 2 * math.pi)
                lon, lat = places[van]
                lon += options.step_m * _METRE * 1.6 * math.cos(angle)
                lat += options.step_m * _METRE * math.sin(angle)
                places[van] = (lon, lat)
                ts = _FIRST_TS + round_ * 10_000 + van
                batch.append({"oid": f"acme/van{van}", "ts": ts, "loc": [lon, lat], "speed": 12.5})
                fix += 1
            self.batches.append(batch)
        self.edges = _reference(self.zones, self.batches)


def _place(rng: Random) -> Point:
    return _WEST + rng.random() * _SIDE * 1.6, _SOUTH + rng.random() * _SIDE


def _draw_zone(rng: Random, number: int) -> dict[str, Any]:
    lon, lat = _place(rng)
    radius_m = rng.uniform(100, 500)
    properties: dict[str, Any] = {}
    if number % 2:
        geometry: dict[str, Any] = {"type": "Point", "coordinates": [lon, lat]}
        properties["radius_m"] = radius_m
    else:
        corners = rng.randrange(8, 41)
        ring = []
        for corner in range(corners):
            angle = 2 * math.pi * corner / corners
            reach = radius_m * rng.uniform(0.6, 1.0) * _METRE
            ring.append([lon + 1.6 * reach * math.cos(angle), lat + reach * math.sin(angle)])
        geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    return {"type": "Feature", "id": f"z{number}", "geometry": geometry, "properties": properties}


def _reference(features: Sequence[dict[str, Any]], batches: Sequence[Sequence[dict[str, Any]]]) -> list[Edge]:
    """What happens to each van and zone, decided by the plain code; boxes only keep it from taking a day."""
    zones = features_from_geojson({"type": "FeatureCollection", "features": list(features)})
    places = [Place(zone.shape) for zone in zones]
    names = [f"SYSTEM.{zone.name}" for zone in zones]
    tree = STRtree([box(*outline(zone.shape).bounds) for zone in zones])
    inside: dict[str, set[int]] = {}
    edges: list[Edge] = []
    for batch in batches:
        near: dict[int, list[int]] = {}
        rows, found = tree.query([shapely_point(fix["loc"]) for fix in batch], predicate="intersects")
        for row, place in zip(rows.tolist(), found.tolist(), strict=True):
            near.setdefault(row, []).append(place)
        for row, fix in enumerate(batch):
            loc = (fix["loc"][0], fix["loc"][1])
            now = {place for place in near.get(row, ()) if places[place].covers(loc)}
            before = inside.get(fix["oid"], set())
            edges += [(fix["oid"], fix["ts"], names[place], "enter") for place in now - before]
            edges += [(fix["oid"], fix["ts"], names[place], "leave") for place in before - now]
            inside[fix["oid"]] = now
    return sorted(edges)


# --- the server ------------------------------------------------------------------------------------------


async def _published(options: Options, scene: _Scene, *, is_each: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fencepost-benchmark-") as name:
        async with running_server(Path(name)) as server:
            keys = [await server.add_user(user, admin=user == "ada") for user in _USERS]
            ada, acme, shop = (HttpUser(server.url, key) for key in keys)
            for start in range(0, len(scene.zones), 1000):
                part = {"type": "FeatureCollection", "features": scene.zones[start : start + 1000]}
                await ada.ask("POST", "/v1/zones:import", part, owner="SYSTEM")
            await acme.ask("POST", "/v1/privacy/grants", {"who": "shop", "operations": ["enter", "leave"]})
            targets = [zone["id"] for zone in scene.zones] if is_each else ["*"]
            for target in targets:
                await shop.ask("PUT", f"/v1/subscriptions/s-{target}".replace("*", "all"), _subscription(target))
            figures = await asyncio.to_thread(_publish, options, scene, server, keys[1])
            _check(scene.edges, await _heard(shop))
            return figures


def _subscription(target: str) -> dict[str, Any]:
    return {"selector": f"(*) within (SYSTEM.{target})", "tos": "once"}


def _wait_until_warm(server: ServerProcess) -> None:
    """The compiled index comes to life with the first event; where it never ran that takes some seconds."""
    for _ in range(600):
        if "fencepost_engine_warm 1" in _get(server.url, "/metrics"):
            return
        sleep(0.2)
    raise BenchmarkFailed("The compiled engine did not come to life.")


def _get(url: str, path: str) -> str:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _publish(options: Options, scene: _Scene, server: ServerProcess, key: str) -> dict[str, Any]:
    bodies = [json.dumps(batch).encode() for batch in scene.batches]
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    times = []
    cpu = 0.0
    for number, body in enumerate(bodies):
        if number == 1:
            _wait_until_warm(server)
            connection.close()  # it opens itself again; the server may have closed it meanwhile
        if number == _WARM_UP:
            cpu = cpu_seconds(server.pid)
        began = perf_counter()
        connection.request("POST", "/v1/events", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 202:
            raise BenchmarkFailed(f"The server answered {answer.status}: {text[:300]!r}")
        if number >= _WARM_UP:
            times.append(perf_counter() - began)
    used = cpu_seconds(server.pid) - cpu
    connection.close()
    fixes = options.batches * options.batch
    us = used / fixes * 1e6
    return {
        "server_cpu_us_per_fix": round(us, 2),
        "to_bound_of_15_us": round(us / _BOUND_US, 2),
        "fixes_per_second": round(fixes / sum(times)),
        "batch_ms": {"p50": _ms(percentile(times, 0.5)), "p99": _ms(percentile(times, 0.99))},
        "notifications_per_fix": round(len(scene.edges) / (fixes + _WARM_UP * options.batch), 3),
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


async def _heard(shop: HttpUser) -> list[Edge]:
    heard: list[Edge] = []
    after = 0
    while True:
        page = await shop.ask("GET", "/v1/notifications", after=after, limit=1000)
        if not page["notifications"]:
            return sorted(heard)
        for each in page["notifications"]:
            heard.append((each["oid"], parse_instant(each["ts"]), each["target"], each["mode"]))
            after = each["offset"]


# --- in this process -------------------------------------------------------------------------------------


def _in_process(scene: _Scene) -> dict[str, Any]:
    """One fix at a time; each is timed by itself."""
    with tempfile.TemporaryDirectory(prefix="fencepost-benchmark-") as name:
        database = str(Path(name) / "fencepost.db")
        upgrade(database)
        engine = open_engine(database)
        with engine.connect() as conn, for_writing(conn).begin():
            ada, acme, shop = (_account(add_user(conn, user, admin=user == "ada", now=1)) for user in _USERS)
        engine.dispose()
        node = Node(Settings(database=database))
        node.run_now(import_zones, ada, [_new_zone(feature) for feature in scene.zones])
        node.run_now(add_grant, acme, "shop", (Operation.ENTER, Operation.LEAVE))
        node.run_now(put_subscription, shop, NewSubscription("all", "(*) within (SYSTEM.*)"))
        node.run_now(lambda work: node.start_engine())
        fixes = [parse_event(fix) for batch in scene.batches for fix in batch]
        times: list[float] = []
        node.run_now(_one_by_one, acme, fixes, times)
        node.engine.dispose()
    times = times[len(scene.batches[0]) * _WARM_UP :]
    return {"fix_us": {"p50": _us(percentile(times, 0.5)), "p99": _us(percentile(times, 0.99))}, "fixes": len(times)}


def _one_by_one(work: Work, account: Account, fixes: Sequence[Event], times: list[float]) -> None:
    for fix in fixes:
        began = perf_counter()
        publish(work, account, (fix,))
        times.append(perf_counter() - began)


def _account(user: UserRecord) -> Account:
    return Account(user.user_id, user.name, user.is_admin, key_id="")


def _new_zone(feature: dict[str, Any]) -> NewZone:
    parsed = feature_from_geojson(feature, 0)
    return NewZone(name=ZoneName("SYSTEM", feature["id"]), shape=parsed.shape, properties={})


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e6, 1)


def _check(expected: list[Edge], heard: list[Edge]) -> None:
    if heard != expected:
        wrong = set(heard) ^ set(expected)
        raise BenchmarkFailed(f"{len(heard)} notifications instead of {len(expected)}; {len(wrong)} are wrong.")


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__)
    parser.add_argument("--fences", type=positive_int, default=5_000, metavar="N")
    parser.add_argument("--batches", type=positive_int, default=200, metavar="N", help="of 500 fixes (default: 200)")
    args = parser.parse_args(argv)
    options = Options(fences=args.fences, batches=args.batches, seed=args.seed)
    return measured(NAME, args, lambda say: measure(options, runs=args.runs, say=say))


if __name__ == "__main__":
    sys.exit(main())
