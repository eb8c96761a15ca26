"""A device that is fed the same trace each time it is started, and says on stdout after each fix that it lives.

Run as `python -m tests.agent_sdk.device_under_kill STATE RECORD`: RECORD is the server, which writes a report down,
with a sync, before it acknowledges.
"""

import os
import random
import sys

from agent_sdk.device import Device
from agent_sdk.outbox import DeviceStore
from agent_sdk.protocol.messages import Ack
from matcher.events import Event
from matcher.once import Mode, Service, Tos

from .plain_server import PlainServer, full, item

NOW = 1_900_000_000_000
ITEMS = {
    "dwell": item("dwell", "west", Service(dwell_s=0.15)),
    "every": item("every", "east", Service(tos=Tos.EVERY)),
    "leaves": item("leaves", "west", Service(modes=(Mode.LEAVE,))),
    "once": item("once", "west"),
}


def trace():
    rng = random.Random(11)
    lon = 0.0
    for ts in range(100, 60_100, 100):
        lon = min(25.0, max(-10.0, lon + rng.uniform(-3, 3)))
        yield Event(ts=ts, loc=(lon, 0.0))


def main(state, record):
    device = Device(DeviceStore(state))
    if device.generation == 0:
        device.install(full(PlainServer(ITEMS)), NOW + 1)
    rng = random.Random()
    with open(record, "a", encoding="utf-8") as server:
        for event in trace():
            device.fix(event, NOW)
            if rng.random() < 0.1:
                upload(device, server)
            os.write(1, b".")
        upload(device, server)
    os.write(1, b"!")


def upload(device, server):
    reports = device.outgoing(0, 7)
    while reports:
        for entry in reports:
            lon = None if entry.loc is None else entry.loc[0]
            server.write(f"{entry.seq} {entry.handle} {entry.n} {entry.mode} {entry.ts} {lon}\n")
        server.flush()
        os.fsync(server.fileno())
        device.acknowledge(Ack(reports[-1].seq))
        reports = device.outgoing(0, 7)


if __name__ == "__main__":
    main(*sys.argv[1:])
