"""A recorded trip, replayed: the agent evaluates it as fast as it can and sends only the edges.

    python agent_trace.py URL TOKEN TRACE

TOKEN is what POST /v1/agents gave, or the credential that an earlier run has printed. TRACE is a CSV file with the
columns ts, lon, lat (any others become pairs), or a file with one JSON event per line. FENCEPOST_URL, FENCEPOST_TOKEN
and FENCEPOST_TRACE do as well.
"""

import asyncio
import os
import sys

from agent_sdk import Agent, TraceSource, enrol


async def main(url: str, token: str, trace: str) -> None:
    credential = token
    if token.startswith("fpt_"):
        credential = await enrol(url, token)
        print(f"Enrolled. Keep this for the next run: {credential}", file=sys.stderr)
    # speed=1.0 would replay the trip at its own pace.
    async with Agent(url, credential, TraceSource(trace, speed=None)) as agent:
        await agent.run()
        counts, refused = agent.counts, agent.dead()
    print(f"{counts.fixes} fixes, {counts.late} late, {counts.edges} edges, {len(refused)} refused")


if __name__ == "__main__":
    names = ("FENCEPOST_URL", "FENCEPOST_TOKEN", "FENCEPOST_TRACE")
    given = sys.argv[1:] or [os.environ[name] for name in names]
    asyncio.run(main(*given))
