"""The device's file: what is in it survives, what is not its own is left alone."""

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agent_sdk.device import Device
from agent_sdk.errors import StateFileInUse, StateFileUnusable
from agent_sdk.outbox import DeviceStore
from agent_sdk.protocol.messages import Ack, Plan, Refusal, ReportItem
from matcher.evaluation import Rule, fold
from matcher.events import Event, Located
from matcher.once import Mode, OnceState, Service, Tos
from matcher.selector.tree import Time
from tests.support.places import Covering

from . import device_under_kill
from .plain_server import PlainServer, full, item
from .test_session import covers

NOW = 1_000_000
ROOT = Path(__file__).parents[2]


def at(ts, lon, **pairs):
    return Event(ts=ts, loc=(float(lon), 0.0), pairs=pairs)


def planned(store, **services):
    device = Device(store)
    items = {handle: item(handle, service=service) for handle, service in services.items()}
    device.install(full(PlainServer(items)), NOW + 60_000)
    return device


def commits(store):
    return store._db.execute("SELECT count(*) FROM outbox").fetchone()[0], store._db.total_changes


def test_everything_is_there_again_after_a_restart(tmp_path):
    path = tmp_path / "state.db"
    store = DeviceStore(path)
    device = planned(store, once=Service(), dwell=Service(dwell_s=5))
    device.fix(Event(1000, (5.0, 0.0), unc=3.5, pairs={"speed": 2, "at": Time(7), "home": Located((1.0, 2.0))}), NOW)
    device.read_up_to(12)
    etag, waiting = device.etag, device.outgoing(0, 9)
    store.close()
    again = Device(DeviceStore(path))
    assert (again.generation, again.etag, again.cursor, again.lease_until) == (1, etag, 12, NOW + 60_000)
    assert again.outgoing(0, 9) == waiting
    assert waiting[0].pairs == {"speed": 2, "at": Time(7), "home": Located((1.0, 2.0))}
    again.fix(at(6500, 50), NOW)
    # The dwell that was running ends with the event that held before the restart.
    told = [(entry.handle, entry.mode, entry.ts, entry.loc) for entry in again.outgoing(1, 9)]
    assert told == [
        ("dwell", Mode.ENTER, 6000, (5.0, 0.0)),
        ("dwell", Mode.LEAVE, 6500, (50.0, 0.0)),
        ("once", Mode.LEAVE, 6500, (50.0, 0.0)),
    ]


def test_a_fix_that_changes_nothing_writes_nothing():
    store = DeviceStore(None)
    device = planned(store, once=Service())
    device.fix(at(1, 5), NOW)
    before = commits(store)
    for ts in range(2, 50):
        device.fix(at(ts, 5 + ts / 100), NOW)
    assert commits(store) == before


def test_while_a_dwell_runs_the_event_that_holds_is_written():
    store = DeviceStore(None)
    device = planned(store, dwell=Service(dwell_s=5))
    device.fix(at(1000, 5), NOW)
    device.fix(at(2000, 6), NOW)
    again = Device(store)
    again.fix(at(9000, 7), NOW)
    assert [(entry.ts, entry.loc) for entry in again.outgoing(0, 9)] == [(6000, (6.0, 0.0))]
    assert store.load().last is None  # no dwell, nothing to keep


def test_a_full_outbox_stops_the_evaluation_and_edges_still_alternate():
    store = DeviceStore(None, limit=2)
    device = planned(store, once=Service())
    for ts, lon in enumerate([5, 50, 5, 50, 5], 1):
        device.fix(at(ts, lon), NOW)
    assert (device.waiting, device.counts.suspended) == (2, 3)
    device.acknowledge(Ack(2))
    device.fix(at(9, 5), NOW)
    device.fix(at(10, 50), NOW)
    assert [(entry.seq, entry.n, entry.mode) for entry in device.outgoing(0, 9)] == [
        (3, 3, Mode.ENTER),
        (4, 4, Mode.LEAVE),
    ]


def test_seq_never_starts_again():
    store = DeviceStore(None)
    device = planned(store, once=Service())
    device.fix(at(1, 5), NOW)
    device.acknowledge(Ack(1))
    device.forget()
    device.install(full(PlainServer({"once": item("once")}, generation=2)), NOW + 60_000)
    device.fix(at(2, 5), NOW)
    assert [(entry.seq, entry.generation, entry.n) for entry in device.outgoing(0, 9)] == [(2, 2, 1)]


def test_the_dead_list_is_bounded_and_keeps_the_newest():
    store = DeviceStore(None, dead_limit=2)
    device = planned(store, every=Service(tos=Tos.EVERY))
    for ts in range(1, 6):
        device.fix(at(ts, 5), NOW)
    device.acknowledge(Ack(3, (Refusal(1, "a"), Refusal(3, "b"), Refusal(5, "not yet"))))
    device.acknowledge(Ack(5, (Refusal(4, "c", "Why."),)))
    assert [(dead.report.seq, dead.code, dead.sentence) for dead in device.dead()] == [(3, "b", ""), (4, "c", "Why.")]


def test_forgetting_keeps_the_dead_list_the_cursor_and_the_newest_event():
    store = DeviceStore(None)
    device = planned(store, once=Service())
    device.fix(at(100, 5), NOW)
    device.acknowledge(Ack(1, (Refusal(1, "x"),)))
    device.read_up_to(9)
    device.forget()
    again = Device(store)
    assert (again.generation, again.etag, again.waiting, again.cursor) == (0, "", 0, 9)
    assert len(again.dead()) == 1
    again.install(full(PlainServer({"once": item("once")}, generation=2)), NOW + 60_000)
    assert again.fix(at(100, 5), NOW) == 0
    assert again.counts.late == 1


def test_what_the_server_has_seen_later_makes_our_fixes_late():
    device = Device(DeviceStore(None))
    device.install(full(PlainServer({"once": item("once")}), newest=500), NOW + 60_000)
    assert device.fix(at(500, 5), NOW) == 0
    assert device.fix(at(501, 5), NOW) == 1


def test_a_fix_from_the_future_is_not_taken():
    device = planned(DeviceStore(None), once=Service())
    assert device.fix(at(NOW + 300_001, 5), NOW) == 0
    assert device.counts.invalid == 1
    device.skew_ms = 2000  # our clock is behind the server's
    assert device.fix(at(NOW + 300_001, 5), NOW) == 1


def test_an_edge_that_a_timer_brought_makes_earlier_fixes_late():
    device = planned(DeviceStore(None), dwell=Service(dwell_s=5))
    device.fix(at(1000, 5), NOW)
    assert device.next_deadline() == 6000
    assert device.advance(5999, NOW) == 0
    assert device.advance(8000, NOW) == 1
    assert device.fix(at(6000, 50), NOW) == 0
    assert device.fix(at(6001, 50), NOW) == 1
    assert [(entry.mode, entry.ts) for entry in device.outgoing(0, 9)] == [(Mode.ENTER, 6000), (Mode.LEAVE, 6001)]


def test_no_timer_runs_when_the_lease_is_over():
    device = planned(DeviceStore(None), dwell=Service(dwell_s=5))
    device.fix(at(1000, 5), NOW)
    assert device.advance(8000, NOW + 60_000) == 0
    assert device.advance(8000, NOW + 59_999) == 1


def test_a_crash_inside_a_transaction_leaves_neither_edge_nor_state(monkeypatch):
    store = DeviceStore(None)
    device = planned(store, once=Service())
    monkeypatch.setattr(
        store, "_put_states", lambda states: (_ for _ in ()).throw(sqlite3.OperationalError("disk full"))
    )
    with pytest.raises(StateFileUnusable):
        device.fix(at(1, 5), NOW)
    monkeypatch.undo()
    assert device.waiting == 0
    assert device.fix(at(1, 5), NOW) == 1  # it had not been seen
    assert [entry.n for entry in device.outgoing(0, 9)] == [1]


@pytest.mark.parametrize(
    "junk", [b"this is not a database, it is a letter" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_cant_be_read_is_moved_aside(tmp_path, caplog, junk):
    path = tmp_path / "state.db"
    path.write_bytes(junk)
    device = Device(DeviceStore(path))
    assert device.generation == 0
    assert (tmp_path / "state.db.aside-1").read_bytes() == junk
    assert "state_file_moved_aside" in caplog.text


def test_a_file_of_another_program_is_moved_aside_whole(tmp_path):
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE letters (text)")
        other.execute("INSERT INTO letters VALUES ('dear')")
    other.close()
    DeviceStore(path).close()
    with sqlite3.connect(tmp_path / "state.db.aside-1") as other:
        assert other.execute("SELECT text FROM letters").fetchone() == ("dear",)
    other.close()


def test_a_damaged_page_is_noticed(tmp_path):
    path = tmp_path / "state.db"
    store = DeviceStore(path)
    device = planned(store, every=Service(tos=Tos.EVERY))
    for ts in range(1, 400):
        device.fix(at(ts, 5, text="x" * 100), NOW)
    store.close()
    data = bytearray(path.read_bytes())
    for start in range(8192, len(data), 4096):
        data[start : start + 64] = os.urandom(64)
    path.write_bytes(data)
    assert Device(DeviceStore(path)).generation == 0
    assert (tmp_path / "state.db.aside-1").exists()


def test_one_file_serves_one_agent_at_a_time(tmp_path):
    path = tmp_path / "state.db"
    holding = subprocess.Popen(
        [sys.executable, "-c", "import sys, agent_sdk.outbox as o; o = o.DeviceStore(sys.argv[1]); print(1); input()",
         path],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert holding.stdout.readline() == b"1\n"
        with pytest.raises(StateFileInUse) as caught:
            DeviceStore(path)
        assert caught.value.code == "state_file_in_use"
    finally:
        holding.kill()
        holding.communicate()
    DeviceStore(path).close()  # a dead process holds nothing
    mine = DeviceStore(path)
    with pytest.raises(StateFileInUse):
        DeviceStore(path)
    mine.close()


def test_a_folder_that_cant_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateFileUnusable):
        DeviceStore(tmp_path / "file" / "state.db")
    with pytest.raises(StateFileUnusable):
        DeviceStore(tmp_path)


def test_only_its_owner_can_read_the_file(tmp_path):
    path = tmp_path / "state.db"
    store = DeviceStore(path)
    planned(store, once=Service()).fix(at(1, 5), NOW)
    assert {os.stat(tmp_path / name).st_mode & 0o077 for name in os.listdir(tmp_path)} == {0}
    store.close()


def test_another_credential_does_not_send_the_first_ones_outbox(tmp_path):
    path = tmp_path / "state.db"
    store = DeviceStore(path, identity="first")
    planned(store, once=Service()).fix(at(1, 5), NOW)
    store.close()
    store = DeviceStore(path, identity="first")
    assert Device(store).waiting == 1
    store.close()
    other = Device(DeviceStore(path, identity="second"))
    assert (other.generation, other.waiting) == (0, 0)


def test_a_change_of_plan_is_written_as_it_is_applied(tmp_path):
    path = tmp_path / "state.db"
    store = DeviceStore(path)
    server = PlainServer({"a": item("a", "west"), "b": item("b", "east")})
    device = Device(store)
    device.install(full(server), NOW + 1)
    device.fix(at(1, 7), NOW)
    device.install(Plan(1, "next", False, 60, drop=("b",), drop_zones=("east",)), NOW + 60_000)
    store.close()
    remembered = DeviceStore(path).load()
    assert set(remembered.plan.items) == {"a"}
    assert set(remembered.plan.zones) == {"west"}
    assert remembered.etag == "next"
    assert remembered.states["b"] == OnceState(True, 1, since=1, visit=1)  # kept until the generation ends


def test_reports_are_kept_as_they_were(tmp_path):
    store = DeviceStore(None)
    report = ReportItem(0, 3, "h", 4, Mode.LEAVE, 5, (1.5, 2.5), 3.0, {"a": True, "b": 1.5, "c": "x"})
    store.save_fix([report], {}, 5, None)
    assert store.outgoing(0, 1) == [
        ReportItem(1, 3, "h", 4, Mode.LEAVE, 5, (1.5, 2.5), 3.0, {"a": True, "b": 1.5, "c": "x"})
    ]


def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_doubled(tmp_path):
    rng = random.Random(5)
    state, record = tmp_path / "state.db", tmp_path / "record.txt"
    command = [sys.executable, "-m", "tests.agent_sdk.device_under_kill", state, record]
    for attempt in range(40):
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        try:
            # Die after some hundred fixes more than the last time, wherever that is.
            wanted = rng.randint(0, 70) + 65 * attempt
            seen = child.stdout.read(wanted + 1)
        finally:
            child.kill()
            rest = child.communicate()[0]
        if (seen + rest).endswith(b"!"):
            break
    else:
        raise AssertionError("the trace was never finished")
    assert attempt > 5
    lines = [line.split() for line in record.read_text().splitlines()]
    taken, seqs = {}, []
    for seq, handle, n, *rest in lines:
        taken.setdefault((handle, int(n)), rest)
        assert taken[handle, int(n)] == rest  # what is sent again is the same
        seqs += [int(seq)] if int(seq) not in seqs else []
    assert seqs == sorted(seqs)
    assert list(taken.items()) == expected_of_the_trace()


def expected_of_the_trace():
    items = device_under_kill.ITEMS
    rules = [Rule(i.handle, i.condition, i.service) for _, i in sorted(items.items())]
    states, last, edges = {}, None, []
    for event in device_under_kill.trace():
        folded = fold(rules, states, last, event, Covering(covers))
        states |= folded.states
        last = event
        for happening in folded.edges:
            edge = happening.edge
            lon = happening.event.loc[0] if items[happening.key].service.tells(edge.mode) else None
            edges.append(((happening.key, edge.n), [edge.mode.value, str(edge.ts), str(lon)]))
    return edges
