"""A session on the screen: where one is, what is folded, what is found, what is new; and taking a turn back."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

import turnlog
from tests.catalog.machine import Machine
from tests.tui.conftest import drive, lines, text_of, until
from turnlog import Message, ToolCall, ToolResult
from turnlog.catalog import Catalog
from turnlog.errors import Unavailable
from turnlog.reader.viewing.desk import Desk
from turnlog.session import ReadOnlySession, open_home
from turnlog.session.interior import interior
from turnlog.thread.home.foreignmarks import append_marks, mark_note, mark_tag, mark_title
from turnlog.tui.browser import Browser, BrowserOutcome
from turnlog.tui.changelist import ask_plan
from turnlog.tui.frame import MoveResult
from turnlog.tui.pagedsession import PagedSession
from turnlog.tui.screens import reading
from turnlog.tui.screens.reading import SessionScreen, pattern_of
from turnlog.tui.style import STYLE, bare
from turnlog.view.visible import width


async def opened(pilot: Pilot[Any], browser: Browser, text: str) -> SessionScreen:
    await until(pilot, lambda: "1 session " in lines(browser)[-1])
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.screen, SessionScreen) and text in text_of(browser))
    assert isinstance(browser.screen, SessionScreen)
    return browser.screen


def test_a_session_is_read_from_its_end_from_prompt_to_prompt_and_unfolded(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await opened(pilot, browser, "answer 59 is fine")
        assert "at the end" in lines(browser)[-1]
        assert "┃" in lines(browser)[-2]
        await pilot.press("[")
        await until(pilot, lambda: "please look at case 58" in lines(browser)[3])
        assert "… 18 more lines (Enter)" in text_of(browser)
        await pilot.press("enter")
        await until(pilot, lambda: "… 18 more lines (Enter)" not in text_of(browser))
        await pilot.press("pagedown")
        await until(pilot, lambda: "line 20 of case58" in text_of(browser))
        await pilot.press("[")
        await until(pilot, lambda: "please look at case 58" in lines(browser)[3])
        await pilot.press("tab")
        await until(pilot, lambda: "… 18 more lines (Enter)" in text_of(browser))
        await pilot.press("home")
        await until(pilot, lambda: "please look at case 0" in text_of(browser))
        assert "┃" in lines(browser)[1]
        await pilot.press("]")
        await until(pilot, lambda: "please look at case 1" in lines(browser)[3])
        await pilot.click("#bar", offset=(0, 11))
        await until(pilot, lambda: screen.frame is not None and 80 < screen.frame.piece < 100)
        await pilot.press("q")
        await until(pilot, lambda: "1 session " in lines(browser)[-1])

    drive(machine, body, "session:talk-one")


def test_what_was_said_of_a_place_is_not_said_of_another(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "answer 59 is fine")
        for keys, missing in (("]", "no prompt below"), ("[", "no prompt above")):
            for leave in ("home", "end", "up", "pagedown"):
                await pilot.press("end" if keys == "]" else "home")
                await until(pilot, lambda keys=keys: ("answer 59" if keys == "]" else "case 0") in text_of(browser))
                await pilot.press(keys)
                await until(pilot, lambda missing=missing: missing in lines(browser)[-1])
                await pilot.press(leave)
                await until(pilot, lambda missing=missing: missing not in lines(browser)[-1])

    drive(machine, body, "session:talk-one")


def test_a_line_that_is_cut_can_be_read_to_its_end(machine: Machine):
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id="long-lines") as session:
        session.user("read it")
        call = ToolCall(id="c", name="bash", input={"command": f"echo {'word ' * 40}its-end"})
        session.append(Message(role="assistant", blocks=[call]))
        told = f"{'漢字' * 60}far-end\nsecond"
        session.append(Message(role="tool", blocks=[ToolResult(call="c", content=told)]))

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "second")
        assert "-end" not in text_of(browser)
        await pilot.press("enter")
        await until(pilot, lambda: "far-end" in text_of(browser))
        assert "its-end" in text_of(browser)
        assert max(map(width, lines(browser))) <= 80
        await pilot.press("enter")
        await until(pilot, lambda: "-end" not in text_of(browser))

    drive(machine, body, "session:long-lines")


def test_what_was_looked_for_is_where_it_opens_and_n_goes_on(machine: Machine):
    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        screen = await opened(pilot, browser, "grep -n case31 log.txt")
        assert screen.frame is not None
        assert not screen.frame.is_end
        await pilot.press("slash", *"zebra", "enter")
        await until(pilot, lambda: "it is nowhere in this session" in lines(browser)[-1])
        await pilot.press("escape", "slash", *"Answer 58", "enter")
        await until(pilot, lambda: "answer 58 is fine" in text_of(browser))
        await pilot.press("n")
        await until(pilot, lambda: "from the beginning on" in lines(browser)[-1])
        await pilot.press("escape", "y")
        await until(pilot, lambda: "copied: turnlog resume talk-one --exec" in lines(browser)[-1])
        await pilot.press("d")
        await until(pilot, lambda: "no checkpoint was taken" in lines(browser)[-1])
        await pilot.press("r")
        await until(pilot, lambda: browser.return_value is not None)

    assert drive(machine, body, "case31").return_value == BrowserOutcome("talk-one", is_resumed=True)


def test_who_reads_the_end_sees_what_is_new_and_who_reads_above_is_told(machine: Machine):
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id="growing", title="x") as session:
        for number in range(40):
            session.user(f"question {number}")

        async def body(pilot: Pilot[Any], browser: Browser) -> None:
            await opened(pilot, browser, "question 39")
            session.user("and another one")
            await until(pilot, lambda: "and another one" in text_of(browser))
            await pilot.press("home")
            await until(pilot, lambda: "question 0" in text_of(browser))
            session.user("nobody jumps to this")
            await until(pilot, lambda: "1 new below" in lines(browser)[-1])
            assert "question 0" in text_of(browser)

        drive(machine, body, "session:growing")


def test_a_slow_refresh_loses_nothing_that_is_new(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    refresh = PagedSession.refresh

    def slowly(self: PagedSession) -> MoveResult:
        result = refresh(self)
        time.sleep(0.3)
        return result

    monkeypatch.setattr(PagedSession, "refresh", slowly)
    monkeypatch.setattr(reading, "_REFRESH_S", 0.1)
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id="slow-one") as session:
        session.user("a slow one")

        async def body(pilot: Pilot[Any], browser: Browser) -> None:
            await opened(pilot, browser, "a slow one")
            await pilot.pause(0.5)
            session.assistant("breaking news")
            await until(pilot, lambda: "breaking news" in text_of(browser))

        drive(machine, body, "session:slow-one")


def test_what_went_wrong_with_following_is_not_said_any_more_when_it_goes_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    refresh, problems = PagedSession.refresh, [Unavailable("the disk is away for a moment")]

    def refused(self: PagedSession) -> MoveResult:
        if problems:
            raise problems[0]
        return refresh(self)

    monkeypatch.setattr(PagedSession, "refresh", refused)
    monkeypatch.setattr(reading, "_REFRESH_S", 0.1)

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "answer 59 is fine")
        await until(pilot, lambda: "away for a moment" in lines(browser)[-1])
        problems.clear()
        await until(pilot, lambda: "at the end" in lines(browser)[-1])

    drive(machine, body, "session:talk-one")


def test_words_that_look_like_a_fold_are_none(machine: Machine):
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id="fold-one") as session:
        session.user("Press Save (Enter) to continue")
        session.assistant("x" * 70 + " and so…")
        session.append(Message(role="assistant", blocks=[ToolCall(id="c", name="bash", input={"command": "ls"})]))
        out = "\n".join(f"line {line}" for line in range(30))
        session.append(Message(role="tool", blocks=[ToolResult(call="c", content=out)]))

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "… 18 more lines (Enter)")
        await pilot.press("enter")
        await until(pilot, lambda: "line 20" in text_of(browser))

    drive(machine, body, "session:fold-one", size=(80, 50))


def test_what_somebody_says_of_another_agents_session_is_shown_and_found(machine: Machine):
    name = "claude-code:marked11"
    machine.claude("marked11")
    with turnlog.open(str(machine.home)) as home:
        marks = mark_title(name, "The blue parser"), mark_tag(name, "urgent", True), mark_tag(name, "star", True)
        append_marks(interior(home).creator, *marks, mark_note(name, "ask Zebedee \x1b]0;owned\x07 first"))
    with Catalog(str(machine.home), agents=True) as catalog:
        catalog.sync()

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await until(pilot, lambda: lines(browser)[-1].startswith("1 session "))
        assert "The blue parser (#urgent, #star)" in lines(browser)[1]
        await pilot.press("enter")
        await until(pilot, lambda: "#urgent #star 1 note" in lines(browser)[0])
        assert lines(browser)[0].startswith("The blue parser  #urgent")
        await pilot.press("home")
        await until(pilot, lambda: "ask Zebedee \\x1b]0;owned\\x07 first" in text_of(browser))
        await pilot.press("end", "slash", *"Zebedee", "enter")
        await until(pilot, lambda: "ask Zebedee" in text_of(browser))
        await pilot.press("q")
        await until(pilot, lambda: lines(browser)[-1].startswith("1 session "))

    for query in ("is:starred tag:urgent blue", "Zebedee"):
        drive(machine, body, query)


def test_the_next_match_is_the_next_one_also_in_another_width_and_unfolded(machine: Machine):
    with Catalog(str(machine.home), agents=True) as catalog, open_home(str(machine.home)) as home:
        desk = Desk(home, catalog, str(machine.home))
        with home.create(id="wide-one", workspace=machine.work) as session:
            session.user("\n\n".join(f"{'a long line ' * 12} needle {number} and more" for number in range(6)))
        catalog.sync()
        viewed = desk.open(catalog.find("wide-one"))
        paged = PagedSession(viewed, replace(STYLE, room=100), 200)
        numbers: list[str] = []

        def find(by: int) -> None:
            paged.find(pattern, by)
            hit = paged.finder.hit()
            assert hit is not None
            numbers.extend(re.findall(r"needle (\d)", bare(paged.cache.lines(hit.piece)[hit.line])))

        pattern = re.compile("needle")
        find(1)
        find(1)
        for room in (40, 200, 60):
            paged.resize(replace(STYLE, room=room), 200)
            find(1)
        find(-1)
        assert numbers == ["0", "1", "2", "3", "4", "3"]
        desk.close()


def test_a_find_goes_on_from_the_top_of_the_screen_and_says_where_it_begins_anew(machine: Machine):
    with Catalog(str(machine.home), agents=True) as catalog, open_home(str(machine.home)) as home:
        desk = Desk(home, catalog, str(machine.home))
        with home.create(id="long-one", workspace=machine.work) as session:
            for number in (1, 2):
                session.user(f"needle {number}")
                session.assistant(
                    "\n\n".join(f"needle {number}{line}" if line in (0, 59) else "x" for line in range(60))
                )
        catalog.sync()
        paged = PagedSession(desk.open(catalog.find("long-one")), replace(STYLE, room=100), 20)
        pattern = re.compile("needle")

        def found(by: int) -> tuple[str, str]:
            result = paged.find(pattern, by)
            hit = paged.finder.hit()
            assert hit is not None
            return bare(paged.cache.lines(hit.piece)[hit.line]).strip(), result.message

        paged.to_beginning()
        paged.scroll(30)
        assert found(1) == ("needle 159", "")
        assert [found(1) for _ in range(4)] == [
            ("needle 2", ""), ("needle 20", ""), ("needle 259", ""), ("needle 1", "from the beginning on"),
        ]  # fmt: skip
        pattern = re.compile("needle ")
        paged.to_end()
        paged.scroll(-30)
        assert found(-1) == ("needle 20", "")
        desk.close()


def test_all_lines_of_a_long_change_can_be_reached(machine: Machine, tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    with (
        turnlog.open(str(machine.home)) as home,
        home.create(id="long1", workspace=work, title="t") as session,
        session.turn(),
    ):
        session.user("write much")
        for name in ("a", "b", "c"):
            (work / name).write_text("".join(f"{name}{number}\n" for number in range(1, 101)))
    with Catalog(str(machine.home), agents=True) as catalog:
        catalog.sync()

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "write much")
        await pilot.press("d")
        await until(pilot, lambda: "3 files" in lines(browser)[0])
        await pilot.press("enter", "down", "enter")
        await pilot.press(*["pageup"] * 16)
        for key in ("pagedown", "pageup"):
            seen: set[str] = set()
            for _ in range(16):
                seen |= set(re.findall(r"\+([ab]\d+)", text_of(browser)))
                await pilot.press(key)
            assert seen == {f"{name}{number}" for name in "ab" for number in range(1, 101)}
        for _ in range(16):
            await pilot.press("pagedown")
        assert re.match(r"created +c", lines(browser)[-2])
        await pilot.press("enter")
        assert "+c1" not in text_of(browser), "its lines are below"
        await pilot.press("pagedown")
        assert "+c2" in text_of(browser)
        await pilot.press("down", "up", "up")
        assert re.match(r"created +a", lines(browser)[1])

    drive(machine, body, "session:long1")


def test_a_conversation_does_not_wait_until_files_are_compared(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun, goes_on = threading.Event(), threading.Event()
    diff = ReadOnlySession.diff

    def slowly(self: ReadOnlySession, *args: Any, **more: Any) -> Any:
        begun.set()
        assert goes_on.wait(60)
        return diff(self, *args, **more)

    place = tmp_path / "compared"
    place.mkdir()
    with (
        turnlog.open(str(machine.home), checkpoints=True) as home,
        home.create(id="compared-one", workspace=place) as session,
        session.turn(),
    ):
        session.user("write it")
        (place / "a.txt").write_text("one\n")
        session.assistant("wrote it")
    monkeypatch.setattr(ReadOnlySession, "diff", slowly)

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "wrote it")
        await pilot.press("d")
        await until(pilot, begun.is_set)
        await pilot.press("q", "y")
        await until(pilot, lambda: "copied: turnlog resume compared-one" in lines(browser)[-1])
        await pilot.press("[")
        await until(pilot, lambda: "no prompt above" in lines(browser)[-1])
        goes_on.set()

    try:
        drive(machine, body, "session:compared-one")
    finally:
        goes_on.set()


def test_a_plan_is_of_the_turn_that_is_shown(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = tmp_path / "work"
    work.mkdir()
    with turnlog.open(str(machine.home)) as home, home.create(id="turns2", workspace=work, title="t") as session:
        for name in ("a", "b"):
            with session.turn():
                session.user(f"write {name}")
                (work / name).write_text("new\n")
    with Catalog(str(machine.home), agents=True) as catalog:
        catalog.sync()
    wait = threading.Event()
    targets: list[str] = []

    def slowly(home: Any, id: str, target: str, room: int) -> Any:
        targets.append(target)
        wait.wait(20)
        return ask_plan(home, id, target, room)

    monkeypatch.setattr("turnlog.tui.screens.changes.ask_plan", slowly)

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "write b")
        await pilot.press("d")
        await until(pilot, lambda: "Turn 2" in lines(browser)[0] and "write b" in lines(browser)[0])
        await pilot.press("R")
        await until(pilot, lambda: targets == ["turn:2"])
        await pilot.press("[")
        wait.set()
        await until(pilot, lambda: "Turn 1 · 1 file" in lines(browser)[0])
        assert "Do exactly this?" not in text_of(browser)
        await pilot.press("R")
        await until(pilot, lambda: "Do exactly this?" in lines(browser)[-1])
        assert browser.screen.taking_back.plan.target == "turn:1"  # pyright: ignore[reportAttributeAccessIssue]
        await pilot.press("y")
        await until(pilot, lambda: "takes it back" in text_of(browser))
        assert sorted(path.name for path in work.iterdir()) == []

    drive(machine, body, "session:turns2")


def test_of_turns_without_checkpoints_no_changes_are_shown(machine: Machine):
    with (
        turnlog.open(str(machine.home), checkpoints=False) as home,
        home.create(id="bare1", title="t") as session,
        session.turn(),
    ):
        session.user("say something")
    with Catalog(str(machine.home), agents=True) as catalog:
        catalog.sync()

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "say something")
        await pilot.press("d")
        await until(pilot, lambda: "no checkpoint was taken in it" in lines(browser)[-1])

    drive(machine, body, "session:bare1")


def test_a_turn_is_taken_back_after_its_plan_was_shown_and_confirmed(machine: Machine, tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    with (
        turnlog.open(str(machine.home)) as home,
        home.create(id="turns1", workspace=work, title="t") as session,
        session.turn(),
    ):
        session.user("add a line")
        (work / "a.txt").write_text("one\ntwo\n")
        (work / "b.txt").write_text("new\n")
    with Catalog(str(machine.home), agents=True) as catalog:
        catalog.sync()

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "add a line")
        await pilot.press("d")
        await until(pilot, lambda: "Turn 1 · 2 files, +2 -0: add a line" in lines(browser)[0])
        await pilot.press("enter")
        await until(pilot, lambda: "+two" in text_of(browser))
        await pilot.press("R")
        await until(pilot, lambda: "Do exactly this?" in lines(browser)[-1])
        assert "modify    a.txt" in text_of(browser)
        await pilot.press("n")  # anything but y
        await until(pilot, lambda: "Do exactly this?" not in text_of(browser))
        assert (work / "b.txt").exists()
        await pilot.press("R")
        await until(pilot, lambda: "Do exactly this?" in lines(browser)[-1])
        (work / "a.txt").write_text("somebody else\n")  # another plan than was shown: nothing is done
        await pilot.press("y")
        await until(pilot, lambda: "something changed since the plan was shown" in lines(browser)[-1])
        assert (work / "b.txt").exists()
        (work / "a.txt").write_text("one\ntwo\n")
        await pilot.press("escape", "R")
        await until(pilot, lambda: "Do exactly this?" in lines(browser)[-1])
        await pilot.press("y")
        await until(pilot, lambda: "`turnlog undo -s turns1` takes it back" in text_of(browser))
        assert (work / "a.txt").read_text() == "one\n"
        assert not (work / "b.txt").exists()

    drive(machine, body, "session:turns1")


def test_a_day_at_the_end_of_the_calendar_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    path = machine.claude("odd")
    path.write_text(re.sub(r'"timestamp": "[^"]*"', '"timestamp": "9999-12-31T23:59:59.999999Z"', path.read_text()))
    with open_home(str(machine.home)) as home, machine.catalog() as catalog:
        desk = Desk(home, catalog, str(machine.home))
        frame = PagedSession(desk.open(catalog.find("odd")), STYLE, 40).frame()
        desk.close()
    assert "9999-12-31" in "".join(frame.lines)


def test_what_was_found_on_a_branch_that_was_left_is_told_with_the_way_there(machine: Machine):
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id="parted1") as session:
        first = session.user("where it begins")
        left = session.user("a quince on the other way")
        session.rewind(to=first)
        session.user("the way that was taken")
    with Catalog(str(machine.home), agents=True) as catalog:
        catalog.sync()

    async def body(pilot: Pilot[Any], browser: Browser) -> None:
        await opened(pilot, browser, "the way that was taken")
        await until(pilot, lambda: f"`turnlog show parted1 --at {left.seq}`" in lines(browser)[-1])

    drive(machine, body, "quince", size=(120, 24))
    with turnlog.open(str(machine.home)) as home:
        home.delete("parted1")


@pytest.mark.parametrize("text", ["the login page", "a Login-Page", "login, page 3", "login\npage"])
def test_a_phrase_is_found_where_the_search_found_it(text: str):
    pattern = pattern_of('"login page" other')
    assert pattern is not None
    assert pattern.search(text)
    assert not pattern.search("login to a page")
