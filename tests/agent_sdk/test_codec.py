"""Frames in both encodings: everything survives the way there and back, nothing hostile gets through."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sdk.errors import FrameMalformed, ProtocolViolation
from agent_sdk.protocol.codec import JSON, MSGPACK, SUBPROTOCOLS, by_subprotocol, kind_of
from agent_sdk.protocol.messages import (
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
from matcher.events import Located, Region
from matcher.once import Mode, OnceState, Service, Tos
from matcher.selector.tree import (
    And,
    Arith,
    ArithOp,
    Between,
    Compare,
    CompareOp,
    Const,
    In,
    InZones,
    IsNull,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    Or,
    Time,
    Truth,
)
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle

BOTH = pytest.mark.parametrize("codec", [JSON, MSGPACK], ids=["json", "msgpack"])

ints = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
points = st.tuples(floats, floats)
rings = st.lists(points, max_size=5).map(tuple)
shapes = st.one_of(
    st.builds(Circle, points, floats),
    st.builds(Rectangle, st.tuples(floats, floats, floats, floats)),
    st.builds(Polygon, st.lists(rings, max_size=2).map(tuple)),
    st.builds(MultiPolygon, st.lists(st.lists(rings, max_size=2).map(tuple), max_size=2).map(tuple)),
)
# A float without a fraction is an integer to a JSON reader; both are the same number to a condition.
scalars = st.one_of(st.booleans(), ints, floats.filter(lambda x: x != int(x)), texts, st.builds(Time, ints))
values = st.one_of(scalars, st.builds(Located, points), st.builds(Region, shapes))
operands = st.recursive(
    st.one_of(st.builds(Name, texts), st.builds(Literal, scalars)),
    lambda inner: st.one_of(st.builds(Negative, inner), st.builds(Arith, st.sampled_from(ArithOp), inner, inner)),
    max_leaves=4,
)
plain = st.one_of(
    st.builds(Compare, st.sampled_from(CompareOp), operands, operands),
    st.builds(Between, operands, operands, operands, st.booleans()),
    st.builds(In, texts, st.lists(texts, max_size=3).map(tuple), st.booleans()),
    st.builds(Like, texts, texts, st.none() | texts, st.booleans()),
    st.builds(IsNull, texts, st.booleans()),
    st.builds(Truth, st.builds(Name, texts)),
)
conditions = st.recursive(
    st.one_of(
        st.builds(InZones, st.lists(texts, max_size=3).map(tuple)), st.builds(Const, st.none() | st.booleans()), plain
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)  # fmt: skip
states = st.builds(OnceState, st.booleans(), ints, st.none() | ints, st.none() | ints, st.none() | ints)
services = st.builds(
    Service,
    st.sampled_from(Tos),
    st.lists(st.sampled_from(Mode), max_size=2).map(tuple),
    floats,
    st.none() | ints,
)
from_agent = st.one_of(
    st.builds(Hello, ints, ints, ints, texts, st.lists(texts, max_size=2).map(tuple), st.none() | ints),
    st.builds(Renew),
    st.builds(
        Report,
        st.lists(
            st.builds(
                ReportItem,
                ints, ints, texts, ints, st.sampled_from(Mode), ints,
                st.none() | points, st.none() | floats, st.dictionaries(texts, values, max_size=3),
            ),
            max_size=3,
        ).map(tuple),
    ),
)  # fmt: skip
from_server = st.one_of(
    st.builds(Welcome, ints, ints, ints, texts, floats, ints, ints),
    st.builds(
        Plan,
        ints, texts, st.booleans(), floats,
        st.lists(st.builds(PlanItem, texts, conditions, services, states), max_size=2).map(tuple),
        st.lists(st.builds(PlanZone, texts, shapes), max_size=2).map(tuple),
        st.lists(texts, max_size=2).map(tuple), st.lists(texts, max_size=2).map(tuple), st.none() | ints,
    ),
    st.builds(Ack, ints, st.lists(st.builds(Refusal, ints, texts, texts), max_size=2).map(tuple)),
    st.builds(Lease, floats),
    st.builds(
        Notify, st.lists(st.dictionaries(texts, st.booleans() | texts | ints, max_size=3), max_size=2).map(tuple)
    ),
    st.builds(Bye, texts, texts, texts),
)  # fmt: skip


@BOTH
@given(message=from_agent)
def test_what_an_agent_says_arrives_as_it_was(codec, message):
    frame = codec.encode(message)
    assert isinstance(frame, str) is (codec is JSON)
    assert codec.decode_from_agent(frame) == message


@BOTH
@given(message=from_server)
def test_what_a_server_says_arrives_as_it_was(codec, message):
    assert codec.decode_from_server(codec.encode(message)) == message


@given(message=from_agent)
def test_both_encodings_carry_the_same_names(message):
    assert json.loads(JSON.encode(message)) == json.loads(
        msgspec.json.encode(msgspec.msgpack.decode(MSGPACK.encode(message)))
    )


@BOTH
@given(noise=st.binary(max_size=60))
def test_noise_is_a_violation_and_nothing_worse(codec, noise):
    frame = noise.decode("utf-8", "surrogateescape") if codec is JSON else noise
    for decode in (codec.decode_from_agent, codec.decode_from_server):
        with pytest.raises(ProtocolViolation):
            decode(frame)


HELLO = {"t": "hello", "protocol": 1, "now": 1}
ITEM = {"seq": 1, "generation": 1, "handle": "h", "n": 1, "mode": "enter", "ts": 5}


def report(**change):
    return {"t": "report", "reports": [ITEM | change]}


@BOTH
@pytest.mark.parametrize(
    "frame",
    [
        {},
        {"t": "dance"},
        {"t": "welcome"},
        {"t": "hello"},
        HELLO | {"protocol": "1"},
        HELLO | {"protocol": True},
        HELLO | {"now": 1.5},
        HELLO | {"capabilities": [1]},
        report(mode="crossing"),
        report(loc=[1]),
        report(loc=[1, 2, 3]),
        report(loc=["1", "2"]),
        report(loc=[True, 2]),
        report(unc="NaN"),
        report(pairs={"speed": [1]}),
        report(pairs={"speed": None}),
        report(pairs={"speed": {"t": "name", "name": "x"}}),
        report(seq=2**63),
        report(pairs={"big": 2**63}),
        [HELLO],
        "hello",
        None,
    ],
    ids=str,
)
def test_a_wrong_frame_is_refused(codec, frame):
    encoded = json.dumps(frame) if codec is JSON else msgspec.msgpack.encode(frame)
    with pytest.raises(FrameMalformed) as caught:
        codec.decode_from_agent(encoded)
    assert caught.value.close_code == 4400


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", ["loc", "unc", "pairs", "area"])
def test_messagepack_can_say_nan_and_is_refused(number, place):
    area = {"t": "region", "shape": {"type": "Circle", "center": [0.0, number], "radius_m": 5}}
    change = {
        "loc": {"loc": [1.0, number]},
        "unc": {"unc": number},
        "pairs": {"pairs": {"speed": number}},
        "area": {"pairs": {"area": area}},
    }[place]
    with pytest.raises(FrameMalformed):
        MSGPACK.decode_from_agent(msgspec.msgpack.encode(report(**change)))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400])
def test_json_numbers_that_are_not_numbers_are_refused(number):
    with pytest.raises(FrameMalformed):
        JSON.decode_from_agent(json.dumps(report(unc=0)).replace('"unc": 0', f'"unc": {number}'))


def test_a_nested_bomb_is_refused():
    deep = 100_000
    with pytest.raises(FrameMalformed):
        JSON.decode_from_agent('{"t":"hello","x":' + "[" * deep + "]" * deep + ',"protocol":1,"now":1}')
    with pytest.raises(FrameMalformed):
        MSGPACK.decode_from_agent(b"\x84\xa1t\xa5hello\xa1x" + b"\x91" * deep + b"\xc0\xa8protocol\x01\xa3now\x01")
    condition = '{"t":"not","item":' * deep + '{"t":"const","value":true}' + "}" * deep
    with pytest.raises(FrameMalformed):
        JSON.decode_from_server(
            '{"t":"plan","generation":1,"etag":"","full":true,"lease_s":9,"items":[{"handle":"h","condition":'
            + condition
            + "}]}"
        )


def test_the_wrong_kind_of_frame_is_refused():
    with pytest.raises(FrameMalformed, match="binary frame came where"):
        JSON.decode_from_agent(JSON.encode(Renew()).encode())
    with pytest.raises(FrameMalformed, match="text frame came where"):
        MSGPACK.decode_from_agent(JSON.encode(Renew()))


@BOTH
def test_unknown_fields_of_a_newer_peer_are_ignored(codec):
    frame = HELLO | {"mood": "good"}
    encoded = json.dumps(frame) if codec is JSON else msgspec.msgpack.encode(frame)
    assert codec.decode_from_agent(encoded) == Hello(1, 1)


def test_codecs_are_found_by_their_subprotocol():
    assert [by_subprotocol(name) for name in SUBPROTOCOLS] == [MSGPACK, JSON]
    assert by_subprotocol("fencepost.v0.xml") is None
    assert by_subprotocol(None) is None
    assert kind_of(Renew()) == "renew"


def test_size_counts_bytes_and_not_characters():
    frame = JSON.encode(Bye("x", "Grüße"))
    assert JSON.size(frame) == len(frame.encode()) > len(frame)
