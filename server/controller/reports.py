"""Taking an agent's reports: in order, once each, however late.

A report names (generation, handle, n). The server takes n = last + 1 only, so it always holds the state to hand over
to the next evaluator. A repeat is acknowledged and nothing more; so is a report of an older generation, whose
bindings another evaluator has taken over. A report that can never be taken is answered with a code and goes to
the dead list, and its n is consumed, so that those behind it are not held up.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec
from sqlalchemy import insert

from agent_sdk.protocol.messages import Refusal, ReportItem
from matcher.event_format import check_event
from matcher.events import Event
from matcher.once import Mode, OnceState, Service, Tos, follow
from server.controller.enrolment import AgentIdentity
from server.controller.plans import binding_of
from server.pubsub.entries import OPERATION_OF, BindingKey, ObjectEntry
from server.pubsub.publishing import refuse_future
from server.pubsub.work import Work
from server.store import models
from zones.errors import CallerError

__all__ = ["Taken", "take_reports"]

_START = OnceState()


class Taken(msgspec.Struct, frozen=True):
    """The acknowledgement up to `seq`; with `gap` the report behind it skipped a number."""

    seq: int
    refused: tuple[Refusal, ...]
    gap: bool
    outcomes: dict[str, int]


def take_reports(work: Work, agent: AgentIdentity, reports: Sequence[ReportItem]) -> Taken:
    entry = work.world.objects[agent.object_id]
    refused: list[Refusal] = []
    outcomes: Counter[str] = Counter()
    seq = 0
    holding = work.world.agents.get(entry.id)
    is_current = holding is not None and holding.id == agent.agent_id
    work.tx.touch()
    for report in reports:
        if not is_current or report.generation != entry.generation:
            outcomes["stale_generation"] += 1
            seq = report.seq
            continue
        key = binding_of(work.world, entry, report.handle)
        if key is None:
            refused.append(_bury(work, agent, report, "binding_ended", "The subscription or zone is gone."))
            outcomes["refused"] += 1
            seq = report.seq
            continue
        state = work.world.states.get(key, _START)
        if report.n > state.n + 1:
            return Taken(seq, tuple(refused), gap=True, outcomes=dict(outcomes))
        if report.n <= state.n:
            outcomes["repeated"] += 1
        else:
            refusal = _take(work, agent, entry, key, state, report)
            outcomes["taken" if refusal is None else "refused"] += 1
            refused += [] if refusal is None else [refusal]
        seq = report.seq
    return Taken(seq, tuple(refused), gap=False, outcomes=dict(outcomes))


def _take(
    work: Work, agent: AgentIdentity, entry: ObjectEntry, key: BindingKey, state: OnceState, report: ReportItem
) -> Refusal | None:
    subscription = work.world.subscriptions[key.subscription_id]
    service = subscription.service
    # What the subscriber is not told changes nothing for them, so that what they are told later still alternates.
    used_up = msgspec.structs.replace(state, n=report.n)
    if not _is_in_turn(service, state, report.mode):
        work.recorder.state(key, used_up)
        return _bury(work, agent, report, "edge_out_of_turn", f"A {report.mode} can't follow here.")
    try:
        refuse_future(report.ts, work.now, work.settings.clock_ahead_s)
        event = check_event(Event(report.ts, report.loc, entry.oid, report.unc, None, report.pairs))
    except CallerError as error:
        work.recorder.state(key, used_up)
        return _bury(work, agent, report, error.code, error.sentence)
    if entry.newest is None or report.ts > entry.newest:
        entry.newest = report.ts
        work.recorder.object_changed(entry)
    operation = OPERATION_OF[report.mode]
    if service.tells(report.mode) and not work.world.allows(entry.owner_id, subscription.subscriber_id, operation):
        work.recorder.state(key, used_up)
        return None
    followed, edge = follow(service, state, report.mode, report.ts)
    work.recorder.state(key, followed)
    work.recorder.edge(key, edge, event)
    return None


def _is_in_turn(service: Service, state: OnceState, mode: Mode) -> bool:
    if service.tos is Tos.EVERY:
        return mode is Mode.MATCH
    if service.tos is Tos.FIRST:
        return mode is Mode.ENTER and state.n == 0
    return mode is (Mode.LEAVE if state.holds else Mode.ENTER)


def _bury(work: Work, agent: AgentIdentity, report: ReportItem, code: str, sentence: str) -> Refusal:
    """The dead list keeps which report it was and why; no coordinates."""
    named = {"generation": report.generation, "handle": report.handle, "n": report.n, "mode": str(report.mode)}
    work.conn.execute(
        insert(models.DeadReport).values(
            agent_id=agent.agent_id, code=code, report=msgspec.json.encode(named).decode(), recorded=work.now
        )
    )
    return Refusal(report.seq, code, sentence)
