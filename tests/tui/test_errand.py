"""Errands: in order, the newest of a kind, and nothing for nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue

from turnlog.catalog.waiter import still_wanted
from turnlog.errors import Invalid
from turnlog.reader.viewing.desk import error_line
from turnlog.tui.errand import Errands


def collected() -> tuple[Errands, Queue[object], Callable[[Exception], None]]:
    told: Queue[Callable[[], None]] = Queue()
    answers: Queue[object] = Queue()

    def tell() -> None:
        while True:
            told.get()()

    threading.Thread(target=tell, daemon=True).start()
    return Errands(told.put, "test"), answers, lambda error: answers.put(error_line(error))


def test_what_was_overtaken_is_given_up_and_its_answer_thrown_away():
    errands, answers, failed = collected()
    began, goes_on = threading.Event(), threading.Event()

    def slow() -> str:
        began.set()
        assert goes_on.wait(20)
        return "old"

    errands.do(slow, answers.put, failed, "list")
    assert began.wait(20)
    errands.do(lambda: "dropped", answers.put, failed, "list")
    errands.do(lambda: "new", answers.put, failed, "list")
    goes_on.set()
    assert answers.get(timeout=20) == "new"
    assert answers.empty()
    errands.close()


def test_what_is_under_way_sees_that_nobody_waits_any_more():
    errands, answers, failed = collected()
    began = threading.Event()

    def endless() -> None:
        began.set()
        while True:
            still_wanted()

    errands.do(endless, answers.put, failed, "find")
    assert began.wait(20)
    errands.give_up("find")
    errands.do(lambda: "after", answers.put, failed)
    assert answers.get(timeout=20) == "after"
    errands.close()


def test_errors_that_may_happen_are_told():
    errands, answers, failed = collected()

    def refused() -> None:
        raise Invalid("no such filter", hint="another one")

    errands.do(refused, answers.put, failed)
    assert answers.get(timeout=20) == "no such filter (another one)"
    errands.close()


def test_what_changes_something_is_done_to_its_end():
    errands, answers, failed = collected()
    began, goes_on = threading.Event(), threading.Event()

    def act() -> None:
        began.set()
        assert goes_on.wait(20)
        answers.put("done")

    errands.do(act, lambda answer: None, failed)
    assert began.wait(20)
    threading.Timer(0.05, goes_on.set).start()
    errands.finish()
    assert answers.get_nowait() == "done"
