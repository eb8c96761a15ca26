"""A lease is counted alike at both ends: what nobody asked for does not lengthen it."""

import pytest

from agent_sdk.protocol.messages import Bye, Renew
from tests.controller.in_process import LEASE_S, Clock, connected, done, serving, subscribe


@pytest.fixture
def clock():
    return Clock()


async def test_a_changed_plan_carries_what_is_left_of_the_lease(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as agent:
        clock.pass_s(600)
        await subscribe(mike, "again")
        change = await agent.hear()
        assert (change.full, change.lease_s) == (False, LEASE_S - 600)


async def test_an_agent_whose_place_was_taken_is_sent_no_plan_until_it_says_hello(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as agent:
        clock.pass_s(LEASE_S + 1)
        fix = {"ts": clock(), "loc": [10.5, 50.5]}
        await done(mike.post("/v1/events", json=fix))  # the server evaluates from here on
        await subscribe(mike, "again")
        await agent.say(Renew())
        bye = await agent.hear()
        assert isinstance(bye, Bye)
        assert bye.code == "protocol_violation"
        assert await agent.hear() == 4400
