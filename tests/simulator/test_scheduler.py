"""Tasks run in a fixed order, wake each other, and are named when none can go on."""

from __future__ import annotations

import pytest

from pypto.errors import Location
from pypto.pto.errors import PtoError
from pypto.simulator.scheduler import Event, Scheduler, Steps, Wait, run_alone


def test_tasks_take_turns_at_their_waits_in_the_order_they_were_added():
    log: list[str] = []
    event = Event()

    def waits(name: str) -> Steps:
        log.append(f"{name} begins")
        yield Wait(event, "a signal")
        log.append(f"{name} ends")

    def wakes() -> Steps:
        log.append("woken")
        event.wake()
        return
        yield

    scheduler = Scheduler()
    for name in "ab":
        scheduler.spawn(name, waits(name))
    scheduler.spawn("c", wakes())
    scheduler.run()
    assert log == ["a begins", "b begins", "woken", "a ends", "b ends"]


def test_a_task_has_its_result_and_others_can_wait_for_it():
    scheduler = Scheduler()
    event = Event()

    def number(value: int) -> Steps:
        while not scheduler_open:
            yield Wait(event, "the door")
        return value

    def total() -> Steps:
        tasks = [scheduler.spawn(f"number {i}", number(i)) for i in range(4)]
        scheduler.spawn("door", opens())
        return sum((yield from scheduler.join(tasks)))

    def opens() -> Steps:
        scheduler_open.append(True)
        event.wake()
        return
        yield

    scheduler_open: list[bool] = []
    task = scheduler.spawn("total", total())
    scheduler.run()
    assert task.done and task.result == 6


def test_when_none_can_go_on_every_one_is_named_with_its_line():
    scheduler = Scheduler()

    def stuck(what: str, line: int) -> Steps:
        yield Wait(Event(), what, Location("k.py", line, 5))

    scheduler.spawn("the cube", stuck("a push", 3))
    scheduler.spawn("lane 0", stuck("a slot", 8))
    with pytest.raises(PtoError) as caught:
        scheduler.run()
    assert caught.value.message == (
        "nothing can go on: the cube waits at k.py:3:5 for a push; lane 0 waits at k.py:8:5 for a slot"
    )
    assert caught.value.loc == Location("k.py", 3, 5)


def test_of_many_that_are_stuck_the_first_are_named():
    scheduler = Scheduler()

    def stuck() -> Steps:
        yield Wait(Event(), "a push", Location("k.py", 1))

    for index in range(20):
        scheduler.spawn(f"core {index}", stuck())
    with pytest.raises(PtoError, match=r"core 7 waits at k.py:1 for a push; and 12 more\n"):
        scheduler.run()


def test_a_task_that_fails_ends_the_run_and_closes_the_others():
    closed: list[str] = []

    def waits() -> Steps:
        try:
            yield Wait(Event(), "nothing")
        finally:
            closed.append("waits")

    def fails() -> Steps:
        raise PtoError("no")
        yield

    scheduler = Scheduler()
    scheduler.spawn("a", waits())
    scheduler.spawn("b", fails())
    with pytest.raises(PtoError, match="no"):
        scheduler.run()
    assert closed == ["waits"]


def test_a_wait_for_a_task_that_is_stuck_shows_the_task():
    scheduler = Scheduler()

    def stuck() -> Steps:
        yield Wait(Event(), "a push", Location("k.py", 2))

    def outer() -> Steps:
        yield from scheduler.join([scheduler.spawn("inner", stuck())])

    scheduler.spawn("outer", outer())
    with pytest.raises(PtoError, match=r"nothing can go on: inner waits at k.py:2 for a push\n"):
        scheduler.run()


def test_one_task_alone():
    def steps() -> Steps:
        return 3
        yield

    assert run_alone("one", steps()) == 3
