"""The e-coupon: who comes within 200 metres of the restaurant in the mall today gets a coupon on the phone, once.

    python e_coupon.py URL OPERATOR_KEY USER USER_KEY

The operator of the map, who may write SYSTEM's zones, draws the mall. The user's app subscribes for its own user, whose
position need not be told to anybody for that: the phone is the user's agent, so it is the phone that decides, and the
server hears of nothing but the one moment the coupon is for. A phone would take its fixes from the GPS; here they are
of a walk that comes by the restaurant twice today, and has been there yesterday.
"""

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen

from agent_sdk import Agent, CallbackSource, enrol

MALL = [[116.360, 39.900], [116.380, 39.900], [116.380, 39.915], [116.360, 39.915], [116.360, 39.900]]
RESTAURANT = "CIRCLE(116.3700 39.9075, 200)"
# Seconds after midnight, lon, lat: at the restaurant's door yesterday; then to the mall, through it, by the restaurant,
# out, 200 metres of it on the way back, and home.
WALK = (
    (-60, 116.3701, 39.9075), (0, 116.3500, 39.9075), (30, 116.3610, 39.9030), (60, 116.3660, 39.9060),
    (90, 116.3698, 39.9074), (120, 116.3701, 39.9075), (150, 116.3790, 39.9075), (180, 116.3710, 39.9080),
    (210, 116.3500, 39.9075),
)  # fmt: skip


def call(url: str, key: str, method: str, path: str, body: Any = None) -> Any:
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, head, method=method), timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def subscribe(url: str, operator_key: str, user: str, user_key: str, today: datetime) -> None:
    """Once for each shop and day: in the mall, near the restaurant, today, and only the first time."""
    call(url, operator_key, "PUT", "/v1/zones/SYSTEM.Mall", {"shape": {"type": "Polygon", "coordinates": [MALL]}})
    begin, end = (f"{day:%Y-%m-%dT%H:%M:%SZ}" for day in (today, today + timedelta(days=1)))
    selector = (
        f"('{user}') within ({RESTAURANT}) AND ('{user}') within (SYSTEM.Mall)"
        f" AND ts >= TIMESTAMP '{begin}' AND ts < TIMESTAMP '{end}'"
    )
    call(url, user_key, "PUT", "/v1/subscriptions/coupon", {"selector": selector, "tos": "first", "expires": end})


async def main(url: str, operator_key: str, user: str, user_key: str) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    subscribe(url, operator_key, user, user_key, today)
    token = call(url, user_key, "POST", "/v1/agents", {"oid": user})["token"]
    gps = CallbackSource()
    async with Agent(url, await enrol(url, token), gps, state=None, notifications=True) as phone:
        await phone.until_planned()
        for seconds, lon, lat in WALK:
            gps.push(lon, lat, ts=round((today.timestamp() + seconds) * 1000), unc=5.0)
        gps.close()
        await phone.run()
        coupon = await anext(phone.notifications())
        print(f"{coupon['ts'][11:16]} Hungry? Show {coupon['id'][:8]} at the restaurant today: 10 % off.")
        print(f"{phone.counts.fixes} fixes, {phone.counts.edges} coupon")


if __name__ == "__main__":
    names = ("FENCEPOST_URL", "OPERATOR_KEY", "FENCEPOST_USER", "USER_KEY")
    asyncio.run(main(*(sys.argv[1:] or [os.environ[name] for name in names])))
