"""Who somebody is, taken out on request: home folders, user names, e-mail addresses; and what only looks like those."""

import pytest

from turnlog import Message, Text
from turnlog.view.secret.personal import KINDS
from turnlog.view.secret.redactor import Redactor

FOUND = {
    "/home/anna/webshop/app.py": "[redacted: home folder]/webshop/app.py",
    "/Users/anna.berg/x": "[redacted: home folder]/x",
    "/var/home/anna": "[redacted: home folder]",
    r"C:\Users\Anna Berg\x": r"[redacted: home folder]\x",
    r'"C:\\Users\\anna\\x"': r'"[redacted: home folder]\\x"',
    "/mnt/c/Users/anna/x": "[redacted: home folder]/x",
    "write to anna.berg+work@webshop.co.uk.": "write to [redacted: e-mail address].",
    "Anna Berg <anna@webshop.de>": "Anna Berg <[redacted: e-mail address]>",
    "user.email=anna@webshop.de": "user.email=[redacted: e-mail address]",
}
LOOK_ALIKES = [
    "git@github.com:anna/webshop.git",
    "https://anna.webshop.de/home/page",
    "icon@2x.png",
    "left-pad@1.3.0",
    "@app.route('/home')",
    "noreply@anthropic.com",
    "someone@example.com",
    "/home/runner/work",
    "/home",
    "/homestead/anna",
    "/usr/share/Users.md",
    "a @ b.c",
    "matrix @ vector.T",
]


@pytest.mark.parametrize("text", FOUND)
def test_it_is_taken_out(text: str):
    assert Redactor(("paths", "emails")).text(text) == FOUND[text]
    assert Redactor().text(text) == text


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_it_stays(text: str):
    assert Redactor(KINDS).text(text) == text


def test_a_name_is_taken_out_wherever_it_stands_by_itself():
    redactor = Redactor(("names",))
    redactor.learn(Message(role="user", blocks=[Text("cd /home/hanna/x"), Text("/home/runner/y")]))
    said = "hanna asked; hanna@host; hannah and johanna did not, nor a runner in /home/hanna/x"
    there = "[redacted: user name]"
    assert (
        redactor.text(said)
        == f"{there} asked; {there}@host; hannah and johanna did not, nor a runner in /home/{there}/x"
    )
    assert redactor.counts == {"user name": 3}
