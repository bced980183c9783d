"""The values that were used last are remembered."""

import threading

from turnlog.adapters._recent import Recent


def test_the_last_used_are_remembered_whoever_uses_them():
    recent = Recent(4)
    failures = []

    def work(number):
        try:
            for step in range(3_000):
                recent.put((number + step) % 9, step)
                recent.get(step % 9)
                recent.pop((number * step) % 9)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for key in range(6):
        recent.put(key, key)
        recent.get(2)
    assert [recent.get(key) for key in range(6)] == [None, None, 2, 3, 4, 5]


def test_all_are_taken_out_at_once():
    recent = Recent(4)
    recent.put("a", 1)
    recent.put("b", 3)
    assert recent.pop_all() == [1, 3]
    assert recent.get("a") is None
