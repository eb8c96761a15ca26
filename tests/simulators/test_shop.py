"""The demo's subscriber: counts what it hears, and takes a gap for the loss it is."""

import asyncio
from typing import Any

import pytest

from matcher.once import Mode
from simulators.demo.http_api import HttpUser
from simulators.demo.shop import Shop, describe
from simulators.errors import DemoFailed


class _Pages(HttpUser):
    """Answers with these pages, then with nothing more."""

    def __init__(self, *pages: list[dict[str, Any]]) -> None:
        super().__init__("http://127.0.0.1:9", "fpk_x_y")
        self._pages = list(pages)
        self.asked: list[int] = []

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        self.asked.append(query["after"])
        if not self._pages:
            await asyncio.Event().wait()
        return {"notifications": self._pages.pop(0)}


def _told(offset: int, mode: str = "enter", **more: Any) -> dict[str, Any]:
    return {"offset": offset, "oid": "acme/van1", "target": "SYSTEM.Xidan", "mode": mode, **more}


async def test_each_edge_is_counted_and_told_in_order() -> None:
    user = _Pages([_told(1), _told(2, "leave")], [], [_told(3)])
    told: list[dict[str, Any]] = []
    shop = Shop(user, told.append)
    following = asyncio.create_task(shop.follow())
    async with asyncio.timeout(10):
        await shop.has_heard(3)
    following.cancel()
    assert [each["offset"] for each in told] == [1, 2, 3]
    assert (shop.count(Mode.ENTER), shop.count(Mode.LEAVE)) == (2, 1)
    assert user.asked[:3] == [0, 2, 2]


@pytest.mark.parametrize("second", [3, 1])
async def test_an_offset_that_is_not_the_next_one_is_a_failure(second: int) -> None:
    with pytest.raises(DemoFailed, match=f"after offset 1 has offset {second}"):
        await Shop(_Pages([_told(1), _told(second)]), lambda _: None).follow()


async def test_a_withdrawn_notification_is_a_failure() -> None:
    with pytest.raises(DemoFailed, match="offset 1 was withdrawn"):
        await Shop(_Pages([{"offset": 1, "withdrawn": True}]), lambda _: None).follow()


def test_a_notification_reads_as_a_line() -> None:
    enter = _told(1, ts="2026-11-18T07:00:00.250Z")
    leave = _told(2, "leave", ts="2026-11-18T07:00:12.750Z", duration_s=12.5)
    assert describe(enter) == "07:00:00.250  enter  acme/van1    SYSTEM.Xidan"
    assert describe(leave) == "07:00:12.750  leave  acme/van1    SYSTEM.Xidan  after 12.5 s"
