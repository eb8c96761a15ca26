"""What happens in the crash tests, and a plain reckoning of what has to be told about it.

The reckoning shares no code with the product: boxes are compared by hand and a subscription is a few ifs. Traces
are seeded, and end where the wanted number of notifications is reached.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["SUBSCRIPTIONS", "ZONES", "Expected", "Fix", "Scene", "SubscriptionText", "make_scene"]

BEGIN = 1_700_000_000_000
OWNER = "acme"


@dataclass(frozen=True)
class Fix:
    ts: int
    lon: float
    lat: float
    speed: int | None

    def event(self, oid: str) -> dict[str, Any]:
        pairs = {} if self.speed is None else {"speed": self.speed}
        return {"oid": oid, "ts": self.ts, "loc": [self.lon, self.lat], **pairs}


@dataclass(frozen=True)
class Expected:
    """A notification, as far as it can be known beforehand: all but its offset and ids."""

    subscription: str
    oid: str
    target: str
    mode: str
    ts: int
    loc: tuple[float, float]
    speed: int | None
    duration_s: float | None


@dataclass(frozen=True)
class SubscriptionText:
    """`faster_than` and `dwell_s` are conditions of the selector and the service; `agents_only` leaves out objects
    that publish their fixes: for those a dwell ends by the server's clock, which is years ahead of these traces."""

    subscriber: str
    targets: tuple[str, ...]
    tos: str = "once"
    faster_than: int | None = None
    dwell_s: int = 0
    agents_only: bool = False

    def selector(self, oids: list[str]) -> str:
        text = f"({', '.join(repr(oid) for oid in oids)}) within ({', '.join(self.targets)})"
        return text if self.faster_than is None else f"{text} AND speed > {self.faster_than}"


# [west, south, east, north]; some overlap, and positions fall on the edges too.
ZONES = {
    "shop.North": (0.10, 0.55, 0.50, 0.90),
    "shop.Middle": (0.35, 0.35, 0.70, 0.65),
    "shop.South": (0.50, 0.05, 0.90, 0.45),
    "depot.Gate": (0.00, 0.00, 0.12, 0.12),
    "depot.Yard": (0.20, 0.20, 0.80, 0.80),
}
SUBSCRIPTIONS = {
    "doors": SubscriptionText("shop", ("shop.North", "shop.Middle", "shop.South")),
    "hurry": SubscriptionText("shop", ("shop.Middle",), faster_than=50),
    "stays": SubscriptionText("depot", ("depot.Yard",), dwell_s=2, agents_only=True),
    "gate": SubscriptionText("depot", ("depot.Gate",), tos="every"),
    "known": SubscriptionText("depot", ("depot.Yard",), tos="first"),
}


@dataclass(frozen=True)
class _Kept:
    """What is remembered of one binding."""

    since: int | None = None
    waiting: int | None = None
    finished: bool = False


@dataclass
class Scene:
    agents: list[str]
    publishers: list[str]
    traces: dict[str, list[Fix]]
    telling: dict[str, set[int]]  # the instants of fixes that bring a notification
    expected: list[Expected]

    @property
    def steps(self) -> int:
        return max(len(trace) for trace in self.traces.values())

    def oids_of(self, text: SubscriptionText) -> list[str]:
        return self.agents if text.agents_only else self.agents + self.publishers


def make_scene(seed: int, *, wanted: int, agents: int, publishers: int) -> Scene:
    """Objects that wander through the zones until exactly `wanted` notifications are due."""
    rng = random.Random(seed)
    with_agent = [f"{OWNER}/van{number}" for number in range(1, agents + 1)]
    without = [f"{OWNER}/bike{number}" for number in range(1, publishers + 1)]
    oids = with_agent + without
    scene = Scene(with_agent, without, {oid: [] for oid in oids}, {oid: set() for oid in oids}, [])
    kept: dict[str, dict[tuple[str, str], _Kept]] = {oid: {} for oid in scene.traces}
    step = 0
    while len(scene.expected) < wanted:
        for oid, trace in scene.traces.items():
            previous = trace[-1] if trace else None
            fix = _wander(rng, previous, BEGIN + step * 1000 + rng.randrange(900))
            after, told = _follow(scene, oid, kept[oid], previous, fix)
            if len(scene.expected) + len(told) <= wanted:
                trace.append(fix)
                kept[oid] = after
                if told:
                    scene.telling[oid].add(fix.ts)
                scene.expected += told
        step += 1
    return scene


def _wander(rng: random.Random, previous: Fix | None, ts: int) -> Fix:
    if previous is None:
        lon, lat = rng.random(), rng.random()
    else:
        lon, lat = previous.lon + rng.uniform(-0.2, 0.2), previous.lat + rng.uniform(-0.2, 0.2)
    speed = None if rng.random() < 0.1 else rng.randrange(100)
    return Fix(ts, round(min(1.0, max(0.0, lon)), 2), round(min(1.0, max(0.0, lat)), 2), speed)


def _follow(
    scene: Scene, oid: str, kept: Mapping[tuple[str, str], _Kept], previous: Fix | None, fix: Fix
) -> tuple[dict[tuple[str, str], _Kept], list[Expected]]:
    after, told = dict(kept), []
    for name, text in SUBSCRIPTIONS.items():
        if oid not in scene.oids_of(text):
            continue
        for target in text.targets:
            state = after.get((name, target), _Kept())
            state, edges = _follow_one(text, state, _holds(text, target, fix), previous, fix)
            after[name, target] = state
            for mode, ts, at, duration_s in edges:
                told.append(Expected(name, oid, target, mode, ts, (at.lon, at.lat), at.speed, duration_s))
    return after, told


def _holds(text: SubscriptionText, target: str, fix: Fix) -> bool | None:
    west, south, east, north = ZONES[target]
    if not (west <= fix.lon <= east and south <= fix.lat <= north):
        return False
    if text.faster_than is None:
        return True
    return None if fix.speed is None else fix.speed > text.faster_than


def _follow_one(
    text: SubscriptionText, state: _Kept, holds: bool | None, previous: Fix | None, fix: Fix
) -> tuple[_Kept, list[tuple[str, int, Fix, float | None]]]:
    edges: list[tuple[str, int, Fix, float | None]] = []
    if text.tos == "every":
        return state, [("match", fix.ts, fix, None)] if holds else []
    if text.tos == "first":
        if holds and not state.finished:
            return replace(state, finished=True), [("enter", fix.ts, fix, None)]
        return state, []
    if state.waiting is not None and previous is not None and state.waiting + text.dwell_s * 1000 <= fix.ts:
        entered = state.waiting + text.dwell_s * 1000
        state = _Kept(since=entered)
        edges.append(("enter", entered, previous, None))
    if holds is None:
        return state, edges
    if state.since is not None and not holds:
        edges.append(("leave", fix.ts, fix, (fix.ts - state.since) / 1000))
        return _Kept(), edges
    if state.since is None and holds and text.dwell_s:
        return (state if state.waiting is not None else _Kept(waiting=fix.ts)), edges
    if state.since is None and holds:
        return _Kept(since=fix.ts), [*edges, ("enter", fix.ts, fix, None)]
    return (_Kept() if state.since is None else state), edges
