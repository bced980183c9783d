"""What is not plainly visible is found, however little of it there is among the rest."""

import random

from turnlog.view import visible

CHARACTERS = [
    *"ab \t\n\x00\x01\x0b\x1b\x1c\x7f\x85\xa0\xadé…漢👩", *"\u0301\u034f\u115f\u200b\u200c\u200d\u2028\u202e",
    *"\u3164\ud800\udfff\ufe00\ufe0f\ufeff\U000e0001",
]  # fmt: skip


def test_a_look_at_what_is_odd_tells_what_a_look_at_all_of_it_would():
    chance = random.Random(1)
    for _ in range(20_000):
        text = "".join(chance.choices(CHARACTERS, k=chance.randint(0, 6)))
        assert visible.is_safe(text) == (visible._UNSAFE.search(text) is None), ascii(text)
        assert visible.safe(text) == visible._UNSAFE.sub(visible._escaped, text), ascii(text)
