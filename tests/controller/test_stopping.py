"""A server that stops takes with it what it had begun."""

import gc

from tests.controller.in_process import Clock, done, serving


async def test_a_server_that_stops_while_the_engine_is_compiled_leaves_no_process_behind(sqlite_url):
    clock = Clock()
    async with serving(sqlite_url, clock) as (app, mike):
        await done(mike.post("/v1/events", json={"ts": clock(), "loc": [10.5, 50.5]}))
        chores = app.state.node._chores
    assert not chores
    gc.collect()  # of an abandoned one this would make a warning, and that an error
