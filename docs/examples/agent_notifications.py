"""The e-coupon on the phone: what is addressed to the device's own user comes back over the same connection.

    python agent_notifications.py URL TOKEN TRACE

The phone's user has a subscription of their own, for example `(mike) within (SYSTEM.Mall)`. The phone decides by
itself that it has entered, and shows a coupon when the server has recorded it. Runs until it is stopped; what has been
shown is remembered and not shown again. TOKEN and TRACE are as in agent_trace.py.
"""

import asyncio
import contextlib
import os
import sys
from typing import Any

from agent_sdk import Agent, TraceSource, enrol


def show(notification: dict[str, Any]) -> None:
    """A phone would put it on the screen."""
    if notification["mode"] == "enter":
        print(f"Welcome to {notification['target']}! Coupon {notification['id'][:8]}: 10 % off today.", flush=True)
    else:
        print(f"You were in {notification['target']} for {notification['duration_s']:.0f} s.", flush=True)


async def main(url: str, token: str, trace: str) -> None:
    credential = token
    if token.startswith("fpt_"):
        credential = await enrol(url, token)
        print(f"Enrolled. Keep this for the next run: {credential}", file=sys.stderr)
    async with Agent(url, credential, TraceSource(trace), notifications=True) as agent:
        async for notification in agent.notifications():
            show(notification)  # it counts as handled when the next one is asked for


if __name__ == "__main__":
    names = ("FENCEPOST_URL", "FENCEPOST_TOKEN", "FENCEPOST_TRACE")
    given = sys.argv[1:] or [os.environ[name] for name in names]
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*given))
