"""Both ends of a connection, driven against each other with frames that get lost."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_sdk.device import Device
from agent_sdk.errors import (
    AnswerTimeout,
    FrameTooBig,
    HelloExpected,
    HelloRepeated,
    HelloTimeout,
    PlanUnusable,
    ProtocolUnsupported,
    ProtocolViolation,
    TooManyReports,
)
from agent_sdk.outbox import DeviceStore
from agent_sdk.protocol.codec import JSON, MSGPACK
from agent_sdk.protocol.messages import (
    PROTOCOL,
    Ack,
    Bye,
    Hello,
    Lease,
    Notify,
    Plan,
    PlanItem,
    PlanZone,
    Refusal,
    Renew,
    Report,
    ReportItem,
    Welcome,
)
from agent_sdk.protocol.session import AgentSession, Next, ServerSession, after_close
from matcher.evaluation import Rule, fold
from matcher.events import Event
from matcher.once import Mode, Service, Tos
from matcher.selector.tree import Not, Within
from tests.support.places import Covering
from zones.shapes import Polygon

from .plain_server import ZONES, PlainServer, full, item

NOW = 1_000_000


def report(seq, n=1, generation=1, **rest):
    return ReportItem(seq=seq, generation=generation, handle="h", n=n, mode=Mode.ENTER, ts=5, **rest)


# --- the server's end ------------------------------------------------------------------------------


def server_session(**limits):
    return ServerSession(JSON, now=NOW, **limits)


def greeted(**limits):
    session = server_session(**limits)
    session.receive(JSON.encode(Hello(PROTOCOL, NOW)), NOW)
    return session


def test_the_first_frame_is_hello_or_nothing():
    with pytest.raises(HelloExpected):
        server_session().receive(JSON.encode(Renew()), NOW)


def test_hello_is_said_once():
    with pytest.raises(HelloRepeated):
        greeted().receive(JSON.encode(Hello(PROTOCOL, NOW)), NOW)


def test_a_late_hello_is_refused():
    session = server_session(hello_timeout_s=10)
    assert session.hello_deadline == NOW + 10_000
    session.check_hello(NOW + 10_000)
    with pytest.raises(HelloTimeout):
        session.check_hello(NOW + 10_001)
    with pytest.raises(HelloTimeout):
        session.receive(JSON.encode(Hello(PROTOCOL, NOW)), NOW + 10_001)


def test_a_version_that_nobody_speaks_any_more_is_refused_and_a_newer_one_is_met_halfway():
    with pytest.raises(ProtocolUnsupported):
        server_session().receive(JSON.encode(Hello(0, NOW)), NOW)
    session = server_session()
    session.receive(JSON.encode(Hello(PROTOCOL + 5, NOW)), NOW)
    assert session.protocol == PROTOCOL


def test_too_many_bytes_or_reports_are_refused():
    with pytest.raises(FrameTooBig) as caught:
        greeted(max_frame_bytes=1000).receive(JSON.encode(Hello(PROTOCOL, NOW, etag="é" * 600)), NOW)
    assert caught.value.close_code == 1009
    with pytest.raises(TooManyReports):
        greeted(max_reports=2).receive(JSON.encode(Report(tuple(report(i, n=i) for i in (1, 2, 3)))), NOW)


@pytest.mark.parametrize(
    "reports",
    [(), (report(2), report(1)), (report(1), report(1)), (report(0),), (report(1, n=0),), (report(1, generation=0),)],
)
def test_reports_that_make_no_sense_are_refused(reports):
    with pytest.raises(ProtocolViolation):
        greeted().receive(JSON.encode(Report(reports)), NOW)


def test_seq_rises_over_the_whole_connection():
    session = greeted()
    session.receive(JSON.encode(Report((report(7),))), NOW)
    with pytest.raises(ProtocolViolation):
        session.receive(JSON.encode(Report((report(7),))), NOW)


def test_both_directions_are_counted():
    session = greeted()
    frame = session.send(Lease(5))
    session.send(Lease(5))
    assert session.counts.sent["lease"].messages == 2
    assert session.counts.sent["lease"].bytes == 2 * len(frame)
    assert session.counts.received["hello"].messages == 1


# --- the agent's end -------------------------------------------------------------------------------


def at(ts, lon, **pairs):
    return Event(ts=ts, loc=(float(lon), 0.0), pairs=pairs)


def device(**options):
    return Device(DeviceStore(None, **options))


def welcome(generation=1, etag="", lease_s=600.0, max_frame_bytes=4096, max_reports=100):
    return Welcome(PROTOCOL, NOW, generation, etag, lease_s, max_frame_bytes, max_reports)


def connected(dev, plan=None, **options):
    """A session that has been welcomed and given a plan."""
    session = AgentSession(JSON, dev, **options)
    session.frames_to_send(NOW)
    session.receive(JSON.encode(welcome()), NOW)
    session.receive(JSON.encode(plan or full(PlainServer({"h": item("h")}))), NOW)
    return session


def sent(session, now=NOW):
    return [JSON.decode_from_agent(frame) for frame in session.frames_to_send(now)]


def test_an_agent_without_memory_says_so():
    session = AgentSession(JSON, device())
    assert session.seconds_until_due(NOW) == 0
    (hello,) = sent(session)
    assert (hello.generation, hello.etag, hello.after, hello.now) == (0, "", None, NOW)
    assert sent(session) == []
    assert session.seconds_until_due(NOW) == pytest.approx(10, abs=0.01)


def test_a_silent_server_is_left():
    session = AgentSession(JSON, device())
    session.frames_to_send(NOW)
    with pytest.raises(AnswerTimeout):
        session.frames_to_send(NOW + 10_001)


def test_a_welcome_without_its_plan_is_a_silent_server_too():
    session = AgentSession(JSON, device())
    session.frames_to_send(NOW)
    session.receive(JSON.encode(welcome(generation=4, etag="x")), NOW + 1)
    with pytest.raises(AnswerTimeout):
        session.frames_to_send(NOW + 10_001)


def test_an_agent_with_the_same_plan_gets_none_and_goes_on():
    dev = device()
    connected(dev)
    again = AgentSession(JSON, dev)
    (hello,) = sent(again, NOW + 500_000)
    assert (hello.generation, hello.etag) == (1, dev.etag)
    again.receive(JSON.encode(welcome(1, dev.etag)), NOW + 500_100)
    assert dev.lease_until == NOW + 500_000 + 600_000  # counted from the question, not from the answer
    assert again.skew_ms == NOW - (NOW + 500_050)


def test_the_lease_is_renewed_at_half_time():
    session = connected(device())
    assert session.seconds_until_due(NOW) == 300
    assert sent(session, NOW + 299_999) == []
    assert sent(session, NOW + 300_000) == [Renew()]
    assert sent(session, NOW + 300_001) == []
    session.receive(JSON.encode(Lease(600)), NOW + 300_500)
    assert session.seconds_until_due(NOW + 300_500) == 299.5


def test_a_renewal_that_is_not_answered_ends_the_connection():
    session = connected(device())
    session.frames_to_send(NOW + 300_000)
    with pytest.raises(AnswerTimeout):
        session.frames_to_send(NOW + 310_001)


def test_a_plan_that_nobody_asked_for_does_not_lengthen_the_lease():
    server = PlainServer({"h": item("h")})
    dev = device()
    session = connected(dev, full(server))
    until, due = dev.lease_until, session.seconds_until_due(NOW)
    session.receive(JSON.encode(Plan(1, "later", False, 600, (item("i"),))), NOW + 200_000)
    assert (dev.etag, dev.lease_until) == ("later", until)
    assert session.seconds_until_due(NOW) == due
    session.receive(JSON.encode(Plan(1, "shorter", False, 60, (item("i"),))), NOW + 200_000)
    assert dev.lease_until == NOW + 260_000


def test_nothing_is_evaluated_after_the_lease_and_nothing_is_dropped():
    dev = device()
    session = connected(dev)
    dev.fix(at(1, 5), NOW)
    dev.fix(at(2, 50), NOW + 600_000)
    assert dev.counts.suspended == 1
    assert dev.waiting == 1
    session.receive(JSON.encode(Lease(600)), NOW + 600_001)
    dev.fix(at(3, 50), NOW + 600_002)
    assert [entry.mode for entry in dev.outgoing(0, 9)] == [Mode.ENTER, Mode.LEAVE]


def test_reports_go_in_batches_within_the_window():
    dev = device()
    session = connected(dev, full(PlainServer({"h": item("h", service=Service(tos=Tos.EVERY))})), window=5)
    session.welcome = welcome(max_reports=2)
    for ts in range(1, 10):
        dev.fix(at(ts, 5), NOW)
    assert [len(frame.reports) for frame in sent(session)] == [2, 2, 1]
    assert sent(session) == []
    session.receive(JSON.encode(Ack(3)), NOW)
    assert [[entry.seq for entry in frame.reports] for frame in sent(session)] == [[6, 7], [8]]
    assert dev.waiting == 6


def test_a_frame_never_exceeds_what_the_server_takes():
    dev = device()
    session = connected(dev, full(PlainServer({"h": item("h", service=Service(tos=Tos.EVERY))})))
    session.welcome = welcome(max_frame_bytes=1024)
    for ts in range(1, 8):
        dev.fix(at(ts, 5, text="x" * 300), NOW)
    dev.fix(at(8, 5, text="x" * 2000), NOW)
    frames = session.frames_to_send(NOW)
    assert all(len(frame) <= 1024 for frame in frames)
    items = [entry for frame in frames for entry in JSON.decode_from_agent(frame).reports]
    assert [entry.n for entry in items] == list(range(1, 9))
    assert items[-1].pairs == {}  # the edge is what counts; its oversized pairs had to stay


def test_an_ack_for_what_was_never_sent_is_a_violation():
    session = connected(device())
    with pytest.raises(ProtocolViolation):
        session.receive(JSON.encode(Ack(1)), NOW)


def test_refused_reports_go_to_the_dead_list():
    dev = device()
    session = connected(dev)
    for ts, lon in enumerate([5, 50, 5], 1):
        dev.fix(at(ts, lon), NOW)
    session.frames_to_send(NOW)
    session.receive(JSON.encode(Ack(3, (Refusal(2, "binding_ended", "Gone."),))), NOW)
    assert dev.waiting == 0
    (dead,) = dev.dead()
    assert (dead.report.seq, dead.report.mode, dead.code, dead.sentence) == (2, Mode.LEAVE, "binding_ended", "Gone.")


def test_a_gap_makes_the_agent_start_anew():
    dev = device()
    session = connected(dev)
    dev.fix(at(1, 5), NOW)
    session.receive(JSON.encode(Bye("report_gap", "Edge 3 came after 1.")), NOW)
    assert session.closed
    assert session.frames_to_send(NOW) == []
    (hello,) = sent(AgentSession(JSON, dev))
    assert hello.generation == 0
    assert dev.waiting == 0


def test_other_goodbyes_forget_nothing():
    dev = device()
    session = connected(dev)
    dev.fix(at(1, 5), NOW)
    session.receive(JSON.encode(Bye("server_stopping", "Back soon.")), NOW)
    assert (dev.generation, dev.waiting) == (1, 1)


def test_notifications_are_asked_for_behind_the_cursor_and_handed_over():
    dev = device()
    dev.read_up_to(41)
    session = AgentSession(JSON, dev, notifications=True)
    (hello,) = sent(session)
    assert hello.after == 41
    session.receive(JSON.encode(welcome()), NOW)
    session.receive(JSON.encode(Notify(({"offset": 42, "mode": "enter"},))), NOW)
    assert list(session.notifications) == [{"offset": 42, "mode": "enter"}]


@pytest.mark.parametrize(
    "plan",
    [
        Plan(2, "e", False, 60),
        Plan(1, "e", True, 0),
        Plan(1, "e", True, 60, (item("h"),)),
        Plan(1, "e", True, 60, drop_zones=("west",), items=(item("h", "east"),)),
        Plan(1, "e", False, 60, drop_zones=("west",)),
        Plan(1, "e", False, 60, (PlanItem("h", Not(Within(None, ()))),)),
        Plan(1, "e", False, 60, zones=(PlanZone("bare", Polygon(())),)),
    ],
    ids=["delta of another generation", "no lease", "zone missing", "other zone", "zone dropped under a condition",
         "selector in a condition", "polygon without a ring"],
)  # fmt: skip
def test_a_plan_that_cant_be_evaluated_is_refused_and_changes_nothing(plan):
    dev = device()
    session = connected(dev)
    before = dev.etag
    with pytest.raises(PlanUnusable):
        session.receive(JSON.encode(plan), NOW)
    assert (dev.generation, dev.etag) == (1, before)
    assert dev.fix(at(1, 5), NOW) == 1


def test_a_server_that_skips_the_welcome_or_repeats_it_is_refused():
    session = AgentSession(JSON, device())
    session.frames_to_send(NOW)
    with pytest.raises(ProtocolViolation):
        session.receive(JSON.encode(Ack(0)), NOW)
    session = connected(device())
    with pytest.raises(ProtocolViolation):
        session.receive(JSON.encode(welcome()), NOW)


def test_close_codes_say_what_to_do_next():
    assert after_close(4401) is Next.STOP
    assert after_close(4409) is Next.RECONNECT_LATER
    assert {after_close(code) for code in (None, 1000, 1001, 1006, 1009, 1012, 4400)} == {Next.RECONNECT}


# --- both, with a network that loses things --------------------------------------------------------


class World:
    """A device, a server, and what is under way between them."""

    def __init__(self, codec, items):
        self.codec = codec
        self.store = DeviceStore(None)
        self.device = Device(self.store)
        self.server = PlainServer(items)
        self.session = None
        self.up, self.down = deque(), deque()
        self.now = NOW

    def connect(self):
        self.session = AgentSession(self.codec, self.device, window=4)
        self.server.connect(self.codec, self.now)
        self.up.clear()
        self.down.clear()

    def lose(self):
        self.session = None
        self.up.clear()
        self.down.clear()

    def restart_device(self):
        self.lose()
        self.device = Device(self.store)

    def talk(self, frames):
        """Let this many frames arrive, in turns; whatever is not delivered stays under way."""
        for _ in range(frames):
            if self.session is None:
                return
            self.up.extend(self.session.frames_to_send(self.now))
            if self.up:
                self.down.extend(self.server.receive(self.up.popleft(), self.now))
            elif self.down:
                self.session.receive(self.down.popleft(), self.now)
            else:
                return
            if self.server.close_code is not None and not self.down:
                self.lose()

    def settle(self):
        for _ in range(50):
            if self.session is None:
                self.connect()
            self.talk(1000)
            if self.device.waiting == 0 and self.session is not None and not self.down:
                return
        raise AssertionError("never settled")


steps = st.lists(
    st.one_of(
        st.tuples(st.just("fix"), st.sampled_from([-5, 2, 7, 12, 20])),
        st.tuples(st.just("talk"), st.integers(1, 6)),
        st.tuples(st.just("lose"), st.none()),
        st.tuples(st.just("connect"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=60,
)
ITEMS = {
    "once": item("once", "west"),
    "every": item("every", "east", Service(tos=Tos.EVERY)),
    "first": item("first", "east", Service(tos=Tos.FIRST)),
    "dwell": item("dwell", "west", Service(dwell_s=0.15)),
    "leaves": item("leaves", "west", Service(modes=(Mode.LEAVE,))),
}


def covers(zone, point):
    west, _, east, _ = ZONES[zone].shape.bbox
    return west <= point[0] <= east


@settings(max_examples=150, deadline=None)
@given(codec=st.sampled_from([JSON, MSGPACK]), steps=steps)
def test_each_edge_arrives_once_and_in_order_whatever_is_lost(codec, steps):
    world = World(codec, dict(ITEMS))
    world.settle()
    rules = [Rule(i.handle, i.condition, i.service) for _, i in sorted(ITEMS.items())]
    states, last, expected, ts = {}, None, [], 0
    for what, value in steps:
        if what == "fix":
            ts += 100
            event = at(ts, value)
            world.device.fix(event, world.now)
            folded = fold(rules, states, last, event, Covering(covers))
            states |= folded.states
            last = event
            for happening in folded.edges:
                edge, tells = happening.edge, ITEMS[happening.key].service.tells(happening.edge.mode)
                lon = happening.event.loc[0] if tells else None
                expected.append((happening.key, edge.n, edge.mode.value, edge.ts, lon))
        elif what == "talk":
            world.talk(value)
        elif what == "restart":
            world.restart_device()
        else:
            world.lose() if what == "lose" else world.connect()
    world.settle()
    assert world.server.recorded == expected
    assert world.server.stale == 0


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("fix"), st.sampled_from([-5, 2, 7, 12, 20])),
            st.tuples(st.just("talk"), st.integers(1, 8)),
            st.tuples(st.just("lose"), st.none()),
            st.tuples(st.just("put"), st.sampled_from(["a", "b"])),
            st.tuples(st.just("drop"), st.sampled_from(["a", "b"])),
            st.tuples(st.just("hand over"), st.none()),
            st.tuples(st.just("wipe"), st.none()),
        ),
        max_size=60,
    )
)
def test_edges_alternate_and_count_on_through_edits_handovers_and_wiped_devices(steps):
    world = World(MSGPACK, {"a": item("a", "west")})
    world.settle()
    ts = 0
    for what, value in steps:
        if what == "fix":
            ts += 100
            world.device.fix(at(ts, value), world.now)
        elif what == "talk":
            if world.session is None:
                world.connect()
            world.talk(value)
        elif what == "lose":
            world.lose()
        elif what == "wipe":
            world.lose()
            world.store = DeviceStore(None)
            world.device = Device(world.store)
        elif what == "hand over":
            world.server.generation += 1
            world.down.extend(world.server.change()) if world.session else None
        else:
            if what == "put":
                zone = "east" if value in world.server.items else "west"
                world.server.items[value] = item(value, zone)
            else:
                world.server.items.pop(value, None)
            world.down.extend(world.server.change()) if world.session else None
    world.settle()
    world.device.fix(at(ts + 100, 7), world.now)
    world.settle()
    for handle in "ab":
        told = [(n, mode) for key, n, mode, *_ in world.server.recorded if key == handle]
        assert told == [(n, "enter" if n % 2 else "leave") for n in range(1, len(told) + 1)]
        if handle in world.server.items:
            assert world.server.states[handle].holds  # lon 7 is in both zones: the server knows it in the end
