"""Waking up whoever waits for something to happen.

A topic is a hint to look into the store again: hints may be merged or come too often, but one that is published
after `listen` is never missed. Several nodes will need a bus between processes behind the same interface.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

__all__ = ["Bus", "InProcessBus", "Listener", "notifications_of"]


def notifications_of(user_id: int) -> str:
    """The topic for "there are more notifications for this user"."""
    return f"notifications/{user_id}"


class Listener:
    """Waits for hints on one topic."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a hint; false if none came in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), timeout_s)
        woken = self._event.is_set()
        self._event.clear()
        return woken


class Bus(Protocol):
    def publish(self, topic: str) -> None:
        """Wake the topic's listeners. Called in the event loop's thread."""

    def listen(self, topic: str) -> AbstractContextManager[Listener]:
        """Hear of everything published from now on."""


class InProcessBus:
    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}

    def publish(self, topic: str) -> None:
        for listener in self._listeners.get(topic, ()):
            listener.wake()

    @contextmanager
    def listen(self, topic: str) -> Iterator[Listener]:
        listener = Listener()
        listeners = self._listeners.setdefault(topic, set())
        listeners.add(listener)
        try:
            yield listener
        finally:
            listeners.discard(listener)
            if not listeners:
                self._listeners.pop(topic, None)
