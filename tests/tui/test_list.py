"""The list: what fits, what is chosen, what the keys do."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import turnlog
from tests.catalog.machine import Machine
from tests.tui.conftest import drive, lines, text_of, until
from turnlog.reader.viewing.desk import Desk
from turnlog.session import open_home
from turnlog.tui.browser import Browser, BrowserOutcome
from turnlog.tui.footline import KeyHint, foot_line
from turnlog.tui.screens import listing
from turnlog.tui.screens.listing import ListScreen
from turnlog.tui.sessionlist import ListAnswer, ask_preview, completed, with_open_last_word
from turnlog.tui.style import STYLE


def listed(browser: Browser) -> ListScreen:
    assert isinstance(browser.screen, ListScreen)
    return browser.screen


async def answered(pilot: Pilot[Any], browser: Browser, query: str = "") -> ListScreen:
    screen = listed(browser)
    await until(pilot, lambda: screen.answer is not None and screen.answer.query == query)
    return screen


def test_the_list_has_every_session_this_folders_on_top_or_alone_and_explains_its_keys(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await answered(pilot, browser)
        names = [row.name for row in screen.rows]
        assert names[:3] == ["talk-one", "codex:bbbb2222", "claude-code:aaaa1111"]
        assert set(names[3:]) == {"hostile1", "wide1"}
        assert lines(browser)[-1].startswith("5 sessions, 3 of this folder")
        assert "$0.09" in lines(browser)[1]
        assert "Enter open" in lines(browser)[-1]
        await pilot.press("ctrl+a")
        await until(pilot, lambda: lines(browser)[-1].startswith("3 sessions of this folder"))
        await pilot.press("ctrl+a")
        await until(pilot, lambda: lines(browser)[-1].startswith("5 sessions"))
        await pilot.press("question_mark")
        await until(pilot, lambda: "only sessions of this folder" in text_of(browser))
        await pilot.press("pagedown")
        await until(pilot, lambda: "agent:codex,claude" in text_of(browser))
        await pilot.press("escape")
        await until(pilot, lambda: "5 sessions" in text_of(browser))

    drive(machine, body)


def test_every_letter_narrows_and_the_last_word_may_be_unfinished(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await answered(pilot, browser)
        await pilot.press(*"logi")
        screen = await answered(pilot, browser, "logi")
        assert [row.name for row in screen.rows] == ["talk-one"]
        assert "F1 keys" in lines(browser)[-1], "a question mark would be looked for"
        await pilot.press("n")
        screen = await answered(pilot, browser, "login")
        assert screen.answer is not None
        assert screen.answer.asked == "login"
        assert lines(browser)[-1].startswith("1 session ")
        await pilot.press("x")
        screen = await answered(pilot, browser, "loginx")
        assert "no session fits “loginx”" in text_of(browser)
        await pilot.press("escape")
        screen = await answered(pilot, browser)
        assert len(screen.rows) == 5

    drive(machine, body)


def test_what_is_half_typed_leaves_the_list_and_says_what_is_missing(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await answered(pilot, browser, "haystack ")
        assert len(screen.rows) == 2
        browser.catalog._mutex.__enter__()  # what is asked on the way is overtaken
        await pilot.press(*"agent:")
        browser.catalog._mutex.__exit__()
        await until(pilot, lambda: "agent: has no value" in lines(browser)[-1])
        assert len(screen.rows) == 2
        await pilot.press(*"codex")
        await answered(pilot, browser, "haystack agent:codex")
        assert [row.name for row in screen.rows] == ["codex:bbbb2222"]

    drive(machine, body, "haystack ")


def test_enter_opens_what_was_typed_though_the_answer_is_under_way(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await answered(pilot, browser)
        with browser.catalog._mutex:  # nobody gets an answer before this is left
            await pilot.press(*"codex")
            await pilot.press("enter")
            assert screen.answer is not None
            assert screen.answer.query == ""
        await until(pilot, lambda: browser.return_value is not None)

    assert drive(machine, body, is_picking=True).return_value == BrowserOutcome("codex:bbbb2222")


def test_a_letter_behind_enter_narrows_and_opens_nothing(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await answered(pilot, browser)
        with browser.catalog._mutex:
            await pilot.press(*"lo", "enter", *"gin")
        screen = await answered(pilot, browser, "login")
        assert [row.name for row in screen.rows] == ["talk-one"]
        await pilot.press("escape")
        await answered(pilot, browser)
        assert browser.return_value is None

    assert drive(machine, body, is_picking=True).return_value is None


def test_down_goes_on_and_up_from_the_first_goes_back_to_the_field(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await answered(pilot, browser)
        await pilot.press("down")
        assert screen.chosen == 1
        await pilot.press("j", "end")
        assert screen.chosen == 4
        await pilot.press("home", "up")
        await pilot.press("q")
        await answered(pilot, browser, "q")

    drive(machine, body)


def test_a_letter_in_the_list_goes_to_the_field_and_q_ends(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await answered(pilot, browser)
        await pilot.press("tab", "z", "z")
        screen = await answered(pilot, browser, "zz")
        assert screen.rows == []
        await pilot.press("tab", "q")
        await until(pilot, lambda: browser.return_value is not None)

    assert drive(machine, body).return_value == BrowserOutcome()


def test_escape_clears_and_then_ends(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await answered(pilot, browser, "login")
        await pilot.press("escape")
        await answered(pilot, browser)
        await pilot.press("escape")
        await until(pilot, lambda: browser.return_value is not None)

    assert drive(machine, body, "login", is_picking=True).return_value == BrowserOutcome()


def test_the_preview_shows_where_the_words_are_or_the_last_messages(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await until(pilot, lambda: "answer **59** is `fine`" in text_of(browser))
        await pilot.press(*"case31")
        await until(pilot, lambda: "grep -n case31" in text_of(browser))
        assert "answer **59**" not in text_of(browser)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "─" * 80 not in text_of(browser))
        assert "grep -n case31" not in text_of(browser)

    drive(machine, body)


def test_a_session_whose_name_begins_with_that_of_another_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        for name, text in (("chat-1", "a quiet afternoon"), ("chat-10", "a marmalade sandwich")):
            with home.create(id=name, workspace=machine.work) as session:
                session.user(text)
    with machine.catalog() as catalog:
        catalog.sync()
        assert [hit.card.name for hit in ask_preview(catalog, "chat-1", "marmalade")] == ["chat-1"]
        assert [hit.card.name for hit in ask_preview(catalog, "chat-1", "")] == ["chat-1"]
        assert [hit.card.name for hit in ask_preview(catalog, "chat-10", "marmalade")] == ["chat-10"]
        browser = Browser(catalog, lambda: Desk(open_home(str(machine.home)), catalog))
        assert not browser.newest_place("chat-1", "marmalade")
        assert browser.newest_place("chat-10", "marmalade")


def test_a_preview_that_fails_says_why_and_is_asked_for_once(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def fails(catalog: Any, name: str, query: str) -> Any:
        asked.append(name)
        raise turnlog.Unavailable("the index is locked", hint="again in a while")

    monkeypatch.setattr(listing, "ask_preview", fails)

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await until(pilot, lambda: "the index is locked (again in a while)" in text_of(browser))
        for _ in range(3):
            listed(browser).draw()
            await pilot.pause(0.05)
        assert len(asked) == 1

    drive(machine, body)


def test_a_list_that_could_not_be_asked_for_is_asked_for_again(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    ask, problems = listing.ask_list, [sqlite3.OperationalError("database is locked")]

    def refused(*args: Any, **more: Any) -> ListAnswer:
        if problems:
            raise problems[0]
        return ask(*args, **more)

    monkeypatch.setattr(listing, "ask_list", refused)
    monkeypatch.setattr(listing, "_REFRESH_S", 0.1)

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await until(pilot, lambda: "database is locked" in text_of(browser))
        problems.clear()
        await until(pilot, lambda: "Fix the login page" in text_of(browser))
        assert "database is locked" not in text_of(browser)

    drive(machine, body)


def test_what_is_said_while_somebody_looks_appears(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listing, "_REFRESH_S", 0.1)

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await answered(pilot, browser)
        await pilot.press("down")
        machine.codex("cccc3333", 1)
        await until(pilot, lambda: len(screen.rows) == 6)
        assert screen.row is not None
        assert screen.row.name == "codex:bbbb2222"  # what was chosen stays so
        machine.user.joinpath(".codex/sessions/2026/03/01/rollout-2026-03-01T09-00-00-cccc3333.jsonl").unlink()

    drive(machine, body)


@pytest.mark.parametrize(("columns", "rows"), [(40, 10), (1, 1)])
def test_columns_go_as_the_window_gets_narrow_and_the_title_last(machine: Machine, columns: int, rows: int):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await answered(pilot, browser)
        await pilot.pause()
        shown = lines(browser)
        assert len(shown) == rows
        if columns > 1:
            assert "Fix the" in shown[1]
            assert "$0.09" not in shown[1]

    drive(machine, body, size=(columns, rows))


def test_a_click_chooses_and_a_second_one_opens(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await answered(pilot, browser)
        await pilot.click("#list", offset=(4, 2))
        assert screen.chosen == 2
        await pilot.click("#list", offset=(4, 2))
        await until(pilot, lambda: browser.return_value is not None)

    assert drive(machine, body, is_picking=True).return_value == BrowserOutcome("claude-code:aaaa1111")


def test_queries_are_completed_as_far_as_can_be_meant():
    assert completed('title:"login pa') == 'title:"login pa"'
    assert completed('"login page"') == '"login page"'
    assert completed("fix OR") == completed("fix OR ") == "fix "
    assert completed("codex (fix OR brea") == "codex (fix OR brea)"
    assert completed("call(") == "call("
    assert with_open_last_word("fix OR logi") == "fix OR logi*"
    assert with_open_last_word("fix logi") == "fix logi*"
    assert with_open_last_word("agent:cod") == ""
    assert with_open_last_word("fix -logi") == ""
    assert with_open_last_word("done ") == ""


def test_the_last_line_has_as_many_keys_as_fit_and_each_can_be_clicked():
    hints = [KeyHint("Enter", "open", "open"), KeyHint("?", "keys", "explain")]
    foot = foot_line("5 sessions", hints, 40, STYLE)
    assert foot.action_at(foot.places[1][0]) == "explain"
    assert foot.action_at(0) == ""
    assert foot_line("5 sessions", hints, 25, STYLE).places[0][2] == "open"
    assert len(foot_line("5 sessions", hints, 25, STYLE).places) == 1
    assert foot_line("5 sessions", hints, 4, STYLE).text == "5 s…"
