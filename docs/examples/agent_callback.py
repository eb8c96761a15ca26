"""Fixes from a callback: a phone's GPS calls `push` from a thread of its own, the agent decides what they mean.

    python agent_callback.py URL TOKEN

TOKEN is what POST /v1/agents gave, or the credential that an earlier run has printed. FENCEPOST_URL and
FENCEPOST_TOKEN do as well.
"""

import asyncio
import os
import sys
import threading
import time

from agent_sdk import Agent, CallbackSource, enrol

STEPS, WEST, EAST, LAT = 40, 116.360, 116.380, 39.907


def walk_through_xidan(source: CallbackSource) -> None:
    """Stands for the platform's GPS. Speed and battery can be used in conditions, and notifications carry them."""
    began = time.time_ns() // 1_000_000 - STEPS * 1000
    for step in range(STEPS):
        lon = WEST + (EAST - WEST) * step / (STEPS - 1)
        source.push(lon, LAT, ts=began + step * 1000, unc=5.0, speed=1.4, battery=90 - step // 10)
    source.close()  # a real GPS never says that: the agent then runs until it is stopped


async def main(url: str, token: str) -> None:
    credential = token
    if token.startswith("fpt_"):
        credential = await enrol(url, token)
        print(f"Enrolled. Keep this for the next run: {credential}", file=sys.stderr)
    source = CallbackSource()
    async with Agent(url, credential, source) as agent:
        threading.Thread(target=walk_through_xidan, args=(source,)).start()
        await agent.run()
        counts = agent.counts
    print(f"{counts.fixes} fixes, {counts.edges} edges, {counts.traffic.messages_sent} messages sent")


if __name__ == "__main__":
    given = sys.argv[1:] or [os.environ["FENCEPOST_URL"], os.environ["FENCEPOST_TOKEN"]]
    asyncio.run(main(*given))
