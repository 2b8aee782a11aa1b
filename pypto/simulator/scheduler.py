"""Several things that run at once, one after the other: cores, blocks, ranks.

A task is a generator. It runs until it yields a `Wait`, and goes on when the event it waits for is woken. Tasks that
can run do so in the order they became ready, so two runs of the same tasks do the same things in the same order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import numpy as np

from pypto.errors import Location
from pypto.pto.errors import PtoError

_NAMED_AT_MOST = 8
_PAUSES_AT_MOST = 100_000
"""Pauses in a row, nothing else having happened, after which nothing will."""


class Event:
    """What tasks wait for. Being woken says that something changed: a task looks again whether it may go on."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[Task] = []

    def wake(self) -> None:
        """Let every task that waits run again."""
        if self.waiting:
            for task in self.waiting:
                task.scheduler.ready.append(task)
            self.waiting = []


class Wait(NamedTuple):
    """Yielded by a task that cannot go on: until when, what for, and the user's line. Joins have no line.

    ``what`` is a text, or gives one when it is needed: when nothing can go on.
    """

    event: Event
    what: str | Callable[[], str]
    loc: Location | None = None


PAUSE = Wait(Event(), "its next turn")
"""Yielded by a task that asks again and again: the others go first."""

Steps = Generator[Wait, None, Any]
"""The body of a task: yields what it waits for, returns its result."""


class Task:
    """A generator the scheduler runs. ``result`` is what it returned once it is ``done``."""

    __slots__ = ("name", "steps", "scheduler", "result", "done", "wait", "finished")

    def __init__(self, name: str, steps: Steps, scheduler: Scheduler) -> None:
        self.name, self.steps, self.scheduler = name, steps, scheduler
        self.result: Any = None
        self.done = False
        self.wait: Wait | None = None
        self.finished = Event()


class Scheduler:
    """Runs tasks until all have ended."""

    def __init__(self) -> None:
        self.ready: deque[Task] = deque()
        self._unfinished: dict[Task, None] = {}
        self._pauses = 0

    def spawn(self, name: str, steps: Steps) -> Task:
        """Add a task; ``name`` is what it is called when nothing can go on."""
        task = Task(name, steps, self)
        self.ready.append(task)
        self._unfinished[task] = None
        return task

    def join(self, tasks: Iterable[Task]) -> Steps:
        """Steps that end when ``tasks`` have; their results."""
        results = []
        for task in tasks:
            while not task.done:
                yield Wait(task.finished, f"the end of {task.name}")
            results.append(task.result)
        return results

    def run(self) -> None:
        """Run every task to its end.

        Raises what a task raises, and PtoError naming the tasks when those that are left all wait, or ask in vain. The
        tasks that are left are closed then.
        """
        ready = self.ready
        try:
            # Overflow, division by zero and nan are values of the machine, not mistakes.
            with np.errstate(all="ignore"):
                while ready:
                    self._advance(ready.popleft())
            if self._unfinished:
                raise _stuck(list(self._unfinished))
        finally:
            for task in self._unfinished:
                task.steps.close()
            self._unfinished.clear()
            ready.clear()

    def _advance(self, task: Task) -> None:
        """Run one task until it waits or ends."""
        try:
            task.wait = next(task.steps)
        except StopIteration as end:
            task.result, task.done, task.wait = end.value, True, None
            del self._unfinished[task]
            self._pauses = 0
            task.finished.wake()
        else:
            if task.wait is not PAUSE:
                self._pauses = 0
                task.wait.event.waiting.append(task)
                return
            self._pauses += 1
            if self._pauses > _PAUSES_AT_MOST:
                raise PtoError(f"nothing can go on: {task.name} asks for what nothing will bring about")
            self.ready.append(task)


def run_alone(name: str, steps: Steps) -> Any:
    """Run one task with nothing beside it; its result."""
    scheduler = Scheduler()
    task = scheduler.spawn(name, steps)
    scheduler.run()
    return task.result


def _stuck(tasks: list[Task]) -> PtoError:
    """Nothing can go on: who waits where, and for what."""
    waits = [(task.name, task.wait) for task in tasks if task.wait is not None and task.wait.loc is not None]
    waits = waits or [(task.name, task.wait) for task in tasks if task.wait is not None]
    lines = [
        f"{name} waits{f' at {wait.loc}' if wait.loc else ''} for "
        f"{wait.what if isinstance(wait.what, str) else wait.what()}"
        for name, wait in waits
    ]
    if len(lines) > _NAMED_AT_MOST:
        lines[_NAMED_AT_MOST:] = [f"and {len(lines) - _NAMED_AT_MOST} more"]
    return PtoError("nothing can go on: " + "; ".join(lines), waits[0][1].loc)
