"""What turns changed, what it would take to take them back, and doing exactly that; export, tree, stats and usage."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.web.conftest import HOSTILE, Outline, Served, furnish
from turnlog import Usage
from turnlog.reader.export.document import ENDINGS

PAGES = ("/usage", "/usage?by=day&since=", "/s/work-one/changes", "/s/work-one/changes?all=1",
         "/s/work-one/rewind?to=turn:2",
         "/s/work-one/tree", "/s/work-one/stats", "/s/talk-one/changes", "/s/talk-one/tree", "/s/talk-one/stats",
         "/s/evil-one/stats", "/s/evil-one/tree", "/s/claude-code%3Aaaaa1111/stats", "/s/claude-code%3Aaaaa1111/tree",
         "/s/codex%3Abbbb2222/changes", "/compare?a=work-one", "/compare?a=work-one&b=talk-one",
         "/compare?a=evil-one&b=claude-code%3Aaaaa1111",
         "/compare?a=codex%3Abbbb2222&b=claude-code%3Aaaaa1111")  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(tmp_path_factory.mktemp("web"), patch)
        furnish(machine)
        place = machine.folder / "project"
        place.mkdir()
        (place / ".gitignore").write_text("*.env\n")
        (place / "a.py").write_text("one\ntwo\n")
        with turnlog.open(str(machine.home), checkpoints=True) as home:
            session = home.create(id="work-one", workspace=place, title="Work")
            with session.turn():
                session.user("first, please")
                (place / "a.py").write_text("one\nthree\n")
                (place / f"{'<img>'}.txt").write_text("new\n")
                (place / "key.env").write_text("SECRET=hunter2hunter2\n")
                session.assistant("did it", model="claude-sonnet-4-5", usage=Usage(input_tokens=1000, output_tokens=10))
            with session.turn():
                session.user("second, please")
                (place / "a.py").unlink()
                (place / "b.bin").write_bytes(b"\0\1\2")
                session.assistant("deleted")
            session.close()
        running = Served(machine)
        yield running
        assert running.stop()[0] == 0


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_whole_and_runs_nothing(served: Served, path: str):
    page = served.ask(path)
    assert page.status == 200
    assert page.text.count("<h1") == page.text.count("<main") == 1
    assert HOSTILE not in page.text
    for tag, attributes in Outline(page.text).tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        assert tag != "script" or attributes.get("src") == "/static/script.js"
        if tag == "svg" and attributes.get("role"):
            assert attributes.get("aria-label")
    assert page.text.count("<svg role") <= page.text.count("<table")


def changes(page_text: str) -> dict[str, str]:
    found = re.findall(r'data-testid="change" data-path="([^"]*)"(.*?)</details>', page_text, re.DOTALL)
    return {unescape(path): body for path, body in found}


def test_a_turn_shows_its_files_and_lines_whatever_did_it(served: Served):
    first = changes(served.get("/s/work-one/changes", turn="1").text)
    assert "<del>-two</del>" in first["a.py"]
    assert "<ins>+three</ins>" in first["a.py"]
    assert "created" in first["<img>.txt"]
    last = changes(served.get("/s/work-one/changes").text)
    assert "deleted" in last["a.py"]
    assert "No lines to show" in last["b.bin"]
    whole = changes(served.get("/s/work-one/changes", all="1").text)
    assert "deleted" in whole["a.py"]
    assert "<img>.txt" in whole
    text = served.get("/s/work-one/changes", turn="1").text
    assert "hunter2" not in text
    assert "turn%3A1" in text
    assert served.get("/s/work-one/changes", turn="9").status == 404
    assert changes(served.get("/s/work-one/changes", **{"from": "turn:1", "to": "turn:2"}).text).keys() >= {"a.py"}


def test_turns_without_checkpoints_are_not_listed_and_keep_their_numbers(served: Served):
    place = served.machine.folder / "half"
    place.mkdir()
    with turnlog.open(str(served.machine.home), checkpoints=False) as home:
        for name in ("bare-one", "half-one"):
            with home.create(id=name, workspace=place, title="Half") as session, session.turn():
                session.user("before any checkpoint")
    for query in ({}, {"all": "1"}):
        assert served.get("/s/bare-one/changes", **query).testids("empty") == 1
    with turnlog.open(str(served.machine.home), checkpoints=True) as home, home.resume("half-one") as session:
        for number in (2, 3):
            with session.turn():
                session.user(f"turn {number}")
                (place / f"{number}.txt").write_text("new\n")
    assert list(changes(served.get("/s/half-one/changes").text)) == ["3.txt"]
    page = served.get("/s/half-one/changes", turn="2")
    assert list(changes(page.text)) == ["2.txt"]
    assert "before any checkpoint" not in page.text
    assert not page.found("Turn before")
    assert page.found(r'turn=3"[^>]*>Next turn')
    assert list(changes(served.get("/s/half-one/changes", all="1").text)) == ["2.txt", "3.txt"]
    missing = served.get("/s/half-one/changes", turn="1")
    assert missing.status == 404
    assert "no turn &#x27;1&#x27; with checkpoints" in missing.text
    assert "Perhaps" not in missing.text


def test_the_outline_says_what_each_prompt_changed_once_somebody_asked(served: Served):
    with turnlog.open(str(served.machine.home), checkpoints=True) as home:
        place = served.machine.folder / "counted"
        place.mkdir()
        with home.create(id="counted-one", workspace=place) as session:
            with session.turn():
                session.user("write it")
                (place / "a.txt").write_text("one\ntwo\n")
                (place / "b.txt").write_text("three\n")
            with session.turn():
                session.user("leave it")
            session.user("outside of a turn")
    page = served.get("/s/counted-one").text
    assert 'data-more="1"' in page
    assert "files</small>" not in page, "a page does not wait for it"
    outline = served.get("/s/counted-one/outline", first="0").text
    assert re.findall(r">([^<]+)</a><small>([^<]+)</small>", outline) == [("write it", "+3 −0, 2 files")]
    again = served.get("/s/counted-one").text
    assert "data-more" not in again
    assert "+3 −0, 2 files" in again
    assert "data-more" not in served.get("/s/talk-one").text, "there are no turns with checkpoints"


def plan_in(text: str) -> tuple[dict[str, str], str]:
    plan = re.search(r'data-testid="plan">(.*?)</div>\s*(?:<p>|<noscript>|$)', text, re.DOTALL)
    assert plan is not None
    paths = dict(re.findall(r"<td>(\w+)</td><td><code data-path=\"([^\"]*)\"", plan[1]))
    stamp = re.search(r'data-plan="([^"]+)"', text)
    return {unescape(path): action for action, path in paths.items()}, stamp[1] if stamp else ""


def test_what_is_confirmed_is_what_was_shown_and_can_be_undone(served: Served):
    place = served.machine.folder / "project"
    after = everything(place)
    page = served.get("/s/work-one/rewind", to="turn:2")
    paths, stamp = plan_in(page.text)
    assert (paths["a.py"], paths["b.bin"]) == ("create", "delete")
    assert page.testids("confirm") == 1
    assert "<noscript><p><code>turnlog rewind turn:2 -s work-one</code></p></noscript>" in page.text
    assert everything(place) == after  # a look changes nothing
    (place / "b.bin").write_bytes(b"somebody")
    refused = served.post("/s/work-one/rewind?to=turn%3A2", {"plan": stamp})
    assert refused.status == 409
    assert everything(place) == {**after, "b.bin": b"somebody"}
    (place / "b.bin").write_bytes(after["b.bin"])
    _, stamp = plan_in(served.get("/s/work-one/rewind", to="turn:2").text)
    done = served.post("/s/work-one/rewind?to=turn%3A2", {"plan": stamp})
    assert done.status == 200, done.text
    assert everything(place)["a.py"] == b"one\nthree\n"
    assert "b.bin" not in everything(place)
    told = served.ask(json.loads(done.body)["address"])
    assert "Done: rewind" in told.text
    assert "<p>Files: 1 created, 1 deleted</p>" in told.text
    [undo] = told.found(r'<a href="([^"]+)" data-testid="undo"')
    assert served.post("/s/work-one/rewind?to=turn%3A2", {"plan": stamp}).status == 409
    text = served.ask(unescape(undo)).text
    assert "<noscript><p><code>turnlog undo -s work-one</code></p></noscript>" in text
    _, stamp = plan_in(text)
    assert served.post("/s/work-one/rewind?to=undo", {"plan": stamp}).status == 200
    assert everything(place) == after
    assert served.get("/s/work-one/rewind", to="nowhere").status == 404
    assert served.get("/s/codex%3Abbbb2222/rewind", to="1").status == 400
    assert served.post("/s/work-one/rewind?to=turn%3A2", {}).status == 400


@pytest.mark.parametrize("form", ["html", "markdown", "json", "jsonl"])
def test_an_export_is_a_download_without_secrets(served: Served, form: str):
    secret = "ghp_" + "a1B2c3D4" * 5
    with turnlog.open(str(served.machine.home)) as home:
        if not home.exists("secret-two"):
            home.create(id="secret-two").user(f"my token is {secret}")
    for name in ("secret-two", "claude-code:aaaa1111"):
        page = served.get(f"/s/{quote(name, safe='')}/export", to=form)
        assert page.status == 200
        assert page.headers["content-disposition"].startswith("attachment; filename=")
        assert secret not in page.text
    assert secret in served.get("/s/secret-two/export", to=form, redact="0").text


@pytest.mark.parametrize("form", ["exe", "", *ENDINGS])
def test_a_form_that_no_page_gives_is_an_error_in_words(served: Served, form: str):
    page = served.get("/s/codex%3Abbbb2222/export", to=form)
    assert page.status == 200 if form in ("html", "markdown", "json", "jsonl") else page.status == 400
    assert page.status == 200 or "no export to" in page.text


def test_usage_says_what_the_command_says(served: Served):
    from turnlog.catalog import Catalog
    from turnlog.view.number import dollars

    with Catalog(str(served.machine.home), agents=True) as catalog:
        *rows, total = catalog.usage(by="agent")
    page = served.get("/usage", by="agent", since="")
    told = page.found(r'data-testid="usage-total"[^>]*>([^<]+)')[0]
    assert told.startswith(dollars(total.tokens.cost_micros, is_partial=bool(total.unpriced)))
    for row in rows:
        assert f"{row.tokens.output_tokens:,}" in page.text
    assert served.get("/usage", by="nonsense").status == 400
    assert served.get("/usage", since='"><script>').status == 400


def test_a_fork_is_not_shown_below_a_session_that_has_the_id_of_its_parent(served: Served):
    with turnlog.open(str(served.machine.home)) as home:
        with home.create(id="reused-one", title="The first") as session:
            session.user("hello")
            session.fork(name="its fork").set("title", "The fork of the first")
        assert "The fork of the first" in served.get("/s/reused-one/tree").text
        home.delete("reused-one")
        home.purge("reused-one")
        with home.create(id="reused-one", title="The second") as session:
            session.user("hello again")
    assert "The fork of the first" not in served.get("/s/reused-one/tree").text


def test_stats_and_tree_of_a_session(served: Served):
    stats = served.get("/s/talk-one/stats").text
    assert "<td>bash</td>" in stats
    assert "Context, at most 1.1k tokens" in stats
    assert "Cost per prompt" in stats
    with turnlog.open(str(served.machine.home)) as home, home.create(id="tree-one", title="The trunk") as session:
        first = session.user("begin")
        session.user("one way")
        session.rewind(first.seq)
        session.user("another way")
        session.fork(at=first.seq, title="The fork").close()
    tree = served.get("/s/tree-one/tree").text
    assert "one way" in tree
    assert "the head" in tree
    assert "The fork" in tree
    [other] = re.findall(r'href="(/s/tree-one\?branch=\d+)"', tree)
    shown = served.ask(other).text
    assert "one way" in shown
    assert "another way" not in re.sub(r"<nav.*?</nav>", "", shown, flags=re.DOTALL)


def test_two_sessions_side_by_side_as_the_command_has_them(served: Served):
    with turnlog.open(str(served.machine.home)) as home, home.create(id="pair-one", title="One attempt") as session:
        first = session.user("begin")
        session.assistant("one way", usage=Usage(input_tokens=1234, output_tokens=5, cost_micros=20_000))
        left = session.head
        session.rewind(first.seq)
        session.assistant("another way", usage=Usage(input_tokens=77, output_tokens=5, cost_micros=10_000))
        with session.fork(at=first.seq, id="pair-two", title="Another attempt") as fork:
            fork.assistant("a third way")
            fork.user("and further")
    page = served.get("/compare", a="pair-one", b="pair-two").text
    assert "1 prompt, 1 message in common" in page
    assert page.count('data-testid="turn"') == 3
    for text in ("another way", "a third way", "and further", "<td>cost</td>", "$0.01", "<td>tokens in</td>"):
        assert text in page, text
    assert "one way" not in page
    branches = served.get("/compare", a="pair-one", b="pair-one", branch_b=str(left)).text
    assert "1,234" in branches
    assert f"branch_b={left}" in served.get("/s/pair-one/tree").text
    assert "/compare?a=pair-one" in served.get("/s/pair-one").text
    choice = served.get("/compare", a="pair-one").text
    assert re.findall(r"a=pair-one&amp;b=([\w.:%-]+)", choice)[0] == "pair-two", "what is nearest comes first"


def test_files_side_by_side_and_another_agents_session(served: Served):
    page = served.get("/compare", a="work-one", b="claude-code:aaaa1111").text
    assert "Nothing in common" in page
    assert re.search(r"<code>b\.bin</code></td><td>created", page)
    assert "<td>not known</td>" in page.replace(' class="right"', "")
    assert "hunter2" not in page


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("a=work-one&b=no-such", 404), ("a=work-one&b=work-one&branch_a=x", 400),
     ("a=work-one&b=work-one&branch_b=9999", 404)],
)  # fmt: skip
def test_what_cannot_be_compared_is_told(served: Served, query: str, status: int):
    page = served.ask(f"/compare?{query}")
    assert page.status == status
    assert 'role="alert"' in page.text
