"""The agent protocol as docs/protocol.md describes it, frame by frame, by a client that imports nothing of ours.

Everything here is a bare WebSocket and plain JSON (once MessagePack), as a stranger would write it in any language.
The page's own example session is played as it is written there.
"""

import json
import re
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

JSON, MSGPACK = "fencepost.v1.json", "fencepost.v1.msgpack"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


class Device:
    """Frames in and out; it knows no rule."""

    def __init__(self, socket, binary=False):
        self.socket = socket
        self.encode = msgspec.msgpack.encode if binary else lambda value: json.dumps(value)
        self.decode = msgspec.msgpack.decode if binary else json.loads

    def send(self, **message):
        self.socket.send(self.encode(message))

    def receive(self, kind):
        message = self.decode(self.socket.recv(timeout=10))
        assert message["t"] == kind, message
        return message

    def hello(self, generation=0, capabilities=("within",), **more):
        now = time.time_ns() // 1_000_000
        self.send(t="hello", protocol=1, now=now, generation=generation, capabilities=capabilities, **more)
        return self.receive("welcome")

    def closed(self):
        """Read to the end: the frames before it and the close code."""
        frames = []
        try:
            while True:
                frames.append(self.decode(self.socket.recv(timeout=10)))
        except ConnectionClosed as ended:
            return frames, ended.rcvd.code


@contextmanager
def connected(server, credential, subprotocol=JSON):
    headers = {"Authorization": f"Bearer {credential}"}
    with connect(
        f"{server.socket_url}/v1/agent",
        subprotocols=[subprotocol],
        additional_headers=headers,
        compression=None,
        proxy=None,
    ) as socket:
        assert socket.subprotocol == subprotocol
        yield Device(socket, binary=subprotocol == MSGPACK)


@pytest.fixture
def mike(live_server):
    """A user with a zone, who wants to be told about himself."""
    mike = live_server.user("mike")
    mike.square(f"{mike.name}.HOME", 10, 50)
    mike.subscribe("home", f"({mike.name}) within ({mike.name}.HOME)")
    return mike


def an_enter(seq, generation, handle, n=1, mode="enter", ts=1_700_000_000_000, **more):
    return {"seq": seq, "generation": generation, "handle": handle, "n": n, "mode": mode, "ts": ts, **more}


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_hello_welcome_plan_report_ack_and_the_notification(live_server, mike, subprotocol):
    with connected(live_server, mike.enrol(), subprotocol) as device:
        welcome = device.hello()
        assert welcome["protocol"] == 1
        assert welcome["generation"] >= 1
        assert welcome["lease_s"] > 0
        assert (welcome["max_frame_bytes"], welcome["max_reports"]) == (262_144, 256)
        plan = device.receive("plan")
        assert (plan["generation"], plan["etag"], plan["full"]) == (welcome["generation"], welcome["etag"], True)
        (item,), (zone,) = plan["items"], plan["zones"]
        assert zone["shape"]["bbox"] == [10, 50, 11, 51]
        # A device learns no names, neither of zones nor of owners or subscriptions.
        assert mike.name not in json.dumps(plan)
        assert "home" not in json.dumps(plan).lower()

        report = an_enter(1, plan["generation"], item["handle"], loc=[10.5, 50.5], pairs={"speed": 3.5})
        device.send(t="report", reports=[report])
        assert device.receive("ack") == {"t": "ack", "seq": 1}
        left = an_enter(2, plan["generation"], item["handle"], 2, "leave", 1_700_000_060_000, loc=[9, 50])
        device.send(t="report", reports=[left])
        assert device.receive("ack") == {"t": "ack", "seq": 2}
    first, second = mike.told()
    assert (first["mode"], first["loc"], first["speed"]) == ("enter", [10.5, 50.5], 3.5)
    assert (first["oid"], first["target"], first["ts"]) == (mike.name, f"{mike.name}.HOME", "2023-11-14T22:13:20.000Z")
    assert (second["mode"], second["visit"], second["duration_s"]) == ("leave", first["id"], 60.0)


def test_an_agent_is_given_only_what_it_says_it_can_do(live_server, mike):
    mike.subscribe("every", f"({mike.name}) within ({mike.name}.HOME)", tos="every")
    with connected(live_server, mike.enrol()) as device:
        device.hello()
        assert len(device.receive("plan")["items"]) == 1
        (binding,) = mike.done("GET", "/v1/subscriptions/every/explain")["bindings"]
        assert (binding["evaluator"], binding["reason"]) == ("nobody", "agent_not_capable")
        (binding,) = mike.done("GET", "/v1/subscriptions/home/explain")["bindings"]
        assert (binding["evaluator"], binding["reason"]) == ("agent", "offloaded")
    with connected(live_server, mike.enrol()) as device:
        device.hello(capabilities=["within", "every"])
        assert len(device.receive("plan")["items"]) == 2


def test_after_a_reconnect_the_same_report_is_one_notification_and_an_unchanged_plan_is_not_sent(live_server, mike):
    credential = mike.enrol()
    with connected(live_server, credential) as device:
        device.hello()
        plan = device.receive("plan")
        report = an_enter(1, plan["generation"], plan["items"][0]["handle"], loc=[10.5, 50.5])
        device.send(t="report", reports=[report])
        device.receive("ack")  # and now the ack is lost on the device's side
    with connected(live_server, credential) as device:
        welcome = device.hello(plan["generation"], etag=plan["etag"])
        assert (welcome["generation"], welcome["etag"]) == (plan["generation"], plan["etag"])
        device.send(t="report", reports=[report])
        assert device.receive("ack") == {"t": "ack", "seq": 1}
        device.send(t="renew")
        assert device.receive("lease")["lease_s"] > 0
    assert [told["mode"] for told in mike.told()] == ["enter"]


def test_a_changed_subscription_comes_as_a_change_of_the_plan(live_server, mike):
    with connected(live_server, mike.enrol()) as device:
        welcome = device.hello()
        device.receive("plan")
        mike.square(f"{mike.name}.WORK", 20, 50)
        mike.subscribe("work", f"({mike.name}) within ({mike.name}.WORK)")
        change = device.receive("plan")
        assert (change["full"], change["generation"]) == (False, welcome["generation"])
        assert change["etag"] != welcome["etag"]
        assert (len(change["items"]), len(change["zones"])) == (1, 1)
        mike.done("DELETE", "/v1/subscriptions/work")
        change = device.receive("plan")
        assert (len(change["drop"]), len(change["drop_zones"])) == (1, 1)


def test_notify_brings_what_is_addressed_to_the_devices_own_user(live_server, mike):
    with connected(live_server, mike.enrol()) as device:
        device.hello(after=0)
        plan = device.receive("plan")
        report = an_enter(1, plan["generation"], plan["items"][0]["handle"], loc=[10.5, 50.5])
        device.send(t="report", reports=[report])
        frames = {}
        for _ in range(2):  # ack and notify come in either order
            frame = json.loads(device.socket.recv(timeout=10))
            frames[frame["t"]] = frame
    assert frames["ack"]["seq"] == 1
    assert frames["notify"]["notifications"] == mike.told()


def test_a_gap_is_a_bye_and_generation_0_begins_anew(live_server, mike):
    credential = mike.enrol()
    with connected(live_server, credential) as device:
        device.hello()
        plan = device.receive("plan")
        handle = plan["items"][0]["handle"]
        device.send(t="report", reports=[an_enter(1, plan["generation"], handle, n=2, mode="leave", loc=[9, 9])])
        (bye,), code = device.closed()
        assert (bye["t"], bye["code"], code) == ("bye", "report_gap", 4400)
        assert bye["sentence"]
        assert bye["hint"]
    assert mike.told() == []
    with connected(live_server, credential) as device:
        assert device.hello(0)["generation"] > plan["generation"]
        again = device.receive("plan")
        assert again["items"][0]["handle"] != handle


def test_a_report_of_an_older_generation_is_acknowledged_and_dropped(live_server, mike):
    credential = mike.enrol()
    with connected(live_server, credential) as device:
        device.hello()
        old = device.receive("plan")
    with connected(live_server, credential) as device:
        device.hello(0)
        device.receive("plan")
        device.send(t="report", reports=[an_enter(1, old["generation"], old["items"][0]["handle"], loc=[10.5, 50.5])])
        assert device.receive("ack") == {"t": "ack", "seq": 1}
    assert mike.told() == []


def test_a_report_refused_for_good_is_named_in_the_ack_and_its_n_is_consumed(live_server, mike):
    with connected(live_server, mike.enrol()) as device:
        device.hello()
        plan = device.receive("plan")
        generation, handle = plan["generation"], plan["items"][0]["handle"]
        in_2099 = an_enter(1, generation, handle, ts=4_070_908_800_000, loc=[10.5, 50.5])
        out_of_turn = an_enter(3, generation, handle, 2, "leave", loc=[10.5, 50.5])  # of an enter nobody was told
        unknown = an_enter(2, generation, "no-such-handle", loc=[10.5, 50.5])
        device.send(t="report", reports=[in_2099, unknown, out_of_turn])
        ack = device.receive("ack")
        assert ack["seq"] == 3
        assert [(each["seq"], each["code"]) for each in ack["refused"]] == [
            (1, "ts_ahead"),
            (2, "binding_ended"),
            (3, "edge_out_of_turn"),
        ]
        assert all(each["sentence"] for each in ack["refused"])
        device.send(t="report", reports=[an_enter(4, generation, handle, 3, "enter", loc=[9, 9])])
        assert device.receive("ack") == {"t": "ack", "seq": 4}
    assert [told["mode"] for told in mike.told()] == ["enter"]


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([{"t": "hello", "protocol": 1, "now": 1}], "hello_repeated"),
        ([{"t": "hello", "protocol": "one", "now": 1}], "frame_malformed"),
        ([{"t": "shout"}], "frame_malformed"),
        (['{"t":"' + "ö" * 200 + '"}'], "frame_malformed"),
        ([{"t": "report", "reports": []}], "protocol_violation"),
        ([{"t": "report", "reports": [an_enter(0, 1, "h")]}], "protocol_violation"),
        ([{"t": "report", "reports": [an_enter(seq, 1, "h") for seq in range(1, 258)]}], "too_many_reports"),
        (["not json"], "frame_malformed"),
        (['{"t":"report","reports":[{"seq":1,"generation":1,"handle":"h","n":1,"mode":"enter","ts":1,"loc":[NaN,1]}]}'],
         "frame_malformed"),
        (['{"t":"report","reports":' + "[" * 100_000], "frame_malformed"),
        ([b"\x81\xa1t\xa5renew"], "frame_malformed"),
    ],
    ids=["second hello", "wrong type", "unknown message", "long unknown message", "empty report",
         "seq not rising", "too many reports",
         "not JSON", "NaN", "deep", "binary frame"],
)  # fmt: skip
def test_a_frame_that_breaks_the_rules_is_a_bye_with_4400_and_changes_nothing(live_server, mike, frames, code):
    with connected(live_server, mike.enrol()) as device:
        device.hello()
        device.receive("plan")
        before = live_server.dump()
        for frame in frames:
            device.socket.send(json.dumps(frame) if isinstance(frame, dict) else frame)
        (bye,), close_code = device.closed()
    assert (bye["t"], bye["code"], close_code) == ("bye", code, 4400)
    assert bye["sentence"].endswith(".")
    assert bye["hint"]
    assert live_server.dump() == before


def test_without_hello_nothing_is_taken(live_server, mike):
    credential = mike.enrol()
    before = live_server.dump()
    with connected(live_server, credential) as device:
        device.send(t="renew")
        (bye,), code = device.closed()
    assert (bye["code"], code) == ("hello_expected", 4400)
    assert live_server.dump() == before


def test_an_oversized_frame_closes_with_1009_and_changes_nothing(live_server, mike):
    with connected(live_server, mike.enrol()) as device:
        limit = device.hello()["max_frame_bytes"]
        device.receive("plan")
        before = live_server.dump()
        device.socket.send("x" * (limit + 1))
        _, code = device.closed()
    assert code == 1009
    assert live_server.dump() == before


@pytest.mark.parametrize(
    "credential", ["", "nonsense", "fpa_1_wrongwrongwrongwrong", "fpa_999999_wrongwrongwrongwrong"]
)
def test_a_wrong_credential_is_http_401_with_a_problem(live_server, credential):
    before = live_server.dump()
    with pytest.raises(InvalidStatus) as refused, connected(live_server, credential):
        pass
    response = refused.value.response
    assert response.status_code == 401
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(response.body)
    assert (problem["status"], problem["code"]) == (401, "credential_refused")
    assert live_server.dump() == before


def test_a_subprotocol_that_is_not_spoken_is_http_400(live_server, mike):
    with pytest.raises(InvalidStatus) as refused, connected(live_server, mike.enrol(), "mqtt"):
        pass
    assert refused.value.response.status_code == 400


def test_the_first_subprotocol_that_is_spoken_is_taken(live_server, mike):
    credential = mike.enrol()
    for offered in (["mqtt", JSON, MSGPACK], [MSGPACK, JSON]):
        with connect(
            f"{live_server.socket_url}/v1/agent",
            subprotocols=offered,
            additional_headers={"Authorization": f"Bearer {credential}"},
            proxy=None,
        ) as socket:
            assert socket.subprotocol == next(name for name in offered if name != "mqtt")
            assert socket.response.headers.get("Sec-WebSocket-Extensions") is None  # no compression


@pytest.mark.parametrize(
    ("path", "body", "with_key", "refused"),
    [
        ("/v1/agents", {"oid": "mike", "colour": "red"}, True, (400, "body_invalid")),
        ("/v1/agents", {"oid": "mike"}, False, (401, "key_invalid")),
        ("/v1/agents", {"oid": "somebody"}, True, (404, "object_not_found")),
        ("/v1/agents/enrol", {"token": "fpt_x"}, False, (400, "body_invalid")),
        ("/v1/agents/enrol", {"token": "fpt_x", "secret_sha256": "A" * 64}, False, (400, "option_invalid")),
        ("/v1/agents/enrol", {"token": "fpt_x", "secret_sha256": "a" * 64}, False, (401, "token_invalid")),
    ],
)
def test_enrolling_is_refused_as_the_page_says(live_server, mike, path, body, with_key, refused):
    before = live_server.dump()
    answer = mike.http.post(path, json=body, headers=mike.headers if with_key else {})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == refused
    assert problem.keys() == {"type", "title", "status", "detail", "code", "hint"}
    assert f"| {refused[0]} | `{refused[1]}` |" in PAGE.read_text(encoding="utf-8").split("\n## 2. ")[0]
    assert live_server.dump() == before


def test_a_token_works_once(live_server, mike):
    token = mike.done("POST", "/v1/agents", {"oid": mike.name})["token"]
    body = {"token": token, "secret_sha256": "a" * 64}
    assert mike.http.post("/v1/agents/enrol", json=body).status_code == 201
    assert mike.http.post("/v1/agents/enrol", json=body).status_code == 401


def test_a_second_connection_replaces_the_first_with_4409(live_server, mike):
    credential = mike.enrol()
    with connected(live_server, credential) as first:
        first.hello()
        first.receive("plan")
        with connected(live_server, credential) as second:
            (bye,), code = first.closed()
            assert (bye["code"], code) == ("session_replaced", 4409)
            second.hello()
            second.receive("plan")


def test_a_revoked_agent_is_closed_with_4401_and_stays_out(live_server, mike):
    credential = mike.enrol()
    with connected(live_server, credential) as device:
        device.hello()
        device.receive("plan")
        (agent,) = mike.done("GET", "/v1/agents")["items"]
        mike.done("DELETE", f"/v1/agents/{agent['id']}")
        (bye,), code = device.closed()
        assert (bye["code"], code) == ("agent_revoked", 4401)
    with pytest.raises(InvalidStatus) as refused, connected(live_server, credential):
        pass
    assert refused.value.response.status_code == 401


def test_enrolling_another_device_ends_the_first_with_4401(live_server, mike):
    with connected(live_server, mike.enrol()) as first:
        first.hello()
        first.receive("plan")
        with connected(live_server, mike.enrol()) as second:
            (bye,), code = first.closed()
            assert (bye["code"], code) == ("agent_revoked", 4401)
            second.hello()


# --- the page's example, literally -------------------------------------------------------------------

OPAQUE = {"agent", "token", "generation", "etag", "handle", "zone", "zones", "drop", "drop_zones", "id", "visit"}
OF_THE_MOMENT = {"now", "expires"}


class Script:
    """The example's steps, and what its made-up values turned out to be."""

    def __init__(self, page):
        section = page.split("\n## 15. ")[1].split("\n## ")[0]
        self.steps = re.findall(
            r"^```(http request|http answer|json agent|json server|text)\n(.*?)^```", section, re.M | re.S
        )
        self._real = {}

    def fit(self, written, real, key=""):
        """Check that what came is what is written, and learn the values that only the server could know."""
        if isinstance(written, dict):
            assert isinstance(real, dict)
            assert written.keys() == real.keys(), (written, real)
            for name, value in written.items():
                self.fit(value, real[name], name)
        elif isinstance(written, list):
            assert len(written) == len(real), (written, real)
            for one, other in zip(written, real, strict=True):
                self.fit(one, other, key)
        elif key in OPAQUE:
            assert type(written) is type(real)
            assert self._real.setdefault((type(written), written), real) == real, (key, written, real)
        elif key == "lease_s":
            assert 0 < real <= 86_400
            assert real > written - 600
        elif key not in OF_THE_MOMENT:
            assert written == real, (key, written, real)

    def real(self, written, key=""):
        """What is written, with the values that the server chose."""
        if isinstance(written, dict):
            return {name: self.real(value, name) for name, value in written.items()}
        if isinstance(written, list):
            return [self.real(each, key) for each in written]
        return self._real.get((type(written), written), written) if key in OPAQUE else written

    def in_text(self, text):
        """An address or a credential, with the real number of the agent."""
        return re.sub(r"(agents/|fpa_)(\d+)", lambda found: found[1] + str(self.real(int(found[2]), "agent")), text)


class Played:
    """A connection of the example; frames that come in either order are taken in either order."""

    def __init__(self, server, credential, subprotocol):
        self._context = connected(server, credential, subprotocol)
        self.device = self._context.__enter__()
        self._early = {}

    def receive(self, kind):
        while kind not in self._early:
            frame = self.device.decode(self.device.socket.recv(timeout=10))
            assert frame["t"] not in self._early, frame
            self._early[frame["t"]] = frame
        return self._early.pop(kind)

    def nothing_more_than(self, close_code, reason):
        assert not self._early
        with pytest.raises(ConnectionClosed) as ended:
            self.device.socket.recv(timeout=10)
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (close_code, reason)

    def hang_up(self):
        assert not self._early
        self._context.__exit__(None, None, None)


@pytest.mark.parametrize("subprotocol", [JSON, MSGPACK])
def test_the_session_of_the_page_goes_as_it_is_written(live_server, subprotocol):
    mike = live_server.user("mike")
    script = Script(re.sub(r"\bmike\b", mike.name, PAGE.read_text(encoding="utf-8")))
    assert len(script.steps) > 40
    link = answer = None
    for kind, text in script.steps:
        if kind == "http request":
            first, _, body = text.partition("\n\n")
            method, path = first.split()
            sent = script.real(json.loads(body)) if body.strip() else None
            headers = {} if path == "/v1/agents/enrol" else mike.headers
            answer = mike.http.request(method, script.in_text(path), json=sent, headers=headers)
            assert answer.is_success, (text, answer.text)
        elif kind == "http answer":
            status, _, body = text.partition("\n\n")
            assert answer.status_code == int(status)
            script.fit(json.loads(body), answer.json())
        elif kind == "json agent":
            link.device.send(**script.real(json.loads(text)))
        elif kind == "json server":
            written = json.loads(text)
            script.fit(written, link.receive(written["t"]))
        else:
            word, *rest = text.split()
            if word == "open":
                link = Played(live_server, script.in_text(rest[-1]), subprotocol)
            elif word == "lost":
                link.hang_up()
            else:
                assert word == "closed"
                link.nothing_more_than(int(rest[0]), rest[1])
                link.hang_up()
    assert [told["offset"] for told in mike.told()] == [1, 2, 3]
