"""Fixes in, edges out: the plan of one device, evaluated.

The deciding is `matcher.evaluation`, the same as on the server; here it meets the plan's handles and prepared
zones. Nothing takes effect by itself: `fix` and `advance` say what would happen, the store writes it down, and
`accept` makes it so. A device that dies in between has simply not seen the fix.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from shapely.errors import ShapelyError

from agent_sdk.errors import PlanUnusable
from agent_sdk.protocol.messages import Plan, PlanItem, ReportItem
from agent_sdk.protocol.plans import FullPlan, applied, merged_states
from matcher.anchors import Anchor
from matcher.evaluation import Happening, Rule, expire, fold, next_deadline
from matcher.events import Event
from matcher.once import Instant, OnceState
from matcher.places import Place
from matcher.planar import PlanarRegion
from matcher.selector.conditions import is_condition, zones_in
from zones.coarsen import Precision
from zones.errors import FencepostError
from zones.shapes import Point

__all__ = ["Evaluator", "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a fix or the passing of time does: edges in order, the states they leave, and the newest event."""

    edges: tuple[Happening[str], ...] = ()
    states: Mapping[str, OnceState] = field(default_factory=dict)
    newest: Instant | None = None
    last: Event | None = None
    late: bool = False


class Evaluator:
    """The plan, how far each of its bindings has come, and the event that holds now."""

    def __init__(
        self,
        plan: FullPlan | None = None,
        states: Mapping[str, OnceState] | None = None,
        *,
        newest: Instant | None = None,
        last: Event | None = None,
        places: Mapping[str, Place] | None = None,
    ) -> None:
        self.plan = plan or FullPlan()
        self.states: dict[str, OnceState] = dict(states or {})
        self.newest = newest
        self.last = last
        self._places = {} if places is None else dict(places)
        for zone in self.plan.zones.values():
            if zone.zone not in self._places:
                self._places[zone.zone] = _prepared(zone.zone, zone.shape)
        self._rules = {item.handle: self._rule(item) for item in self.plan.items.values()}
        # By handle, so that edges of one instant come in the same order before and after a restart.
        self._in_order = tuple(self._rules[handle] for handle in sorted(self._rules))
        self._needs_last = any(rule.anchor is not None and rule.service.crossing for rule in self._in_order)
        self._dwelling = {
            handle for handle, state in self.states.items() if state.pending is not None and handle in self._rules
        }

    @property
    def needs_last(self) -> bool:
        """Whether the event that holds must not be forgotten: a dwell runs, or the way from it may count."""
        return self._needs_last or bool(self._dwelling)

    def with_plan(self, message: Plan) -> "Evaluator":
        """The evaluator after this message; raises `PlanUnusable` if it can't be evaluated."""
        plan = applied(message, self.plan)
        last, newest = self.last, self.newest
        if message.newest is not None and (newest is None or newest < message.newest):
            # The server has seen a later event. (The end of a dwell makes `newest` later than `last` too, and
            # comes back from the server; then `last` still holds.)
            newest, last = message.newest, None
        kept = {
            zone: self._places[zone]
            for zone in plan.zones
            if zone in self._places and self.plan.zones.get(zone) == plan.zones[zone]
        }
        states = merged_states(message, self.plan, self.states)
        return Evaluator(plan, states, newest=newest, last=last, places=kept)

    def fix(self, event: Event) -> Outcome:
        """What this fix does. One that is not newer than the newest does nothing."""
        if self.newest is not None and event.ts <= self.newest:
            return Outcome(late=True)
        folded = fold(self._in_order, self.states, self.last, event, self)
        return Outcome(tuple(folded.edges), folded.states, event.ts, event)

    def advance(self, now: Instant) -> Outcome:
        """What the passing of time up to `now` does: dwells end."""
        waiting = [self._rules[handle] for handle in sorted(self._dwelling)]
        folded = expire(waiting, self.states, self.last, now)
        newest = self.newest
        if folded.edges:
            # A fix from before this edge would give a leave that is older than its enter: it is late now.
            latest = folded.edges[-1].edge.ts
            newest = latest if newest is None else max(newest, latest)
        return Outcome(tuple(folded.edges), folded.states, newest, self.last)

    def next_deadline(self) -> Instant | None:
        """When `advance` has something to do next."""
        if not self._dwelling:
            return None
        return next_deadline([self._rules[handle] for handle in self._dwelling], self.states)

    def accept(self, outcome: Outcome) -> None:
        """Make it so."""
        if outcome.late:
            return
        self.newest, self.last = outcome.newest, outcome.last
        for handle, state in outcome.states.items():
            self.states[handle] = state
            if state.pending is None:
                self._dwelling.discard(handle)
            else:
                self._dwelling.add(handle)

    def begin_anew(self, handles: Iterable[str]) -> None:
        """Forget how far these bindings have come."""
        for handle in handles:
            self.states.pop(handle, None)
            self._dwelling.discard(handle)

    def needs_last_after(self, outcome: Outcome) -> bool:
        """`needs_last` as it will be."""
        if self._needs_last or any(state.pending is not None for state in outcome.states.values()):
            return True
        return any(handle not in outcome.states for handle in self._dwelling)

    def reports(self, outcome: Outcome) -> Iterator[ReportItem]:
        """The edges as they are reported; the outbox gives them their seq.

        What the subscriber did not ask for goes without event: the server needs to know that it happened, and
        nobody needs to know where.
        """
        for happening in outcome.edges:
            edge, event = happening.edge, happening.event
            item = self.plan.items[happening.key]
            tells = item.service.tells(edge.mode)
            yield ReportItem(
                seq=0,
                generation=self.plan.generation,
                handle=happening.key,
                n=edge.n,
                mode=edge.mode,
                ts=edge.ts,
                loc=event.loc if tells else None,
                unc=event.unc if tells else None,
                pairs=event.pairs if tells else {},
            )

    def covers(self, zone: str, point: Point) -> bool:
        """Whether the point is in a zone of the plan (`matcher.places`)."""
        return self._places[zone].covers(point)

    def region(self, zone: str) -> PlanarRegion:
        """A zone of the plan as relations see it (`matcher.places`)."""
        return self._places[zone].region

    def _rule(self, item: PlanItem) -> Rule[str]:
        if not is_condition(item.condition):
            raise PlanUnusable(
                f"The condition of the plan's item {item.handle} has a node that only selectors have.",
                hint="Resolve names before a condition is sent.",
            )
        missing = [zone for zone in zones_in(item.condition) if zone not in self.plan.zones]
        if missing:
            raise PlanUnusable(
                f"The plan's item {item.handle} needs the zone {missing[0]}, which the plan does not have.",
                hint="Send a zone with or before the first condition that names it.",
            )
        try:
            precision = Precision(item.precision)
        except ValueError:
            raise PlanUnusable(
                f"The plan's item {item.handle} wants the precision {item.precision}, which is not known here.",
                hint="Offload only what the agent's capabilities name.",
            ) from None
        return Rule(item.handle, item.condition, item.service, precision, self._anchor(item))

    def _anchor(self, item: PlanItem) -> Anchor | None:
        anchor = item.anchor
        if anchor is None:
            return None
        if anchor.zone not in self._places:
            raise PlanUnusable(
                f"The plan's item {item.handle} is anchored in the zone {anchor.zone}, which the plan does not have.",
                hint="Send a zone with or before the first item that names it.",
            )
        return Anchor(anchor.zone, self._places[anchor.zone].boundary, anchor.widest_m, anchor.since)


def _prepared(zone: str, shape: object) -> Place:
    try:
        return Place(shape)  # type: ignore[arg-type]
    except (FencepostError, ShapelyError, ValueError, LookupError, ArithmeticError) as error:
        raise PlanUnusable(f"The shape of the plan's zone {zone} can't be used: {error}") from error
