"""The pages in a real browser: `make test-web`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

pytest.importorskip("playwright", reason="`make test-web` installs what drives a browser")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

import turnlog
from tests.catalog.machine import Machine
from tests.web.browser import launched
from tests.web.conftest import Served, furnish
from turnlog import Message, Text, ToolCall, ToolResult

LONG = 12_000
ALL = (
    "/", "/?q=haystack3", "/?q=nothingatall", "/?q=since:nonsense", "/help", "/usage", "/usage?by=agent&since=",
    "/nowhere", "/s/talk-one", "/s/talk-one?q=haystack3", "/s/claude-code%3Aaaaa1111", "/s/codex%3Abbbb2222",
    "/s/evil-one", "/s/work-one/changes", "/s/work-one/rewind?to=turn:1", "/s/talk-one/tree", "/s/talk-one/stats",
    "/s/evil-one/stats", "/s/evil-one/tree", "/s/long-one/stats", "/s/claude-code%3Aaaaa1111/stats",
    "/compare?a=work-one", "/compare?a=talk-one&b=evil-one", "/compare?a=work-one&b=none",
    "/compare?a=codex%3Abbbb2222&b=claude-code%3Aaaaa1111",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = launched(playwright)
        yield made
        made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(tmp_path_factory.mktemp("browser"), patch)
        furnish(machine)
        place = machine.folder / "project"
        place.mkdir()
        (place / "a.py").write_text("one\ntwo\n")
        with turnlog.open(str(machine.home), checkpoints=True, durability="flush") as home:
            with home.create(id="work-one", workspace=place, title="Work") as session, session.turn():
                session.user("change it, please")
                (place / "a.py").write_text("one\nthree\n")
                session.assistant("did it")
            with home.create(id="long-one", title="A long one") as session:
                for start in range(0, LONG, 100):
                    drafts: list[Any] = []
                    for number in range(start, start + 100, 4):
                        call = ToolCall(id=f"c{number}", name="bash", input={"command": f"ls {number}"})
                        drafts += [
                            Message(role="user", blocks=[Text(text=f"prompt {number}")]),
                            Message(role="assistant", blocks=[Text(text="I look"), call]),
                            Message(role="tool", blocks=[ToolResult(call=call.id, content=f"output {number}\n" * 9)]),
                            Message(role="assistant", blocks=[Text(text=f"answer {number}")]),
                        ]
                    session.append(*drafts)
        running = Served(machine)
        yield running
        assert running.stop()[0] == 0


class Watched:
    """A context in which everything that should not happen is noted."""

    def __init__(self, served: Served, context: BrowserContext) -> None:
        self.served, self.context = served, context
        self.problems: list[str] = []
        self.page = self.open()
        self.page.goto(served.url)

    def open(self) -> Page:
        page = self.context.new_page()
        page.on("dialog", lambda dialog: (self.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: self.problems.append(f"error {error}"))
        page.on(
            "console",
            lambda said: said.type == "error" and "status of 4" not in said.text and self.problems.append(said.text),
        )
        page.on("request", lambda asked: self._is_ours(asked.url) or self.problems.append(f"asked {asked.url}"))
        return page

    def _is_ours(self, url: str) -> bool:
        return url.startswith((f"http://127.0.0.1:{self.served.port}/", "data:", "blob:"))

    def go(self, path: str) -> Page:
        self.page.goto(f"http://127.0.0.1:{self.served.port}{path}")
        return self.page


def watched(served: Served, browser: Browser, **options: Any) -> Watched:
    return Watched(served, browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options}))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_every_page_is_accessible_and_runs_nothing_of_what_it_shows(
    served: Served, browser: Browser, scheme: Any, width: int
):
    there = watched(served, browser, viewport={"width": width, "height": 800}, color_scheme=scheme)
    for path in ALL:
        page = there.go(path)
        page.locator("h1").wait_for(state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = Axe().run(page)
        serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        told = [(path, one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in serious]
        assert not told
    assert there.problems == []
    there.context.close()


def test_everything_can_be_read_without_a_script(served: Served, browser: Browser):
    there = watched(served, browser, java_script_enabled=False)
    page = there.go("/")
    page.get_by_test_id("search").fill("haystack3")
    page.get_by_test_id("search").press("Enter")
    page.get_by_test_id("hit").locator("a").first.click()
    expect(page.locator("article.asked mark").first).to_be_visible()
    there.go("/s/talk-one")
    page.get_by_text("Earlier:").click()
    assert "from=" in page.url
    there.go("/s/work-one/changes")
    page.get_by_test_id("change").locator("summary").click()
    expect(page.locator("ins", has_text="+three")).to_be_visible()
    there.go("/usage")
    expect(page.get_by_test_id("usage-total")).to_be_visible()
    there.context.close()


def test_every_page_has_its_words_without_a_script_and_no_button_that_does_nothing(served: Served, browser: Browser):
    there = watched(served, browser, java_script_enabled=False, viewport={"width": 390, "height": 800})
    for path in ALL:
        page = there.go(path)
        assert page.locator("main").inner_text().strip(), path
        assert page.locator("button:visible").evaluate_all("all => all.map((one) => one.type)") in ([], ["submit"]), (
            path
        )
    page = there.go("/s/work-one")
    expect(page.locator("noscript code")).to_have_text("turnlog resume work-one --exec")
    there.context.close()


def reached(page: Page, wanted: set[str], keys: int = 90) -> set[str]:
    """Which of these a person comes by who presses Tab again and again."""
    found: set[str] = set()
    for _ in range(keys):
        page.keyboard.press("Tab")
        name = page.evaluate("(document.activeElement.innerText || document.activeElement.ariaLabel || '').trim()")
        found |= wanted & {name}
        if found == wanted:
            break
    return found


def test_every_action_is_reached_by_the_keyboard(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/work-one")
    above = {"rename", "Copy resume command", "Go on in", "Export", "Compare", "More", "Changes", "Tree", "Stats"}
    assert reached(page, above | {"fork from here"}) == above | {"fork from here"}
    page = there.go("/s/work-one")
    assert reached(page, {"More"}) == {"More"}
    page.keyboard.press("Enter")
    hidden = {"Show without secrets", "Fork at its end", "Delete, to the trash"}
    assert reached(page, hidden, 5) == hidden
    page = there.go("/s/work-one")
    assert reached(page, {"Go on in"}) == {"Go on in"}
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="gemini-cli")).to_be_visible()
    assert reached(page, {"codex"}, 9) == {"codex"}
    page = there.go("/s/work-one/changes?turn=1")
    wanted = {"Whole session", "Show", "Take back turn 1 and what came after …"}
    assert reached(page, wanted) == wanted
    page.keyboard.press("Enter")
    page.get_by_test_id("confirm").wait_for()
    assert reached(page, {"Do exactly this", "Leave everything as it is"}) == {
        "Do exactly this",
        "Leave everything as it is",
    }
    page = there.go("/")
    chips = {"today", "7 days", "codex", "Cost", "Turns", "Usage", "Theme: system", "?"}
    assert reached(page, chips) == chips
    assert there.problems == []
    there.context.close()


def test_typing_narrows_and_keys_open_move_and_close(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/")
    rows = page.get_by_test_id("session")
    everything = rows.count()
    page.keyboard.press("/")
    expect(page.get_by_test_id("search")).to_be_focused()
    page.keyboard.type("haystack3 jk?u")
    page.get_by_test_id("search").fill("login page")
    expect(rows).to_have_count(1)
    assert "q=login" in page.url
    page.get_by_test_id("search").fill("")
    expect(rows).to_have_count(everything)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(rows.first.locator("a").first).to_be_focused()
    name = rows.first.get_attribute("data-name") or ""
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("conversation")).to_have_attribute("data-name", name)
    expect(page.locator("html.js")).to_be_attached()  # keys are heard from here on
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("u")
    expect(rows).to_have_count(everything)
    assert there.problems == []
    there.context.close()


def test_a_long_session_stays_small_wherever_one_reads(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/long-one")
    last = page.locator(f"article[aria-posinset='{LONG * 3 // 4}']")
    expect(last).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(page.locator("article[aria-posinset='1']")).to_be_in_viewport()
    for _ in range(12):
        page.mouse.wheel(0, 6000)
        page.wait_for_timeout(80)
    places = [int(place) for place in page.locator("article").evaluate_all("all => all.map((one) => one.ariaPosInSet)")]
    assert places == list(range(places[0], places[0] + len(places)))
    assert places[-1] > 120
    assert page.evaluate("document.querySelectorAll('*').length") < 5000
    page.keyboard.press("End")
    expect(last).to_be_in_viewport()
    there.go("/s/long-one?at=6000")
    expect(page.locator("article.asked")).to_be_in_viewport()
    page.locator("nav.outline a[data-seq]").nth(5).click()
    expect(page.locator("article:focus")).to_be_in_viewport()
    assert there.problems == []
    there.context.close()


def stays_where_it_is(page: Page, append: Callable[[str], object]) -> None:
    """What is appended while somebody reads above is told of, and moves nothing; a click goes there."""
    article = page.locator("article").nth(20)
    article.scroll_into_view_if_needed()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    before = page.evaluate("scrollY"), article.bounding_box()
    append("more of it")
    expect(page.get_by_test_id("new")).to_be_visible()
    expect(page.get_by_text("more of it")).not_to_be_in_viewport()
    assert (page.evaluate("scrollY"), article.bounding_box()) == before
    page.get_by_test_id("new").click()
    expect(page.get_by_text("more of it")).to_be_in_viewport()
    expect(page.get_by_test_id("new")).to_be_hidden()


def test_news_comes_at_the_end_and_moves_nobody_who_reads_above(served: Served, browser: Browser):
    there = watched(served, browser)
    with turnlog.open(str(served.machine.home)) as home, home.create(id="live-two", title="Live") as session:
        for number in range(30):
            session.user(f"ask {number}")
            session.assistant("well\n\n" * 10)
        page = there.go("/s/live-two")
        expect(page.get_by_test_id("live")).to_have_attribute("data-state", "live")
        session.assistant("breaking news")
        expect(page.get_by_text("breaking news")).to_be_in_viewport()
        stays_where_it_is(page, session.assistant)
        session.close()
        home.delete("live-two")
        home.purge("live-two")
    expect(page.get_by_role("alert")).to_contain_text("live-two")
    assert there.problems == []
    there.context.close()


def test_another_agents_news_come_as_ours_do(served: Served, browser: Browser):
    """Its file grows, and nobody tells us."""
    path = served.machine.claude("cccc3333", 30)

    def says(text: str) -> None:
        last = json.loads(path.read_text().splitlines()[-1])
        said = {**last["message"], "id": f"msg_{uuid4().hex}", "content": [{"type": "text", "text": text}]}
        with path.open("a") as file:
            record = {**last, "uuid": str(uuid4()), "parentUuid": last["uuid"], "message": said}
            file.write(json.dumps(record) + "\n")

    there = watched(served, browser, viewport={"width": 1280, "height": 400})
    page = there.go(f"/s/{quote('claude-code:cccc3333', safe='')}")
    expect(page.get_by_test_id("live")).to_have_attribute("data-state", "live")
    says("breaking news")
    expect(page.get_by_text("breaking news")).to_be_in_viewport()
    stays_where_it_is(page, says)
    path.unlink()
    expect(page.get_by_role("alert")).to_contain_text("cccc3333")
    assert there.problems == []
    there.context.close()


def test_what_is_erased_leaves_the_page_of_who_reads_above(served: Served, browser: Browser):
    with turnlog.open(str(served.machine.home)) as home, home.create(id="erased-one", title="Erased") as session:
        secret = 0
        for number in range(150):
            asked = session.user(f"ask {number}" + ("\n\nmy zebra is in the attic" if number == 5 else ""))
            secret = asked.seq if number == 5 else secret
            session.assistant("well\n\n" * 3)
        there = watched(served, browser)
        page = there.go("/s/erased-one?from=0")
        expect(page.get_by_test_id("live")).to_have_attribute("data-state", "live")
        expect(page.locator("article").get_by_text("my zebra is in the attic")).to_be_visible()
        below = page.get_by_text("ask 7", exact=True).first
        below.scroll_into_view_if_needed()
        before = below.bounding_box()
        session.erase(secret, reason="asked for")
        expect(page.locator("article").get_by_text("my zebra is in the attic")).to_have_count(0, timeout=20_000)
        after = page.get_by_text("ask 7", exact=True).first.bounding_box()
        assert before is not None
        assert after is not None
        assert abs(before["y"] - after["y"]) < 60
        places = page.locator("article").evaluate_all("all => all.map((one) => Number(one.dataset.piece))")
        assert places == list(range(places[0], places[0] + len(places)))
    assert there.problems == []
    there.context.close()


def test_a_download_leaves_no_notice(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/talk-one")
    page.get_by_text("Export", exact=True).click()
    with page.expect_download():
        page.get_by_role("link", name="Markdown").click()
    page.wait_for_timeout(600)
    expect(page.locator("#waiting")).to_be_hidden()
    assert there.problems == []
    there.context.close()


def test_a_server_that_is_back_is_not_said_to_be_gone(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/long-one")
    page.route("**/s/long-one/rows?*", lambda route: route.abort())
    page.keyboard.press("Home")
    expect(page.locator("#waiting")).to_contain_text("The server is gone")
    page.unroute("**/s/long-one/rows?*")
    page.keyboard.press("Home")
    expect(page.locator("article[aria-posinset='1']")).to_be_in_viewport()
    expect(page.locator("#waiting")).to_be_hidden()
    there.context.close()


def test_words_that_cannot_be_looked_for_are_said_so(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/talk-one?q=agent%3A")
    page.keyboard.press("n")
    expect(page.locator("#waiting")).to_have_text("these words cannot be looked for")
    assert there.problems == []
    there.context.close()


def test_of_very_many_sessions_the_one_that_was_read_is_remembered(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/evil-one")
    names = ["evil-one", *(f"other-{number}" for number in range(2_000))]
    page.evaluate(
        "(names) => localStorage.setItem('turnlog-seen', "
        "JSON.stringify(Object.fromEntries(names.map((name) => [name, { at: 1, seq: 1 }]))))",
        names,
    )
    there.go("/s/evil-one")
    page.wait_for_timeout(300)
    seen = page.evaluate("JSON.parse(localStorage.getItem('turnlog-seen'))")
    assert seen["evil-one"]["at"] > 1
    assert "other-0" not in seen
    there.context.close()


def test_rename_and_take_a_turn_back_and_undo_it(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/work-one")
    page.get_by_test_id("title-edit").click()
    page.get_by_test_id("title-input").fill("Better work")
    page.get_by_test_id("title-input").press("Enter")
    expect(page.locator("h1")).to_have_text("Better work")
    expect(page).to_have_title("Better work · turnlog")
    file = Path(served.machine.folder / "project/a.py")
    page.get_by_role("link", name="Changes").click()
    page.get_by_text("Take back turn 1").click()
    expect(page.get_by_test_id("plan").locator("[data-path='a.py']")).to_be_visible()
    page.get_by_test_id("confirm").click()
    page.get_by_test_id("undo").click()
    assert file.read_text() == "one\ntwo\n"
    page.get_by_test_id("confirm").click()
    expect(page.get_by_text("Done: undo")).to_be_visible()
    assert file.read_text() == "one\nthree\n"
    assert there.problems == []
    there.context.close()


def test_words_are_walked_through_and_places_remembered(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/talk-one?q=case&from=0")
    page.keyboard.press("n")
    expect(page.locator("mark.now")).to_have_count(1)
    first = page.locator("mark.now").bounding_box()
    page.keyboard.press("n")
    assert page.locator("mark.now").bounding_box() != first
    page.get_by_role("button", name="Theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert there.problems == []
    there.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_exported_page_is_read_searched_and_unfolded_without_a_server(
    served: Served, browser: Browser, tmp_path: Path, scheme: Any
):
    with turnlog.open(str(served.machine.home)) as home, home.create(id=f"give-{scheme}", title="To give") as session:
        for number in range(40):
            session.user(f"ask {number}")
            call = ToolCall(id=f"r{number}", name="Read", input={"file_path": f"f{number}.py"})
            edit = {"file_path": "a.py", "old_string": "x = 1 # one", "new_string": 'return "two" # 2'}
            session.append(Message(role="assistant", blocks=[call, ToolCall(id=f"e{number}", name="Edit", input=edit)]))
            session.append(Message(role="tool", blocks=[
                ToolResult(call=call.id, content=f"def hidden{number}():\n    # reason{number}\n    return 1\n" * 9),
                ToolResult(call=f"e{number}", content="ok"),
            ]))  # fmt: skip
            session.assistant("It is\n\n```python\nprint('said')  # so\n```")
    path = tmp_path / "given.html"
    path.write_bytes(served.get(f"/s/give-{scheme}/export?to=html").body)
    place = path.as_uri()
    for width in (390, 1280, 1920):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(place)
        found = Axe().run(page)
        assert not [(one["id"], one["nodes"][0]["html"][:160]) for one in found.response["violations"]
                    if one["impact"] in ("serious", "critical")]  # fmt: skip
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("navigation", name="Prompts").get_by_text("ask 30", exact=True).click()
        expect(page.locator("article:target")).to_contain_text("ask 30")
        expect(page.locator("article:target")).to_be_in_viewport()
        hidden = page.locator("details.output pre", has_text="# reason7\n")
        expect(hidden).not_to_be_visible()
        page.get_by_label("Unfold everything").check()
        expect(hidden).to_be_visible()
        page.get_by_label("Unfold everything").uncheck()
        expect(hidden).not_to_be_visible()
        page.emulate_media(media="print")
        expect(hidden).to_be_visible()
        assert {url.partition("#")[0] for url in asked} == {place}
        context.close()
    page = browser.new_page()
    page.goto(f"{place}#:~:text=reason7")  # it is looked for as a person's find does
    expect(page.locator("details.output[open] pre", has_text="# reason7\n")).to_be_in_viewport()
    expect(page.locator("details.output[open]")).to_have_count(1)
    page.close()


def test_a_quick_answer_does_not_hide_that_a_slow_one_is_waited_for(served: Served, browser: Browser):
    there = watched(served, browser)
    held: list[Route] = []
    there.page.route("**/s/long-one/rows?*", lambda route: held.append(route))
    page = there.go("/s/long-one")
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator("#waiting")).to_have_text("Loading messages …")
    page.get_by_test_id("title-edit").click()
    page.get_by_test_id("title-input").fill("Still long")
    page.get_by_test_id("title-input").press("Enter")
    expect(page.locator("h1")).to_have_text("Still long")
    expect(page.locator("#waiting")).to_be_visible()
    for route in held:
        route.continue_()
    there.page.unroute("**/s/long-one/rows?*")
    expect(page.locator("#waiting")).to_be_hidden()
    assert there.problems == []
    there.context.close()


def test_a_followed_session_that_is_deleted_is_told_once(served: Served, browser: Browser):
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="gone-one") as session:
        session.user("hello")
    there = watched(served, browser)
    there.page.add_init_script(COUNTED)
    page = there.go("/s/gone-one")
    expect(page.get_by_test_id("live")).to_have_attribute("data-state", "live")
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("gone-one")
    expect(page.get_by_role("alert")).to_have_count(1, timeout=20_000)
    page.wait_for_timeout(6_000)
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_test_id("live")).to_have_attribute("data-state", "ended")
    page.evaluate(SEEN, True)
    page.evaluate(SEEN, False)
    assert page.evaluate("sources.filter((source) => source.readyState !== EventSource.CLOSED).length") == 0
    there.context.close()


def test_a_search_survives_that_the_list_changes_meanwhile(served: Served, browser: Browser):
    there = watched(served, browser)
    held: list[Route] = []
    there.page.route("**/?q=*", lambda route: held.append(route))
    page = there.go("/")
    field = page.get_by_test_id("search")
    field.fill("haystack3")
    while not held:
        page.wait_for_timeout(50)
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="other-one") as session:
        session.user("hello")
    for _ in range(200):
        if len(held) > 1:
            break
        page.wait_for_timeout(50)
    for route in held:
        route.continue_()
    page.unroute("**/?q=*")
    expect(page.get_by_test_id("session")).to_have_count(1)
    expect(page.get_by_test_id("session")).to_have_attribute("data-name", "talk-one")
    assert page.url.endswith("/?q=haystack3")
    there.context.close()


def test_a_place_that_is_chosen_while_messages_load_is_shown_after_that(served: Served, browser: Browser):
    there = watched(served, browser)
    held: list[Route] = []
    there.page.route("**/s/long-one/rows?*", lambda route: held.append(route))
    page = there.go("/s/long-one")
    page.evaluate("scrollTo(0, 0)")
    while not held:
        page.wait_for_timeout(50)
    page.keyboard.press("Home")
    page.wait_for_timeout(200)
    for route in held:
        route.continue_()
    there.page.unroute("**/s/long-one/rows?*")
    expect(page.locator('article[data-piece="0"]')).to_be_visible()
    assert there.problems == []
    there.context.close()


def test_an_enter_that_ends_a_composition_saves_no_title(served: Served, browser: Browser):
    there = watched(served, browser)
    page = there.go("/s/work-one")
    page.get_by_test_id("title-edit").click()
    field = page.get_by_test_id("title-input")
    field.fill("にほん")
    composed = 'new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true })'
    field.evaluate(f"(input) => input.dispatchEvent({composed})")
    page.wait_for_timeout(300)
    expect(field).to_be_visible()
    field.press("Escape")
    there.context.close()


COUNTED = """
const Real = EventSource;
window.sources = [];
window.EventSource = class extends Real { constructor(address) { super(address); sources.push(this); } };
EventSource.CLOSED = Real.CLOSED;
"""
SEEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def closed(page: Page, number: int) -> None:
    """Wait until there were so many connections, and the last one is closed."""
    for _ in range(200):
        if page.evaluate("[sources.length, sources.at(-1)?.readyState]") == [number, 2]:
            return
        page.wait_for_timeout(25)
    raise AssertionError(page.evaluate("sources.map((source) => source.readyState)"))


def test_a_page_that_is_hidden_does_not_connect_again_and_one_that_is_shown_does_so_once(
    served: Served, browser: Browser
):
    there = watched(served, browser)
    page = there.page
    page.add_init_script(COUNTED)
    page.route("**/s/talk-one/stream*", lambda route: route.fulfill(status=404, body="not now"))
    there.go("/s/talk-one")
    closed(page, 1)
    page.evaluate(SEEN, True)
    page.wait_for_timeout(2_500)
    assert page.evaluate("sources.length") == 1
    page.unroute("**/s/talk-one/stream*")
    page.evaluate(SEEN, False)
    expect(page.get_by_test_id("live")).to_have_attribute("data-state", "live")
    page.route("**/s/talk-one/stream*", lambda route: route.fulfill(status=404, body="not now"))
    page.evaluate(SEEN, True)
    page.evaluate(SEEN, False)
    closed(page, 3)
    page.unroute("**/s/talk-one/stream*")
    page.evaluate(SEEN, True)
    page.evaluate(SEEN, False)
    page.wait_for_timeout(2_500)
    assert page.evaluate("sources.filter((source) => source.readyState !== EventSource.CLOSED).length") == 1
    there.context.close()
