"""Group commit: one transaction for many works, and no memory ahead of the database."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Column, Connection, Engine, Integer, MetaData, Table, event, func, select, text

from server.store.engine import open_engine
from server.store.errors import NotRecorded
from server.store.writer import Transaction, Writer
from zones.errors import CallerError

ROWS = Table("writer_rows", MetaData(), Column("n", Integer, primary_key=True))


class Refused(CallerError):
    code = "refused"


class Store:
    """A table with its copy in memory, as the server keeps one."""

    def __init__(self, engine: Engine, *, max_batch: int = 256) -> None:
        self.engine = engine
        self.memory: set[int] = set()
        self.reloads = 0
        self.writer = Writer(engine, max_batch=max_batch, on_rollback=self.load)

    def load(self, conn: Connection) -> None:
        self.reloads += 1
        self.memory = set(conn.scalars(select(ROWS.c.n)))

    def add(self, tx: Transaction, n: int) -> int:
        tx.touch()
        self.memory.add(n)
        tx.conn.execute(ROWS.insert(), {"n": n})
        return n

    def recorded(self) -> set[int]:
        with self.engine.connect() as conn:
            return set(conn.scalars(select(ROWS.c.n)))


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url)
    ROWS.create(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine: Engine) -> Store:
    return Store(engine)


@pytest.fixture
def store_on_postgis(postgis_url: str) -> Iterator[Store]:
    engine = open_engine(postgis_url)
    ROWS.create(engine)
    yield Store(engine)
    engine.dispose()


def submit_together(writer: Writer, *works):
    """Queue all works behind one that waits for them, so that they are one batch."""

    async def run():
        writer.start()
        gate = threading.Event()
        held = asyncio.create_task(writer.submit(lambda _tx: gate.wait(10)))
        tasks = [asyncio.create_task(writer.submit(work)) for work in works]
        await asyncio.sleep(0)  # lets every task reach its queue; no time passes
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        await held
        await writer.stop()
        return answers

    return asyncio.run(run())


def test_works_that_wait_together_share_a_commit(store: Store):
    answers = submit_together(store.writer, *[lambda tx, n=n: store.add(tx, n) for n in range(100)])
    assert answers == list(range(100))
    assert store.recorded() == store.memory == set(range(100))
    assert store.writer.works == 101
    assert store.writer.commits <= 3


def test_a_batch_has_a_largest_size(engine: Engine):
    store = Store(engine, max_batch=10)
    submit_together(store.writer, *[lambda tx, n=n: store.add(tx, n) for n in range(100)])
    assert store.writer.commits >= 10
    assert store.recorded() == set(range(100))


def test_a_work_that_fails_takes_no_other_with_it(store: Store):
    def fail(tx: Transaction) -> None:
        store.add(tx, 66)
        raise ZeroDivisionError

    first, failed, last = submit_together(store.writer, lambda tx: store.add(tx, 1), fail, lambda tx: store.add(tx, 2))
    assert (first, last) == (1, 2)
    assert isinstance(failed, ZeroDivisionError)
    assert store.recorded() == store.memory == {1, 2}


def test_a_statement_that_fails_takes_no_other_with_it(store: Store):
    answers = submit_together(store.writer, *[lambda tx, n=n: store.add(tx, n) for n in (1, 1, 2)])
    assert [answers[0], answers[2]] == [1, 2]
    assert type(answers[1]).__name__ == "IntegrityError"
    assert store.recorded() == store.memory == {1, 2}


def test_a_refusal_before_any_change_reloads_nothing(store: Store):
    def refuse(tx: Transaction) -> None:
        tx.conn.scalar(select(func.count()).select_from(ROWS))
        raise Refused("No.")

    with pytest.raises(Refused):
        store.writer.run_now(refuse)
    assert store.reloads == 0


def test_a_refusal_after_a_write_reloads_memory_also_without_touch(store: Store):
    def write_then_refuse(tx: Transaction) -> None:
        store.memory.add(5)
        tx.conn.execute(ROWS.insert(), {"n": 5})
        raise Refused("No.")

    with pytest.raises(Refused):
        store.writer.run_now(write_then_refuse)
    assert store.reloads == 1
    assert store.memory == set()


def test_a_refusal_after_memory_changed_reloads_it(store: Store):
    def touch_then_refuse(tx: Transaction) -> None:
        tx.touch()
        store.memory.add(5)
        raise Refused("No.")

    with pytest.raises(Refused):
        store.writer.run_now(touch_then_refuse)
    assert store.memory == set()


def test_memory_is_reloaded_with_what_the_same_batch_wrote_before(store: Store):
    seen: list[set[int]] = []

    def fail(tx: Transaction) -> None:
        tx.touch()
        raise Refused("No.")

    submit_together(store.writer, lambda tx: store.add(tx, 1), fail, lambda _tx: seen.append(set(store.memory)))
    assert seen == [{1}]


def test_calls_after_the_commit_find_it_committed(store: Store):
    found: list[set[int]] = []

    def work(tx: Transaction) -> None:
        store.add(tx, 1)
        tx.after_commit(lambda: found.append(store.recorded()))
        assert found == []

    store.writer.run_now(work)
    assert found == [{1}]


def test_calls_of_a_failed_work_are_never_made(store: Store):
    called: list[str] = []

    def fail(tx: Transaction) -> None:
        tx.after_commit(lambda: called.append("failed"))
        raise Refused("No.")

    submit_together(store.writer, fail, lambda tx: tx.after_commit(lambda: called.append("done")))
    assert called == ["done"]


def test_a_failing_call_after_the_commit_does_not_deny_the_commit(store: Store, caplog: pytest.LogCaptureFixture):
    def work(tx: Transaction) -> int:
        tx.after_commit(lambda: 1 // 0)
        return store.add(tx, 1)

    assert store.writer.run_now(work) == 1
    assert "after_commit_failed" in caplog.text


def fail_commits(engine: Engine, times: int) -> None:
    left = [times]

    @event.listens_for(engine, "commit")
    def fail(_conn: Connection) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError("disk full")


def test_a_failed_commit_fails_every_work_of_it_and_reloads_memory(store: Store):
    fail_commits(store.engine, 1)
    called: list[int] = []

    def work(tx: Transaction, n: int) -> None:
        store.add(tx, n)
        tx.after_commit(lambda: called.append(n))

    with pytest.raises(NotRecorded) as caught:
        store.writer.run_now(lambda tx: work(tx, 1))
    assert isinstance(caught.value.__cause__, OSError)
    assert store.memory == store.recorded() == set()
    store.writer.run_now(lambda tx: work(tx, 2))
    assert store.memory == store.recorded() == {2}
    assert called == [2]


def test_memory_that_could_not_be_reloaded_is_reloaded_before_the_next_work(store: Store):
    fail_commits(store.engine, 2)  # the work's, then the reload's
    with pytest.raises(NotRecorded):
        store.writer.run_now(lambda tx: store.add(tx, 1))
    seen: list[set[int]] = []
    store.writer.run_now(lambda _tx: seen.append(set(store.memory)))
    assert seen == [set()]


def test_no_work_runs_on_memory_that_can_not_be_reloaded(engine: Engine):
    def reload(_conn: Connection) -> None:
        raise OSError("no memory")

    writer = Writer(engine, on_rollback=reload)
    ran: list[int] = []

    def fail(tx: Transaction) -> None:
        tx.touch()
        raise Refused("No.")

    for work in (fail, lambda _tx: ran.append(1)):
        with pytest.raises(NotRecorded):
            writer.run_now(work)
    assert ran == []


def test_a_lost_connection_fails_the_batch_and_the_next_one_works(store_on_postgis: Store):
    store = store_on_postgis
    kill = text("SELECT pg_terminate_backend(:pid)")

    def lose(tx: Transaction) -> None:
        store.add(tx, 2)
        pid = tx.conn.scalar(text("SELECT pg_backend_pid()"))
        with store.engine.connect() as other:
            other.execute(kill, {"pid": pid})
        tx.conn.scalar(text("SELECT 1"))

    async def run():
        store.writer.start()
        await store.writer.submit(lambda tx: store.add(tx, 1))
        with pytest.raises(NotRecorded):
            await store.writer.submit(lose)
        assert store.memory == {1}
        await store.writer.submit(lambda tx: store.add(tx, 3))
        await store.writer.stop()

    asyncio.run(run())
    assert store.recorded() == store.memory == {1, 3}


def test_a_connection_lost_between_batches_loses_nothing_that_was_recorded(store_on_postgis: Store):
    store = store_on_postgis

    async def run():
        store.writer.start()
        pid = await store.writer.submit(lambda tx: tx.conn.scalar(text("SELECT pg_backend_pid()")))
        await store.writer.submit(lambda tx: store.add(tx, 1))
        with store.engine.connect() as other:
            other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        with pytest.raises(NotRecorded):
            await store.writer.submit(lambda tx: store.add(tx, 2))
        assert await store.writer.submit(lambda tx: store.add(tx, 3)) == 3
        await store.writer.stop()

    asyncio.run(run())
    assert store.recorded() == store.memory == {1, 3}


def test_stopping_finishes_what_is_queued_and_refuses_the_rest(store: Store):
    async def run():
        store.writer.start()
        tasks = [asyncio.create_task(store.writer.submit(lambda tx, n=n: store.add(tx, n))) for n in range(20)]
        await asyncio.sleep(0)
        await store.writer.stop()
        await asyncio.gather(*tasks)
        with pytest.raises(NotRecorded):
            await store.writer.submit(lambda tx: store.add(tx, 99))
        await store.writer.stop()  # twice is fine

    asyncio.run(run())
    assert store.recorded() == set(range(20))


def test_a_cancelled_caller_does_not_undo_its_work(store: Store):
    async def run():
        store.writer.start()
        gate = threading.Event()
        held = asyncio.create_task(store.writer.submit(lambda _tx: gate.wait(10)))
        gone = asyncio.create_task(store.writer.submit(lambda tx: store.add(tx, 1)))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        gate.set()
        await held
        await store.writer.stop()

    asyncio.run(run())
    assert store.recorded() == store.memory == {1}


def test_a_stop_iteration_reaches_its_caller(store: Store):
    (answer,) = submit_together(store.writer, lambda _tx: next(iter(())))
    assert isinstance(answer, RuntimeError)


def test_readers_are_not_held_up_by_the_writer(store: Store):
    def work(tx: Transaction) -> set[int]:
        store.add(tx, 1)
        return store.recorded()  # another connection, in the middle of our transaction

    assert store.writer.run_now(work) == set()
