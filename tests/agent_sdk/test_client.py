"""The agent over a real WebSocket, against a plain server."""

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from agent_sdk import Agent, AgentReplaced, AgentRevoked, CallbackSource, TraceSource, enrol
from agent_sdk.errors import (
    AgentError,
    CredentialInvalid,
    EnrolmentFailed,
    ServerUnreachable,
    StateFileInUse,
    TraceInvalid,
    UrlInvalid,
)
from agent_sdk.protocol.codec import by_subprotocol
from agent_sdk.sources.base import Source
from matcher.evaluation import Rule, fold
from matcher.events import Event
from matcher.once import Service, Tos
from tests.support.places import Covering

from .plain_server import PlainServer, item
from .test_session import covers

CREDENTIAL = "fpa_7_0123456789abcdef"
ROOT = Path(__file__).parents[2]
ITEMS = {
    "dwell": item("dwell", "west", Service(dwell_s=0.15)),
    "every": item("every", "east", Service(tos=Tos.EVERY)),
    "once": item("once", "west"),
}


class Host:
    """Puts a plain server on a port and does what a test wants to connections."""

    def __init__(self, server):
        self.server = server
        self.connections = 0
        self.sockets = set()
        self.unauthorized = None  # the body of a 401
        self.close_with = []  # close codes for the next connections
        self.cut_after = lambda: None  # frames until the connection is cut
        self.traffic = []
        self.authorizations = []

    def check(self, socket, request):
        self.authorizations.append(request.headers["Authorization"])
        if self.unauthorized is None:
            return None
        response = socket.respond(401, self.unauthorized)
        if callable(self.unauthorized_once):
            self.unauthorized_once()
        return response

    unauthorized_once = None

    @property
    def now(self):
        return time.time_ns() // 1_000_000

    async def talk(self, socket):
        self.connections += 1
        self.sockets.add(socket)
        if self.close_with:
            await socket.close(self.close_with.pop(0))
            return
        self.server.connect(by_subprotocol(socket.subprotocol), self.now)
        session = self.server.session
        self.traffic.append(session.counts)
        left = self.cut_after()
        try:
            async for frame in socket:
                if left == 0:
                    socket.transport.abort()
                    return
                left = None if left is None else left - 1
                for answer in self.server.receive(frame, self.now):
                    await socket.send(answer)
                if self.server.close_code is not None:
                    await socket.close(self.server.close_code)
        except ConnectionClosed:
            pass
        finally:
            self.sockets.discard(socket)


@asynccontextmanager
async def hosted(server):
    host = Host(server)
    protocols = ["fencepost.v1.json", "fencepost.v1.msgpack"]
    async with serve(host.talk, "127.0.0.1", 0, subprotocols=protocols, process_request=host.check) as running:
        host.url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
        yield host


def agent(host, source=None, **options):
    return Agent(host.url, CREDENTIAL, source, **{"state": None, "rng": lambda: 0.0} | options)


def trace(count=300, seed=3):
    rng, lon = random.Random(seed), 0.0
    for ts in range(100, 100 * count, 100):
        lon = min(25.0, max(-10.0, lon + rng.uniform(-4, 4)))
        yield Event(ts=ts, loc=(lon, 0.0))


def expected(events):
    rules = [Rule(i.handle, i.condition, i.service) for _, i in sorted(ITEMS.items())]
    states, last, edges = {}, None, []
    for event in events:
        folded = fold(rules, states, last, event, Covering(covers))
        states |= folded.states
        last = event
        edges += [(h.key, h.edge.n, h.edge.mode.value, h.edge.ts, h.event.loc[0]) for h in folded.edges]
    return edges


@pytest.mark.parametrize("subprotocol", ["fencepost.v1.json", "fencepost.v1.msgpack"])
def test_a_trace_becomes_edges_at_the_server_and_both_ends_count_the_same(subprotocol):
    async def run():
        async with hosted(PlainServer(dict(ITEMS), max_reports=20)) as host:
            async with agent(host, TraceSource(list(trace())), subprotocol=subprotocol) as device:
                await device.run()
                counts = device.counts
            return host, counts

    host, counts = asyncio.run(run())
    assert host.server.recorded == expected(trace())
    assert (counts.fixes, counts.edges, counts.waiting, counts.connections) == (299, len(host.server.recorded), 0, 1)
    assert counts.traffic.sent == host.traffic[0].received
    assert counts.traffic.received == host.traffic[0].sent
    assert set(counts.traffic.sent) == {"hello", "report"}
    assert host.authorizations == [f"Bearer {CREDENTIAL}"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_connections_that_are_cut_lose_and_double_nothing(tmp_path, seed):
    async def run():
        rng = random.Random(seed)
        async with hosted(PlainServer(dict(ITEMS), max_reports=2)) as host:
            host.cut_after = lambda: rng.randint(0, 6)
            events = list(trace(200, seed))
            async with agent(host, TraceSource(events[:90]), state=tmp_path / "a.db") as device:
                await device.run()
            async with agent(host, TraceSource(events), state=tmp_path / "a.db") as device:
                await device.run()
                assert device.counts.late >= 1
            assert host.connections > 5
            return host.server.recorded, expected(events)

    told, truth = asyncio.run(run())
    assert told == truth


def test_nothing_is_sent_while_nothing_happens():
    async def run():
        outside = TraceSource([Event(ts, (50.0, 0.0)) for ts in range(1, 500)])
        async with hosted(PlainServer({"once": item("once")})) as host, agent(host, outside) as device:
            await device.run()
            return device.counts

    counts = asyncio.run(run())
    assert counts.fixes == 499
    assert set(counts.traffic.sent) == {"hello"}


def test_pushed_fixes_are_evaluated_and_drained():
    async def run():
        async with hosted(PlainServer({"once": item("once")})) as host:
            source = CallbackSource()
            async with agent(host, source) as device:
                source.push(5, 0, ts=1000, speed=3)  # before there is a plan: it waits
                await device.drained()
                assert host.server.recorded == [("once", 1, "enter", 1000, 5.0)]
                source.push(50, 0, ts=2000)
                await device.drained()
            return host.server.recorded

    assert asyncio.run(run())[1:] == [("once", 2, "leave", 2000, 50.0)]


def test_a_dwell_ends_without_another_fix():
    async def run():
        async with hosted(PlainServer({"once": item("once", service=Service(dwell_s=0.05))})) as host:
            source = CallbackSource()
            source.lag_s = 0.0
            async with agent(host, source) as device:
                source.push(5, 0)
                while not host.server.recorded:
                    await device._progress.wait()
                return host.server.recorded

    ((handle, n, mode, _, lon),) = asyncio.run(run())
    assert (handle, n, mode, lon) == ("once", 1, "enter", 5.0)


def test_an_agent_that_is_left_hangs_up_in_order():
    # Cancelled twice, it left its connection open until the garbage collector came by.
    async def run():
        async with hosted(PlainServer({"once": item("once")})) as host:
            async with agent(host, CallbackSource()) as device:
                await device.until_planned()
                socket = device._socket
            return socket.close_code, socket.transport.is_closing()

    assert asyncio.run(run()) == (1000, True)


def test_an_agent_whose_goodbye_is_interrupted_still_closes_its_connection():
    async def run():
        async with hosted(PlainServer({"once": item("once")})) as host:
            async with agent(host, CallbackSource()) as device:
                await device.until_planned()
                socket = device._socket
                (link,) = [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_link"]
                link.cancel()
                while not link.done():
                    await asyncio.sleep(0)
                    link.cancel()
            return socket.transport.is_closing()

    assert asyncio.run(run())


class Careless(Source):
    """A source of somebody else's that checks nothing."""

    is_patient = True

    async def __aiter__(self):
        yield Event(1, (float("nan"), 0.0))
        yield Event(2, (5.0, 0.0), pairs={"mode": "x"})
        yield Event(3, (5.0, 0.0), oid="somebody")


def test_a_careless_source_can_not_poison_the_outbox():
    async def run():
        async with hosted(PlainServer({"once": item("once")})) as host, agent(host, Careless()) as device:
            await device.run()
            return host.server.recorded, device.counts

    recorded, counts = asyncio.run(run())
    assert recorded == [("once", 1, "enter", 3, 5.0)]
    assert (counts.fixes, counts.invalid) == (3, 2)


@pytest.mark.parametrize("how", ["handshake", "close"])
def test_a_revoked_agent_stops_for_good(how):
    async def run():
        async with hosted(PlainServer({})) as host:
            if how == "handshake":
                host.unauthorized = json.dumps({"type": "about:blank", "status": 401, "code": "unauthorized"})
            else:
                host.close_with = [4401]
            async with agent(host, CallbackSource()) as device:
                await device.run()

    with pytest.raises(AgentRevoked):
        asyncio.run(run())


def test_everybody_who_waits_hears_why_the_agent_has_ended():
    """The second to look was told that the agent had been stopped."""

    async def run():
        async with hosted(PlainServer({})) as host:
            host.close_with = [4401]
            async with agent(host, CallbackSource()) as device:
                return await asyncio.gather(device.run(), device.drained(), device.run(), return_exceptions=True)

    first, _, last = asyncio.run(run())
    assert isinstance(first, AgentRevoked)
    assert isinstance(last, AgentRevoked)


def test_an_error_that_nobody_waited_for_is_raised_at_the_end():
    async def run():
        async with hosted(PlainServer({})) as host:
            host.close_with = [4401]
            async with agent(host) as device:
                while not device._main.done():
                    await device._progress.wait()

    with pytest.raises(AgentRevoked):
        asyncio.run(run())


def test_a_401_of_somebody_on_the_way_ends_nothing():
    async def run():
        async with hosted(PlainServer({"once": item("once")})) as host:
            host.unauthorized = "<html>Please log in to the hotel's network</html>"
            host.unauthorized_once = lambda: setattr(host, "unauthorized", None)
            async with agent(host, TraceSource([Event(1, (5.0, 0.0))])) as device:
                await device.run()
            return host.server.recorded

    assert asyncio.run(run()) == [("once", 1, "enter", 1, 5.0)]


def test_being_replaced_once_is_survived_and_again_and_again_is_not():
    async def run(codes):
        async with hosted(PlainServer({"once": item("once")})) as host:
            host.close_with = list(codes)
            source = TraceSource([Event(1, (5.0, 0.0))])
            async with agent(host, source, backoff_cap_s=0.0) as device:
                await device.run()
            return host.server.recorded

    assert asyncio.run(run([4409, 4409])) == [("once", 1, "enter", 1, 5.0)]
    with pytest.raises(AgentReplaced):
        asyncio.run(run([4409, 4409, 4409]))


def test_after_a_gap_the_agent_begins_a_new_generation(tmp_path):
    async def run():
        async with hosted(PlainServer({"once": item("once")})) as host:
            async with agent(
                host, TraceSource([Event(1, (5.0, 0.0)), Event(2, (50.0, 0.0))]), state=tmp_path / "a"
            ) as one:
                await one.run()
                before = one._device.generation
            host.server.states.clear()  # a server restored from an old backup
            host.server.recorded.clear()
            async with agent(host, TraceSource([Event(3, (5.0, 0.0))]), state=tmp_path / "a") as two:
                await two.drained()
                await two.until_planned()
                generation = two._device.generation
            async with agent(host, TraceSource([Event(4, (6.0, 0.0))]), state=tmp_path / "a") as three:
                await three.run()
            return generation - before, host.server.recorded

    newer, recorded = asyncio.run(run())
    assert newer == 1
    assert recorded == [("once", 1, "enter", 4, 6.0)]


def test_notifications_come_in_order_and_the_cursor_is_kept(tmp_path):
    async def read(host, count):
        async with agent(host, notifications=True, state=tmp_path / "a.db") as device:
            got = []
            async for notification in device.notifications():
                got.append(notification["offset"])
                if len(got) == count:
                    break
            return got

    async def run():
        server = PlainServer({}, notifications=[{"offset": n, "mode": "enter"} for n in range(1, 6)])
        server.notifications[3] = {"offset": 4, "withdrawn": True}
        async with hosted(server) as host:
            return await read(host, 2), await read(host, 3)

    first, second = asyncio.run(run())
    assert first == [1, 2]
    assert second == [2, 3, 5]  # 2 was taken but not handled: at least once


def test_more_notifications_than_fit_are_fetched_when_there_is_room(monkeypatch):
    monkeypatch.setattr("agent_sdk.client._NOTIFICATIONS_MAX", 3)

    async def run():
        server = PlainServer({}, notifications=[{"offset": n} for n in range(1, 11)])
        async with hosted(server) as host, agent(host, notifications=True) as device:
            got = []
            async for notification in device.notifications():
                got.append(notification["offset"])
                if len(got) == 10:
                    break
            return got, host.connections

    got, connections = asyncio.run(run())
    assert got == list(range(1, 11))
    assert connections > 1


def test_notifications_must_be_asked_for():
    async def run():
        async with hosted(PlainServer({})) as host, agent(host) as device:
            async for _ in device.notifications():
                pass

    with pytest.raises(AgentError, match="did not ask for notifications"):
        asyncio.run(run())


def test_a_source_that_fails_fails_the_agent(tmp_path):
    async def run():
        missing = TraceSource(tmp_path / "missing.csv")
        async with hosted(PlainServer({"once": item("once")})) as host, agent(host, missing) as device:
            await device.run()

    with pytest.raises(TraceInvalid):
        asyncio.run(run())


def test_two_agents_do_not_share_a_state_file(tmp_path):
    async def run():
        path = tmp_path / "a"
        async with hosted(PlainServer({})) as host, agent(host, state=path), agent(host, state=path):
            pass

    with pytest.raises(StateFileInUse):
        asyncio.run(run())


def test_bad_urls_credentials_and_subprotocols_are_said_at_once():
    for bad in ("fencepost.example", "http://", "http://[::1", "http://x:port", f"http://{'x' * 70}.example"):
        with pytest.raises(UrlInvalid):
            Agent(bad, CREDENTIAL)
    for bad in ("", "fpk_1_x", "fpa_7", "fpa__x", "fpa_7_ü"):
        with pytest.raises(CredentialInvalid):
            Agent("http://localhost", bad)
    with pytest.raises(AgentError):
        Agent("http://localhost", CREDENTIAL, subprotocol="fencepost.v1.xml")


def test_neither_credential_nor_positions_reach_the_log(caplog):
    caplog.set_level("DEBUG")

    async def run():
        source, codec = TraceSource([Event(1, (5.125, 0.0))]), "fencepost.v1.json"
        async with (
            hosted(PlainServer({"once": item("once")})) as host,
            agent(host, source, subprotocol=codec) as device,
        ):
            await device.run()

    asyncio.run(run())
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("fencepost"))
    assert CREDENTIAL not in ours
    assert "5.125" not in ours


def test_an_agent_that_was_not_started_says_so():
    device = Agent("http://localhost", CREDENTIAL)
    with pytest.raises(AgentError, match="not been started"):
        _ = device.counts


# --- enrolment -------------------------------------------------------------------------------------


@pytest.fixture
def enrolment():
    """A server that answers each POST with what the test put there, and keeps what it got."""

    class Handler(BaseHTTPRequestHandler):
        answer = (201, {"agent": 7, "oid": "mike"})
        got: list = []  # noqa: RUF012 - one test, one class

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.got.append((self.path, json.loads(body)))
            status, answer = self.answer
            self.send_response(status)
            if status == 307:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    Handler.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_enrolling_gives_a_credential_whose_secret_stayed_here(enrolment):
    import hashlib

    credential = asyncio.run(enrol(enrolment.url + "/", "fpt_x"))
    prefix, number, secret = credential.split("_", 2)
    ((path, body),) = enrolment.got
    assert (prefix, number, path, body["token"]) == ("fpa", "7", "/v1/agents/enrol", "fpt_x")
    assert body["secret_sha256"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in json.dumps(body)
    assert len(secret) >= 40


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ((400, {"detail": "The enrolment token is wrong.", "code": "token_invalid"}), "The enrolment token is wrong."),
        ((500, b"<html>"), "HTTP 500"),
        ((307, {}), "HTTP 307"),
        ((201, b"not json"), "can't be read"),
        ((201, {"hello": 1}), "can't be read"),
        ((201, [1]), "can't be read"),
    ],
)
def test_a_refused_enrolment_says_why(enrolment, answer, what):
    enrolment.answer = answer
    enrolment.got = []
    with pytest.raises(EnrolmentFailed, match=what):
        asyncio.run(enrol(enrolment.url, "fpt_x"))
    assert len(enrolment.got) == 1


def test_a_server_that_is_not_there_is_said():
    with pytest.raises(ServerUnreachable):
        asyncio.run(enrol("http://127.0.0.1:9", "fpt_x", timeout_s=2))


# --- weight ----------------------------------------------------------------------------------------


def test_importing_the_sdk_brings_nothing_of_the_servers():
    code = (
        "import sys, agent_sdk\n"
        "light = sorted(m for m in sys.modules if m.partition('.')[0] in ('websockets', 'shapely', 'asyncio'))\n"
        "from agent_sdk import *\n"
        "heavy = {'lark', 'fastapi', 'sqlalchemy', 'pyspark', 'numba', 'numpy.testing', 'server', 'pydantic'}\n"
        "print(light, sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout == "[] []\n"


def test_a_trace_is_evaluated_by_the_plan_of_now_and_not_by_the_one_remembered(tmp_path):
    async def run():
        async with hosted(PlainServer({"west": item("west")})) as host:
            async with agent(host, TraceSource([Event(1, (20.0, 0.0))]), state=tmp_path / "a") as one:
                await one.run()
            host.server.items["east"] = item("east", "east")
            async with agent(host, TraceSource([Event(2, (12.0, 0.0))]), state=tmp_path / "a") as two:
                await two.run()
            return host.server.recorded

    assert asyncio.run(run()) == [("east", 1, "enter", 2, 12.0)]


def test_a_trace_does_not_wait_for_a_server_that_is_not_there(tmp_path):
    async def run():
        async with (
            hosted(PlainServer({"west": item("west")})) as host,
            agent(host, TraceSource([Event(1, (20.0, 0.0))]), state=tmp_path / "a") as one,
        ):
            await one.run()
        async with agent(host, TraceSource([Event(2, (5.0, 0.0))]), state=tmp_path / "a") as two:
            await two._until(lambda: two.counts.edges > 0)
            return two.counts.waiting

    assert asyncio.run(run()) == 1
