"""Sessions that end while something is under way: without a trace in the log, and never half alive."""

import gc
from unittest.mock import patch

import pytest

from agent_sdk.protocol.codec import JSON
from agent_sdk.protocol.messages import Bye, Report, ReportItem
from matcher.once import Mode
from server.bus.bus import notifications_of
from server.store.engine import open_engine
from tests.controller.in_process import Clock, connected, done, reconnected, serving, subscribe


@pytest.fixture
def clock():
    return Clock()


def an_enter(agent):
    plan = agent.plan
    return Report((ReportItem(1, plan.generation, plan.items[0].handle, 1, Mode.ENTER, 1_700_000_000_000),))


async def test_an_agent_revoked_while_its_report_is_being_taken_just_ends(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as agent:
        await agent.say(an_enter(agent))
        app.state.controller.agents_ended({agent.number})
        bye = await agent.hear()
        assert (type(bye), bye.code) == (Bye, "agent_revoked")
        assert await agent.hear() == 4401
        await agent.session  # raises what went wrong in it


async def test_a_plan_for_an_agent_that_has_just_vanished_leaves_no_trace_in_the_log(sqlite_url, clock, caplog):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as agent:
        agent.socket.vanished = True
        await subscribe(mike, "again")
        await subscribe(mike, "and again")
        await agent.say(an_enter(agent))
        await agent.session
    gc.collect()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_an_agent_comes_back_although_the_socket_it_left_behind_takes_no_more_bytes(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as before:
        before.socket.takes_bytes.clear()
        async with reconnected(app, before.number, clock) as agent:
            assert agent.plan.items
        before.socket.takes_bytes.set()
        bye = await before.hear()
        assert (type(bye), bye.code) == (Bye, "session_replaced")


async def test_strangers_are_not_told_where_the_store_is_that_does_not_answer(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike):
        nowhere = open_engine("sqlite:////no/such/folder/fencepost.db")
        with patch.object(app.state.node, "engine", nowhere):
            for path in ("/readyz", "/v1/zones", "/v1/notifications"):
                answer = await mike.get(path)
                assert (answer.status_code, answer.json()["code"]) == (503, "database_unreachable")
                assert "folder" not in answer.text
        nowhere.dispose()


async def test_many_large_notifications_come_in_frames_that_a_device_takes(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike):
        every = {"selector": "('mike/van') within (mike.HOME)", "tos": "every"}
        await done(mike.put("/v1/subscriptions/every", json=every))
        event = {"oid": "mike/van", "loc": [10.5, 50.5], "text": "x" * 15_000}
        await done(mike.post("/v1/events", json=[{**event, "ts": 1_700_000_000_000 + n} for n in range(200)]))
        async with connected(app, mike, clock, after=0) as agent:
            offsets = []
            while len(offsets) < 200:
                frame = await agent.hear()
                assert len(JSON.encode(frame)) < 2 * 1024 * 1024
                offsets += [each["offset"] for each in frame.notifications]
        assert offsets == list(range(1, 201))


async def test_notifications_that_cant_be_read_end_the_session_so_that_they_are_asked_for_again(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock, after=0) as agent:
        node = app.state.node
        nowhere = open_engine("sqlite:////no/such/folder/fencepost.db")
        with patch.object(node, "engine", nowhere):
            node.bus.publish(notifications_of(node.world.object("mike").owner_id))
            bye = await agent.hear()
            assert (type(bye), bye.code) == (Bye, "database_unreachable")
            assert "folder" not in bye.sentence + bye.hint
            assert await agent.hear() == 1013
        nowhere.dispose()
