"""How many fixes a second can be compared with the places of others, and what does that depend on?

    python -m benchmarks.distance_edges --json

Every object is a user's own, and each user subscribes to `(me) distance (200, five others)`: with 10,000 objects that
is 50,000 bindings, each an edge of the object trigger graph, and ten edges to look at for each fix. All owners have
granted `distance`. Objects drive about in groups of which each has a square of 3 km, so edges come and go. Then the
same with fewer and more objects of as many edges each, and with as many objects of fewer and more edges. Whoever moves
is drawn anew for each fix, so with many objects hardly anything is in the processor's caches; how much of the time is
due to that shows where only the first 1,000 move and all others are merely there.

What is timed is `server.pubsub.meeting.fold_nearby`, one fix after the other, as the writer calls it for each event and
each reported position: location cache, trigger graph, truth, once-state, and for each notification the grants of both
owners, its id and its body. Not in it: HTTP, reading JSON, and the database, which has a line of its own in other
benchmarks. First, on a smaller town, everything told must be what a plain loop over all pairs finds, with a geodesic
for each.
"""

import gc
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from random import Random
from time import thread_time
from typing import Any, cast

import msgspec

from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.spread import spread
from matcher.events import Event
from matcher.once import Edge, Instant, Service
from matcher.selector.parser import parse_selector
from privacy.policies import Grant, Operation
from server.pubsub.entries import BindingKey, ObjectEntry, SubscriptionEntry
from server.pubsub.meeting import fold_nearby
from server.pubsub.recording import Recorder
from server.pubsub.work import Work
from server.pubsub.world import World
from server.settings import Settings
from server.store.writer import Transaction
from zones.geodesy import distance_m
from zones.shapes import Point

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "distance_edges"
_METRES = 200.0
_GROUP = 50  # objects of which each knows some
_SIDE_M = 3000.0
_STEP_M = 12.0
_DEGREE_M = 111_195.0
_BEGIN = 1_780_000_000_000


class Options(msgspec.Struct, frozen=True):
    objects: int = 10_000
    others: int = 5  # that each subscription names
    fixes: int = 100_000
    seed: int = 1


def measure(options: Options, *, runs: int = 3, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The rate at the size in question, and how a fix's time goes with objects and with edges."""
    say("Comparing with a plain loop over all pairs.")
    told = _check(msgspec.structs.replace(options, objects=min(400, options.objects), fixes=min(8000, options.fixes)))
    say("Warming up.")
    measure_once(msgspec.structs.replace(options, fixes=max(1, options.fixes // 10)))
    large = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with {options.objects} objects.")
        large.append(measure_once(msgspec.structs.replace(options, seed=options.seed + run - 1)))
    by_objects, by_bystanders = {}, {}
    for objects in (options.objects // 10, options.objects, options.objects * 10):
        say(f"{objects} objects with the same edges each.")
        found = measure_once(msgspec.structs.replace(options, objects=max(_GROUP, objects)))
        by_objects[str(objects)] = found["us_per_fix"]
        by_bystanders[str(objects)] = found["us_per_fix_of_the_first_1000"]
    by_others = {}
    for others in (1, options.others, options.others * 5):
        say(f"{options.objects} objects with {others} others each.")
        found = measure_once(msgspec.structs.replace(options, others=others))
        by_others[str(2 * others)] = found["us_per_fix"]
    return {
        "options": msgspec.structs.asdict(options),
        "runs": runs,
        "checked_notifications": told,
        "large": spread(large),
        "us_per_fix_by_objects": by_objects,
        "us_per_fix_by_objects_if_1000_move": by_bystanders,
        "us_per_fix_by_edges_of_the_mover": by_others,
    }


def measure_once(options: Options) -> dict[str, Any]:
    """Time for fixes one after the other, in CPU time of the thread."""
    town = _Town(options)
    town.world.nearby.refresh(_BEGIN)
    for thing in range(options.objects):  # everybody is somewhere before it counts
        town.publish(thing, _BEGIN)
    before = town.told
    seconds = _timed(town, options.fixes, options.objects)
    told = town.told - before
    few = _timed(town, options.fixes, min(1000, options.objects))
    return {
        "edges": options.objects * options.others,
        "fixes_per_second": round(options.fixes / seconds),
        "us_per_fix": round(seconds / options.fixes * 1e6, 2),
        "us_per_fix_of_the_first_1000": round(few / options.fixes * 1e6, 2),
        "notifications_per_1000_fixes": round(told / options.fixes * 1000, 1),
    }


def _timed(town: "_Town", fixes: int, movers: int) -> float:
    moves = [(town.entries[thing], event) for thing, event in town.moves(fixes, movers)]
    work = town.work
    gc.collect()
    began = thread_time()
    for entry, event in moves:
        fold_nearby(work, entry, event)
    return thread_time() - began


class _Town:
    """A world with the users, their grants, objects and subscriptions; nothing of it is in a store."""

    def __init__(self, options: Options) -> None:
        self._rng = Random(options.seed)
        self._options = options
        self.world = World()
        self.world.secret = b"benchmark"
        self.entries = [
            ObjectEntry(number + 1, f"u{number}", number + 1, None, None, 0) for number in range(options.objects)
        ]
        for entry in self.entries:
            self.world.put_user(entry.id, entry.oid, 0)
            self.world.put_object(entry)
        self.others = [self._friends(number) for number in range(options.objects)]
        self.places = [self._start(number) for number in range(options.objects)]
        self.headings = [self._rng.uniform(0, 2 * math.pi) for _ in range(options.objects)]
        for number, others in enumerate(self.others):
            for other in others:
                grant_id = len(self.world.grants.get(other + 1, {})) + 1
                self.world.put_grant(Grant(grant_id, other + 1, number + 1, frozenset({Operation.DISTANCE})))
            text = f"(u{number}) distance ({_METRES:g}, {', '.join(f'u{other}' for other in others)})"
            self.world.put_subscription(
                SubscriptionEntry(
                    number + 1, number + 1, "near", text, parse_selector(text), Service(), "", False, _BEGIN
                )
            )
        self.work = Work(cast("Transaction", None), self.world, Settings(), _BEGIN)
        self._now = _BEGIN

    @property
    def told(self) -> int:
        return self.work.recorder.recorded

    def publish(self, thing: int, ts: int) -> Event:
        event = Event(ts, self.places[thing], self.entries[thing].oid)
        fold_nearby(self.work, self.entries[thing], event)
        return event

    def moves(self, count: int, movers: int) -> Iterator[tuple[int, Event]]:
        """One of the first so many goes a step further, then another, a millisecond apart."""
        for _ in range(count):
            thing = self._rng.randrange(movers)
            self._now += 1
            self.headings[thing] += self._rng.gauss(0, 0.3)
            self.places[thing] = self._step(thing)
            yield thing, Event(self._now, self.places[thing], self.entries[thing].oid)

    def _friends(self, number: int) -> list[int]:
        """Of the same group, so that they meet."""
        first = number // _GROUP * _GROUP
        group = range(first, min(first + _GROUP, self._options.objects))
        rest = [other for other in group if other != number]
        return self._rng.sample(rest, min(self._options.others, len(rest)))

    def _corner(self, number: int) -> Point:
        group = number // _GROUP
        return group % 100 * 0.05, 45.0 + group // 100 * 0.05

    def _start(self, number: int) -> Point:
        west, south = self._corner(number)
        side = _SIDE_M / _DEGREE_M
        return west + self._rng.uniform(0, side), south + self._rng.uniform(0, side)

    def _step(self, thing: int) -> Point:
        """Who would leave the square turns round."""
        (x, y), (west, south) = self.places[thing], self._corner(thing)
        step, side = _STEP_M / _DEGREE_M, _SIDE_M / _DEGREE_M
        x += step * math.cos(self.headings[thing])
        y += step * math.sin(self.headings[thing])
        if not (west <= x <= west + side and south <= y <= south + side):
            self.headings[thing] += math.pi
        return min(max(x, west), west + side), min(max(y, south), south + side)


def _check(options: Options) -> int:
    """Everything that is told, against everybody compared with everybody they asked about."""
    town = _Town(options)
    town.world.nearby.refresh(_BEGIN)
    newest: dict[int, Event] = {}
    near: set[tuple[int, int]] = set()
    expected: list[str] = []
    moves = [(thing, Event(_BEGIN, town.places[thing], f"u{thing}")) for thing in range(options.objects)]
    moves += list(town.moves(options.fixes, options.objects))
    work = town.work
    heard = work.recorder = _Listening(town.world, _BEGIN)
    for thing, event in moves:
        fold_nearby(work, town.entries[thing], event)
        newest[thing] = event
        found = []
        for left, others in enumerate(town.others):
            for other in others:
                if thing not in (left, other) or left not in newest or other not in newest:
                    continue
                one, two = newest[left].loc, newest[other].loc
                assert one is not None
                assert two is not None
                if (distance_m(one, two) < _METRES) is not ((left, other) in near):
                    near ^= {(left, other)}
                    mode = "enter" if (left, other) in near else "leave"
                    found.append(f"{event.ts} {mode} u{left} u{other} {one} {two}")
        expected += sorted(found)
    told = heard.told
    if sorted(told) != sorted(expected) or work.recorder.recorded != len(told):
        raise BenchmarkFailed(f"{len(told)} notifications were told, and a plain loop finds {len(expected)} others.")
    if not told:
        raise BenchmarkFailed("Nobody met anybody: there was nothing to compare.")
    return len(told)


class _Listening(Recorder):
    """Notes what it is given to record."""

    def __init__(self, world: World, now: Instant) -> None:
        super().__init__(world, now)
        self.told: list[str] = []

    def edge(self, key: BindingKey, edge: Edge, event: Event, **more: Any) -> None:
        left, other = key.object_id - 1, int(key.target[2:]) - 1
        self.told.append(f"{edge.ts} {edge.mode} u{left} u{other} {event.loc} {more['target_loc']}")
        super().edge(key, edge, event, **more)


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__)
    parser.add_argument("--objects", type=positive_int, default=10_000, metavar="N")
    parser.add_argument(
        "--others", type=positive_int, default=5, metavar="M", help="named by each subscription (default: 5)"
    )
    parser.add_argument("--fixes", type=positive_int, default=100_000, metavar="F")
    parser.add_argument("--small", action="store_true", help="a tenth of the objects and of the fixes, one run")
    args = parser.parse_args(argv)
    options, runs = Options(args.objects, args.others, args.fixes, args.seed), args.runs
    if args.small:
        options, runs = msgspec.structs.replace(options, objects=args.objects // 10, fixes=args.fixes // 10), 1
    return measured(NAME, args, lambda say: measure(options, runs=runs, say=say))


if __name__ == "__main__":
    sys.exit(main())
