"""Where fixes come from: traces, callbacks, gpsd."""

import asyncio
import json
import threading
from datetime import UTC, datetime

import pytest

from agent_sdk.errors import TraceInvalid
from agent_sdk.sources.callback import CallbackSource
from agent_sdk.sources.gpsd import GpsdSource
from agent_sdk.sources.trace import TraceSource
from matcher.events import Event
from zones.errors import CallerError


async def collected(source):
    return [event async for event in source]


def all_of(source):
    return asyncio.run(collected(source))


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_trace_carries_its_other_columns_as_pairs(tmp_path):
    path = written(
        tmp_path,
        "trace.csv",
        "oid,ts,lon,lat,unc,speed,battery,note,urgent\n"
        "mike,1000,116.5,39.5,12.5,3,0.75,late shift,true\n"
        "mike,2026-11-18T07:00:00Z,-1,2,,,,,\n",
    )
    first, second = all_of(TraceSource(path))
    pairs = {"speed": 3, "battery": 0.75, "note": "late shift", "urgent": True}
    assert first == Event(1000, (116.5, 39.5), unc=12.5, pairs=pairs)
    assert second == Event(round(datetime(2026, 11, 18, 7, tzinfo=UTC).timestamp() * 1000), (-1.0, 2.0))


def test_a_json_trace_takes_events_as_the_api_does(tmp_path):
    lines = [
        {"ts": 1, "loc": [1, 2], "speed": 3.5},
        {"oid": "mike", "ts": 2, "loc": {"type": "Point", "coordinates": [3, 4]}},
        {"ts": 3, "lon": 5, "lat": 6, "unc": 7},
    ]
    path = written(tmp_path, "trace.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n")
    assert all_of(TraceSource(path)) == [
        Event(1, (1.0, 2.0), pairs={"speed": 3.5}),
        Event(2, (3.0, 4.0)),
        Event(3, (5.0, 6.0), unc=7.0),
    ]


def test_one_object_is_picked_out_of_a_trace_of_several(tmp_path):
    path = written(tmp_path, "t.csv", "oid,ts,lon,lat\na,1,1,1\nb,2,2,2\na,3,3,3\n")
    assert [event.ts for event in all_of(TraceSource(path, oid="a"))] == [1, 3]
    with pytest.raises(TraceInvalid, match="several objects"):
        all_of(TraceSource(path))
    events = [Event(1, (1.0, 1.0), oid="a"), Event(2, (2.0, 2.0), oid="b")]
    assert all_of(TraceSource(events, oid="b")) == [Event(2, (2.0, 2.0))]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("t.csv", "ts,lon\n1,2\n", "no column lat"),
        ("t.csv", "", "no column"),
        ("t.csv", "ts,lon,lat\n1,2,3,4\n", "Line 2 of t.csv has more fields"),
        ("t.csv", "ts,lon,lat\n1,2,95\n", "Line 2"),
        ("t.csv", "ts,lon,lat\n1,nan,5\n", "Line 2"),
        ("t.csv", "ts,lon,lat,target\n1,2,5,x\n", "reserved"),
        ("t.jsonl", '{"ts": 1}\n', "no position"),
        ("t.jsonl", '{"ts": 1, "loc": "SYSTEM.Xidan"}\n', "Line 1"),
        ("t.jsonl", '{"loc": [1, 2]}\n', "no ts"),
        ("t.jsonl", "[1, 2]\n", "not a JSON object"),
        ("t.jsonl", '{"ts": 1, "loc": [NaN, 2]}\n', "Line 1"),
        ("t.jsonl", "[" * 100_000 + "\n", "not a JSON object"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path, name, text, what):
    with pytest.raises(TraceInvalid, match=what):
        all_of(TraceSource(written(tmp_path, name, text)))


def test_a_trace_that_is_not_there_or_not_text_is_said(tmp_path):
    with pytest.raises(TraceInvalid, match="can't be read"):
        all_of(TraceSource(tmp_path / "missing.csv"))
    (tmp_path / "b.csv").write_bytes(b"ts,lon,lat\n\xff\xfe\n")
    with pytest.raises(TraceInvalid, match="UTF-8"):
        all_of(TraceSource(tmp_path / "b.csv"))


def test_a_trace_keeps_its_pace_times_the_speed():
    slept, time = [], [100.0]

    async def sleep(seconds):
        slept.append(seconds)
        time[0] += seconds

    events = [Event(ts, (0.0, 0.0)) for ts in (5000, 6000, 9000, 8000)]
    source = TraceSource(events, speed=2.0, sleep=sleep, clock=lambda: time[0])
    assert source.waiting == 1
    assert [event.ts for event in all_of(source)] == [5000, 6000, 9000, 8000]
    assert slept == [0.5, 1.5]  # what is behind its time is not waited for
    assert source.waiting == 0
    assert source.seconds_until_seen(9999, 1) is None  # time passes with the fixes only


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_a_trace_has_no_other_speeds(speed):
    with pytest.raises(TraceInvalid):
        TraceSource([], speed=speed)


def test_pushed_fixes_come_out_in_order_also_from_other_threads():
    source = CallbackSource()
    source.push(1, 2, ts=10, unc=3, speed=4.5, urgent=True)

    def push():
        for ts in range(11, 111):
            source.push(1.0, 2.0, ts=ts)
        source.close()

    async def run():
        thread = threading.Thread(target=push)
        got = []
        async for event in source:
            if not got:
                thread.start()
            got.append(event)
        thread.join()
        return got

    first, *rest = asyncio.run(run())
    assert first == Event(10, (1.0, 2.0), unc=3.0, pairs={"speed": 4.5, "urgent": True})
    assert [event.ts for event in rest] == list(range(11, 111))


def test_a_fix_without_a_time_is_from_now(monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: 1_234_567_890_123)
    source = CallbackSource()
    source.push(1, 2)
    source.close()
    assert [event.ts for event in all_of(source)] == [1_234_567]


@pytest.mark.parametrize(
    "bad",
    [
        {"lon": float("nan"), "lat": 0},
        {"lon": 0, "lat": 91},
        {"lon": "1", "lat": 0},
        {"lon": True, "lat": 0},
        {"lon": 0, "lat": 0, "ts": 1.5},
        {"lon": 0, "lat": 0, "ts": 2**62},
        {"lon": 0, "lat": 0, "unc": -1},
        {"lon": 0, "lat": 0, "mode": "x"},
        {"lon": 0, "lat": 0, "list": [1]},
        {"lon": 0, "lat": 0, "speed": float("inf")},
        {"lon": 0, "lat": 0, "big": 2**64},
    ],
    ids=str,
)
def test_a_bad_fix_is_refused_where_it_is_pushed(bad):
    source = CallbackSource()
    with pytest.raises(CallerError):
        source.push(**bad)
    assert source.waiting == 0


def test_when_too_many_wait_the_oldest_give_way():
    source = CallbackSource(limit=3)
    for ts in range(1, 6):
        source.push(0, 0, ts=ts)
    source.close()
    assert (source.waiting, source.dropped) == (3, 2)
    assert [event.ts for event in all_of(source)] == [3, 4, 5]


GPSD = [
    '{"class":"VERSION","release":"3.25"}',
    '{"class":"TPV","mode":1,"time":"2026-11-18T07:00:00.000Z"}',
    '{"class":"TPV","mode":3,"time":"2026-11-18T07:00:01.250Z","lon":116.5,"lat":39.9,"eph":7.5,"speed":1.5,"track":90.0}',
    '{"class":"SKY","satellites":[]}',
    '{"class":"TPV","mode":2,"time":"2026-11-18T07:00:02.000Z","lon":116.6,"lat":39.9}',
    '{"class":"TPV","mode":2,"time":"yesterday","lon":116.6,"lat":39.9}',
    '{"class":"TPV","mode":2,"time":"2026-11-18T07:00:03.000Z","lon":216.6,"lat":39.9}',
    "half a li",
    "",
]


@pytest.mark.parametrize("kind", [str, str.encode])
def test_gpsd_reports_become_fixes(kind):
    source = GpsdSource([kind(line + "\n") for line in GPSD])
    first, second = all_of(source)
    assert (first.loc, first.unc, first.pairs) == ((116.5, 39.9), 7.5, {"speed": 1.5, "track": 90.0})
    assert (second.loc, second.unc, second.pairs) == ((116.6, 39.9), None, {})
    assert second.ts - first.ts == 750
    assert source.skipped == 3


def test_gpsd_is_read_from_a_stream():
    async def run():
        stream = asyncio.StreamReader()
        stream.feed_data("\n".join(GPSD).encode())
        stream.feed_eof()
        source = GpsdSource(stream)
        assert not source.is_patient  # what a receiver says now can't be asked for later
        return await collected(source)

    assert len(asyncio.run(run())) == 2


def test_a_live_source_gives_the_last_fix_time_to_arrive():
    source = CallbackSource()
    assert source.seconds_until_seen(10_000, 9_000) == 3.0
    assert source.seconds_until_seen(10_000, 11_999) == pytest.approx(0.001)
    assert source.seconds_until_seen(10_000, 12_000) == 0.0
    source.hint(30.0)  # may be ignored
