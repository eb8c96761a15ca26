"""Positions while the server asks for them: at once, then at its pace, each fix once."""

import pytest

from agent_sdk.device import Device
from agent_sdk.errors import HelloExpected, ProtocolViolation
from agent_sdk.outbox import DeviceStore
from agent_sdk.protocol.codec import JSON, MSGPACK
from agent_sdk.protocol.messages import PROTOCOL, Hello, Locate, Plan, Position, Welcome
from agent_sdk.protocol.session import AgentSession, ServerSession
from matcher.events import Event

_NOW = 1_000_000


class Phone:
    """A device with a session that has its plan, and the server's half of the codec."""

    def __init__(self, max_frame_bytes: int = 4096) -> None:
        self.device = Device(DeviceStore(None))
        self.session = AgentSession(JSON, self.device)
        (hello,) = self.session.frames_to_send(_NOW)
        assert "positions" in JSON.decode_from_agent(hello).capabilities
        self.hear(Welcome(PROTOCOL, _NOW, 1, "e", 86400, max_frame_bytes, 10))
        self.hear(Plan(1, "e", True, 86400))

    def hear(self, message, now=_NOW):
        self.session.receive(JSON.encode(message), now)

    def fix(self, ts, lon=10.0, **pairs):
        self.device.fix(Event(ts, None if lon is None else (lon, 50.0), unc=5.0, pairs=pairs), _NOW + 10**6)

    def sent(self, now=_NOW):
        return [JSON.decode_from_agent(frame) for frame in self.session.frames_to_send(now)]


def test_nobody_asks_and_nothing_is_said():
    phone = Phone()
    phone.fix(_NOW)
    assert phone.sent() == []
    assert not phone.session.is_locating(_NOW)


def test_the_newest_fix_is_sent_at_once_and_then_at_the_pace_that_was_asked_for():
    phone = Phone()
    phone.fix(_NOW, 10.0, speed=3)
    phone.hear(Locate(60))
    assert phone.sent() == [Position(_NOW, (10.0, 50.0), 5.0, {"speed": 3})]
    for seconds in (10, 30, 50):
        phone.fix(_NOW + seconds * 1000, 10 + seconds / 100)
        assert phone.sent(_NOW + seconds * 1000) == []
    assert phone.session.seconds_until_due(_NOW + 50_000) == 10
    assert phone.sent(_NOW + 60_000) == [Position(_NOW + 50_000, (10.5, 50.0), 5.0)]
    assert phone.session.counts.sent["position"].messages == 2


def test_a_fix_is_sent_once_and_the_next_one_as_soon_as_it_is_there():
    phone = Phone()
    phone.hear(Locate(60))
    assert phone.sent() == []  # it has none yet
    assert phone.session.is_locating(_NOW)
    assert phone.session.seconds_until_due(_NOW + 1) > 3600  # there is nothing to wait for but a fix
    phone.fix(_NOW)
    assert len(phone.sent(_NOW + 5)) == 1
    assert phone.sent(_NOW + 90_000) == []
    assert phone.session.is_locating(_NOW + 90_000)
    phone.fix(_NOW + 91_000)
    assert [each.ts for each in phone.sent(_NOW + 91_000)] == [_NOW + 91_000]
    assert not phone.session.is_locating(_NOW + 92_000)


def test_a_fix_without_a_place_is_not_sent():
    phone = Phone()
    phone.hear(Locate(60))
    phone.fix(_NOW, None, battery=3)
    assert phone.sent() == []


def test_it_stops_when_the_server_says_so_and_starts_again():
    phone = Phone()
    phone.hear(Locate(60))
    phone.hear(Locate(0))
    phone.fix(_NOW)
    assert phone.sent(_NOW + 120_000) == []
    phone.hear(Locate(30), _NOW + 121_000)
    assert [each.ts for each in phone.sent(_NOW + 121_000)] == [_NOW]


def test_pairs_that_do_not_fit_into_a_frame_stay_away():
    phone = Phone(max_frame_bytes=1024)
    phone.fix(_NOW, note="x" * 2000)
    phone.hear(Locate(60))
    assert phone.sent() == [Position(_NOW, (10.0, 50.0), 5.0)]


def test_a_negative_pace_is_a_violation():
    with pytest.raises(ProtocolViolation):
        Phone().hear(Locate(-1))


def test_a_position_before_the_hello_is_refused_and_behind_it_taken():
    session = ServerSession(MSGPACK, now=_NOW)
    position = Position(_NOW, (1.0, 2.0))
    with pytest.raises(HelloExpected):
        session.receive(MSGPACK.encode(position), _NOW)
    session.receive(MSGPACK.encode(Hello(PROTOCOL, _NOW)), _NOW)
    assert session.receive(MSGPACK.encode(position), _NOW) == position
