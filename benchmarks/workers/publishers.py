"""The same vans without agents: each fix is one request to POST /v1/events.

A few connections that are kept carry them, as a gateway's would. A thousand devices with connections of their own
would cost the server more, so this is the better case of server-side matching.
"""

import asyncio

import msgspec

from benchmarks.support.keep_alive import KeepAlive
from benchmarks.support.town import Fix, fixes_of
from benchmarks.workers.talk import Job, answer, next_line, until, work

__all__ = ["PublishersDone"]

_CONNECTIONS = 16


class PublishersDone(msgspec.Struct, frozen=True):
    fixes: int
    requests: int
    body_bytes: int
    bytes_sent: int  # with HTTP's heads
    bytes_received: int


async def run(job: Job) -> None:
    fixes = fixes_of(job.timetable, job.vans)
    answer("ready")
    start_ms = await next_line(int)
    connections = [KeepAlive(job.url, job.key) for _ in range(_CONNECTIONS)]
    # A van stays with its connection: its fixes must not overtake each other.
    sent = await asyncio.gather(
        *(
            _publish(job, connection, [fix for fix in fixes if fix.van % _CONNECTIONS == number], start_ms)
            for number, connection in enumerate(connections)
        )
    )
    answer(
        PublishersDone(
            fixes=len(fixes),
            requests=len(fixes),
            body_bytes=sum(sent),
            bytes_sent=sum(connection.bytes_sent for connection in connections),
            bytes_received=sum(connection.bytes_received for connection in connections),
        )
    )
    await next_line(str)


async def _publish(job: Job, connection: KeepAlive, fixes: list[Fix], start_ms: int) -> int:
    """Send each when it is due, or as soon as the one before it is answered; gives the bytes of the bodies."""
    size = 0
    for fix in fixes:
        body = msgspec.json.encode({"oid": job.oid(fix.van), "ts": start_ms + fix.due_ms, "loc": fix.point})
        await until(start_ms + fix.due_ms)
        status, said = await connection.post("/v1/events", body)
        if status != 202:
            raise RuntimeError(f"An event was refused ({status}): {said.decode()}")
        size += len(body)
    connection.close()
    return size


if __name__ == "__main__":
    work(run)
