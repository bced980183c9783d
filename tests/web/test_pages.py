"""Every page over HTTP: what it shows, how it is asked for more, what it says when something is wrong."""

import json
import re
import signal
import subprocess
import threading
import time
from urllib.parse import quote

import pytest
from msgspec.structs import replace

import turnlog
from tests.web.conftest import HOSTILE, PNG, Outline, Served
from turnlog import Message, Text, Usage
from turnlog.catalog import FRESH_S
from turnlog.log.payload import digest
from turnlog.session.interior import interior
from turnlog.thread.home.foreignmarks import append_marks, mark_note, mark_tag

ONE = "talk-one"


def names(page_text: str) -> list[str]:
    return re.findall(r'data-testid="session" data-name="([^"]+)"', page_text)


def test_the_list_has_every_session_in_the_order_of_ls(served: Served):
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "turnlog", "--home", str(served.machine.home), "ls", "--all", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = [row["name"] for row in json.loads(done.stdout)["sessions"]]
    time.sleep(FRESH_S)  # the page may be so old, and other tests delete sessions
    page = served.get("/")
    assert names(page.text) == wanted
    assert f'role="status">{len(wanted)} sessions' in page.text
    assert page.text.count("<h1") == page.text.count("<main") == 1
    assert "urgent" in page.text
    assert "Fix the login page" in page.text


def test_words_find_sessions_and_places_and_titles(served: Served):
    page = served.get("/", q="haystack3")
    assert names(page.text) == [ONE]
    [hit] = page.found(r'data-testid="hit"><a href="([^"]+)"')
    assert "<mark>haystack3</mark>" in page.text
    shown = served.ask(hit.replace("&amp;", "&"))
    assert 'class="assistant asked"' in shown.text
    assert "<mark>haystack3</mark>" in shown.text
    assert ONE in names(served.get("/", q="login page").text)
    assert names(served.get("/", q="agent:codex").text) == ["codex:bbbb2222"]
    assert names(served.get("/", q="haystack3 agent:codex").text) == []


def test_a_word_that_is_still_being_typed_finds_what_begins_so(served: Served):
    page = served.get("/", q="agent:codex needl")
    assert names(page.text) == ["codex:bbbb2222"]
    assert "<mark>" in page.text
    assert names(served.get("/", q="haystack3 graspe").text) == names(served.get("/", q="haystack3").text)
    whole = served.get("/", q="fine")
    assert names(whole.text) == [ONE], "a whole word is only itself"
    assert "q=fine%2A" not in whole.text
    [hit, *_] = served.get("/", q="haysta").found(r'data-testid="hit"><a href="([^"]+)"')
    assert "<mark>haysta" in served.ask(hit.replace("&amp;", "&")).text


def test_nothing_fits_says_what_to_leave_out(served: Served):
    page = served.get("/", q="tag:nowhere case")
    assert page.testids("empty") == 1
    assert "without tag:nowhere" in page.text
    assert served.get("/", q="since:nonsense").found('role="alert"')
    assert served.get("/", q="since:nonsense").status == 400


def test_sorting_and_chips(served: Served):
    assert names(served.get("/", sort="cost").text)[0] == ONE
    assert names(served.get("/", sort="turns").text)[0] == ONE
    page = served.get("/")
    assert "agent%3Acodex" in page.text
    assert served.get("/", page="999").status == 200


@pytest.mark.parametrize("name", [ONE, "claude-code:aaaa1111", "codex:bbbb2222"])
def test_a_session_shows_its_end_and_links_to_every_message(served: Served, name: str):
    page = served.get(f"/s/{quote(name, safe='')}")
    assert page.status == 200
    seqs = [int(seq) for seq in page.found(r'<article [^>]*data-seq="(\d+)"')]
    total = int(page.found(r'aria-setsize="(\d+)"')[0])
    places = [int(place) for place in page.found(r'aria-posinset="(\d+)"')]
    assert seqs == sorted(seqs)
    assert places == list(range(places[0], total + 1))
    assert page.testids("conversation") == page.testids("live") == page.testids("new") == 1
    assert page.found('data-testid="copy-resume"[^>]*data-command="turnlog resume [^"]+ --exec"')
    assert page.testids("title-edit") == 1
    assert page.text.count("<h1") == page.text.count("<main") == 1


def test_the_commands_that_go_on_can_be_pasted_whatever_the_session_is_called(served: Served):
    served.machine.claude("dddd4444;touch pwned", 1)
    path = f"/s/{quote('claude-code:dddd4444;touch pwned', safe='')}"
    quoted = "turnlog resume &#x27;claude-code:dddd4444;touch pwned&#x27;"
    assert f'data-command="{quoted} --exec"' in served.get(path).text
    assert f'data-command="{quoted} --in codex --exec"' in served.get(f"{path}/agents").text


def test_the_agents_that_can_go_on_are_all_others(served: Served):
    listed = served.get("/s/codex%3Abbbb2222/agents").found(r'data-action="copy"[^>]*>([^<]+)<')
    assert {"claude-code", "gemini-cli"} <= set(listed)
    assert not {"codex", "turnlog"} & set(listed)
    assert served.get("/s/nobody/agents").status == 404


def test_a_long_session_is_read_window_by_window(served: Served):
    page = served.get(f"/s/{ONE}")
    total, first = (int(page.found(rf'data-{what}="(\d+)"')[0]) for what in ("total", "first"))
    assert total == 182
    assert first > 100
    assert f"Earlier: {first} more" in page.text
    seen: list[str] = []
    for begin in range(0, total, 50):
        rows = served.get(f"/s/{ONE}/rows", first=str(begin), end=str(begin + 50))
        assert int(rows.headers["X-Total"]) == total
        seen += rows.found(r'aria-posinset="(\d+)"')
        for article in rows.text.split("<article")[1:]:
            assert ("grep -n case" in article) == ("found haystack" in article)  # no result without its call
    assert seen == [str(number) for number in range(1, total + 1)]
    assert len(served.get(f"/s/{ONE}/rows", first="0", end="99999").found("<article")) <= 120
    assert served.get(f"/s/{ONE}/rows", first="x", end="1").status == 400
    start = served.ask(f"/s/{ONE}?from=0")
    assert start.found(r'aria-posinset="(\d+)"')[0] == "1"
    assert "please look at case 0" in start.text
    assert "Earlier" not in start.text


def test_a_place_by_number_or_id_and_one_that_is_not_there(served: Served):
    with turnlog.open(str(served.machine.home)) as home, home.read(ONE) as session:
        message = session.messages()[40]
    for at in (message.seq, message.id):
        page = served.get(f"/s/{ONE}", at=str(at))
        assert "asked" in page.found(rf'<article class="([^"]+)" data-seq="{message.seq}"')[0]
    assert served.get(f"/s/{ONE}", at="nowhere").status == 404
    told = json.loads(served.get(f"/s/{ONE}/place", at=str(message.seq)).body)
    assert told["is_here"]
    hits = json.loads(served.get(f"/s/{ONE}/hits", q="haystack5").body)
    assert len(hits) == 1
    outline = served.get(f"/s/{ONE}/outline", first="0")
    assert outline.text.count("please look at case") >= 50
    assert "failed: bash" in served.get(f"/s/{ONE}/outline", first="20").text
    assert re.search(r"case 0</a><small>\$0\.001", outline.text)


def test_a_place_on_a_branch_that_was_left_is_shown_on_its_newest_end(served: Served):
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="left-one") as session:
        first = session.user("where it all begins")
        left = session.user("on the left branch")
        note = session.note("a remark on the left")
        session.assistant("the older end")
        session.rewind(to=left.seq)
        newest = session.assistant("the newer end")
        session.rewind(to=first.seq)
        session.user("on the current branch")
    for at in (left.seq, note.seq, newest.seq):
        page = served.get("/s/left-one", at=str(at))
        assert page.found('data-branch="([^"]*)"') == [str(newest.seq)] or at == note.seq
        assert "on the left branch" in page.text
    assert served.get("/s/left-one", at=str(first.seq)).found('data-branch="([^"]*)"') == [""]
    page = served.get("/s/left-one", at=str(newest.seq))
    assert "the newer end" in page.text
    assert "the older end" not in page.text
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("left-one")


def test_what_a_prompt_cost_is_the_same_beside_the_conversation_and_in_the_stats(served: Served):
    usage = Usage(input_tokens=10, output_tokens=10, cost_micros=70_000)
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="dear-one") as session:
        session.append(Message(role="assistant", blocks=[Text(text="hello")], usage=usage))  # nobody asked for it
        session.user("the first prompt")
        session.append(Message(role="assistant", blocks=[Text(text="well")], usage=replace(usage, cost_micros=20_000)))
    served.get("/", q="is:idle")
    outline = served.get("/s/dear-one/outline", first="0")
    assert re.search(r"the first prompt</a><small>\$0\.020</small>", outline.text)
    dearest = served.get("/s/dear-one/stats").text.partition("The dearest")[2]
    assert "$0.02" in dearest
    assert "$0.09" not in dearest
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("dear-one")


def test_what_a_prompt_that_was_left_cost_is_its_own(served: Served):
    usage = Usage(input_tokens=10, output_tokens=10)
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="twice-one") as session:
        for number, cost in enumerate((20_000, 30_000, 10_000)):
            session.user(f"prompt number {number}")
            session.append(
                Message(role="assistant", blocks=[Text(text="well")], usage=replace(usage, cost_micros=cost))
            )
            if number == 1:
                session.rewind(to=session.messages()[1].seq)
    time.sleep(FRESH_S)  # what was spent is asked of the catalog
    outline = served.get("/s/twice-one/outline", first="0").text
    assert re.findall(r"(prompt number \d)</a><small>([^<]*)", outline) == [
        ("prompt number 0", "$0.020"), ("prompt number 2", "$0.010"),
    ]  # fmt: skip
    dearest = served.get("/s/twice-one/stats").text.partition("The dearest")[2]
    assert re.findall(r"(prompt number \d)</a></td><td class=\"right\">([^<]*)", dearest) == [
        ("prompt number 1", "$0.03"), ("prompt number 0", "$0.02"), ("prompt number 2", "$0.01"),
    ]  # fmt: skip
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("twice-one")


def test_a_cost_of_which_a_part_is_unknown_says_so_on_every_page(served: Served):
    usage = Usage(input_tokens=10, output_tokens=10)
    with turnlog.open(str(served.machine.home), checkpoints=False) as home:
        with home.create(id="unpriced-one") as session:
            session.append(Message(role="assistant", blocks=[Text(text="well")], model="no-such-1", usage=usage))
        with home.create(id="partly-one") as session:
            session.append(Message(role="assistant", blocks=[Text(text="well")], model="no-such-1", usage=usage))
            session.append(
                Message(role="assistant", blocks=[Text(text="so")], usage=replace(usage, cost_micros=20_000))
            )
    for name, cost in (("unpriced-one", "?"), ("partly-one", "$0.02+")):
        assert f"<li>{cost}</li>" in served.get(f"/s/{name}").text
        assert f"0 turns · {cost} " in served.get(f"/s/{name}/tree").text
        stats = served.get(f"/s/{name}/stats").text
        assert f'<td class="right">{cost}</td>' in stats
        assert "Without a known price: no-such-1" in stats
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("unpriced-one")
        home.delete("partly-one")


def test_what_a_page_leaves_out_is_counted(served: Served):
    forks = [f"fork-{number:03}" for number in range(302)]
    usage = Usage(input_tokens=1, output_tokens=1, cost_micros=1)
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="top-one") as session:
        said = session.user("the beginning")
        for name in forks:
            session.fork(at=said.seq, id=name).append(Message(role="assistant", model=name, usage=usage))
    page = served.get("/s/top-one/tree")
    assert page.text.count("<li>") == 300
    assert "3 more sessions of this family are left out here." in page.text
    for name in (forks[0], forks[-1]):
        assert f'<a href="/s/{name}" aria-current="page">' in served.get(f"/s/{name}/tree").text
    assert "… and 2" in served.get("/compare", a="top-one").text
    assert re.search(r"2\d\d more are left out here; the total has all of them", served.get("/usage", since="").text)
    with turnlog.open(str(served.machine.home)) as home:
        for name in [*forks, "top-one"]:
            home.delete(name)


def test_a_page_behind_the_last_one_is_not_an_answer(served: Served):
    for query in ({"q": "haystack3"}, {}, {"q": "agent:codex"}):
        page = served.get("/", page="9", **query)
        assert "There is no page 9 of these sessions" in page.text
        assert "Nothing fits" not in page.text
        assert "0 sessions" not in page.text
        [first] = page.found(r'<a href="([^"]+)">the first page')
        assert names(served.ask(first).text)


def test_every_place_in_a_session_is_found(served: Served):
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="many-one") as session:
        for _ in range(600):
            session.user("gooseberry jam")
    assert json.loads(served.get("/s/many-one/hits", q="gooseberry").body) == list(range(600))
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("many-one")
    time.sleep(FRESH_S)  # no other test shall meet it in the list: it has the most turns


def test_common_prompts_that_are_left_out_are_counted(served: Served):
    with turnlog.open(str(served.machine.home), checkpoints=False) as home, home.create(id="common-one") as session:
        for number in range(203):
            session.user(f"common prompt {number}.")
        session.fork(id="common-two").user("and another")
        session.user("and one more")
    page = served.get("/compare", a="common-one", b="common-two")
    assert '<ol class="common" data-testid="common" start="4">' in page.text
    assert "The first 3 prompts are left out here." in page.text
    assert "common prompt 2." not in page.text
    assert "common prompt 3." in page.text
    with turnlog.open(str(served.machine.home)) as home:
        home.delete("common-two")
        home.delete("common-one")


def test_hits_are_of_one_session_and_not_of_those_whose_names_begin_so(served: Served):
    with (
        turnlog.open(str(served.machine.home), checkpoints=False) as home,
        home.create(id=f"{ONE}-more", workspace=served.machine.work) as session,
    ):
        for number in range(9):
            session.user(f"marmalade sandwich {number}")
    assert json.loads(served.get(f"/s/{ONE}-more/hits", q="marmalade").body) == list(range(9))
    assert json.loads(served.get(f"/s/{ONE}/hits", q="marmalade").body) == []
    with turnlog.open(str(served.machine.home)) as home:
        home.delete(f"{ONE}-more")


def test_unknown_names_and_pages_are_told_with_what_comes_near(served: Served):
    page = served.get("/s/talk-onf")
    assert page.status == 404
    assert "<h1>No such session</h1>" in page.text
    assert 'href="/s/talk-one"' in page.text
    for path in (f"/s/{ONE}?at=99999", f"/s/{ONE}?branch=99999", f"/compare?a={ONE}&b={ONE}&branch_a=99999"):
        page = served.ask(path)
        assert page.status == 404
        assert "<h1>Not found</h1>" in page.text
        assert "Perhaps" not in page.text
    assert "<h1>No such session</h1>" in served.get("/compare", a=ONE, b="talk-onf").text
    assert served.get("/nowhere").status == 404
    assert "nothing at /nowhere" in served.get("/nowhere").text
    for odd in (
        "/s/%00",
        "/s/..%2F..%2Fetc%2Fpasswd",
        "/static/..%2Fserver.py",
        "/static/../server.py",
        "/s/",
        "/s/%ff",
    ):
        assert served.ask(odd).status in (400, 404)


def test_pictures_are_shown_and_everything_else_is_a_download(served: Served):
    page = served.get(f"/s/{ONE}")
    [source] = page.found(r'<img src="([^"]+)"')
    picture = served.ask(source)
    assert (picture.body, picture.headers["content-type"]) == (PNG, "image/png")
    drawing = served.ask(f"/s/{ONE}/blob/{quote(digest(b'<svg onload=alert(1)>'), safe='')}")
    assert drawing.headers["content-type"] == "application/octet-stream"
    assert drawing.headers["content-disposition"] == "attachment"
    assert served.ask(f"/s/{ONE}/blob/sha256%3A{'0' * 64}").status == 404
    assert served.ask(f"/s/{ONE}/blob/..%2Fhome.json").status == 400


def test_nothing_of_what_a_session_says_becomes_part_of_the_page(served: Served):
    odd = quote(HOSTILE, safe="")
    for path in ("/", f"/?q={odd}", "/?q=alert", "/s/evil-one", "/s/evil-one?q=alert", f"/s/{odd}", f"/nowhere{odd}"):
        page = served.ask(path)
        for tag, attributes in Outline(page.text).tags:
            assert tag not in ("iframe", "object", "embed", "base", "form") or attributes.get("action") == "/"
            assert not any(name.startswith("on") or name == "style" for name in attributes), (path, tag, attributes)
            if tag == "script":
                assert attributes == {"src": "/static/script.js", "defer": None}
            if tag in ("img", "link"):
                assert (attributes.get("src") or attributes.get("href") or "").startswith("/")
            assert not (attributes.get("href") or "").lower().startswith("javascript:")


def test_secrets_are_left_out_where_that_is_asked_for(served: Served):
    secret = "ghp_" + "a1B2c3D4" * 5
    folder = served.machine.folder / secret
    folder.mkdir()
    with (
        turnlog.open(str(served.machine.home), checkpoints=False) as home,
        home.create(id="secret-one", title=f"use {secret}", workspace=folder) as session,
    ):
        session.user(f"my token is {secret}")
        session.set("tags", [secret])
    assert secret in served.get("/s/secret-one").text
    page = served.get("/s/secret-one", redact="1")
    assert secret not in page.text
    assert "redacted" in page.text
    assert secret not in served.get("/s/secret-one/rows", first="0", end="9", redact="1").text
    assert secret not in served.get("/s/secret-one/outline", first="0", redact="1").text
    assert 'data-testid="title-edit"' in served.get("/s/secret-one").text
    assert page.testids("title-edit") == page.testids("title-input") == 0, "it would store what is left out"


@pytest.mark.parametrize("secret", ["DB_PASSWORD=Tr0ub4dor-3xYz99Qw7k", 'password = "correct horse battery staple"'])
def test_the_beginning_of_a_secret_is_left_out_where_a_prompt_is_cut(served: Served, secret: str):
    name = f"cut-{secret[:2].lower()}"
    said = f"Please look at the deploy script, it fails on the staging machine again {secret} and then"
    begun = secret.partition("=")[2].lstrip(' "')[:4]
    with turnlog.open(str(served.machine.home)) as home, home.create(id=name) as session:
        session.user(said)
    assert begun in served.get(f"/s/{name}").text.partition("<article")[0], "it is cut within the secret"
    page = served.get(f"/s/{name}", redact="1")
    assert "Please look at the deploy script" in page.text.partition("<article")[0]
    assert begun not in page.text
    assert begun not in served.get(f"/s/{name}/outline", first="0", redact="1").text


def test_links_within_a_page_without_secrets_stay_without_them(served: Served):
    with turnlog.open(str(served.machine.home)) as home, home.create(id="secret-two") as session:
        for number in range(30):
            session.user(f"prompt {number}")
            session.assistant(f"answer {number}")
    for path in ("/s/secret-two", "/s/secret-two/rows?first=0&end=9", "/s/secret-two/outline?first=0"):
        both = "&" if "?" in path else "?"
        found = served.ask(f"{path}{both}redact=1&q=answer").found(r'href="(/s/secret-two\?[^"]*(?:at|from)=[^"]*)"')
        assert found, path
        assert [one for one in found if "redact=1" not in one or "q=answer" not in one] == []
    shown = served.get("/s/secret-two", redact="1", q="answer")
    assert shown.found(r'href="([^"]*)"[^>]*>Conversation') == ["/s/secret-two?q=answer&amp;redact=1"]
    assert shown.found(r'href="([^"]*)">Show as it is') == ["/s/secret-two?q=answer"]


def test_a_title_a_fork_and_the_trash(served: Served):
    with turnlog.open(str(served.machine.home)) as home, home.create(id="mine-one", title="before") as session:
        first = session.user("first")
        session.user("second")
        session.set("archived", True)
    assert json.loads(served.post("/s/mine-one/title", {"title": " after <b> "}).body) == {"title": "after <b>"}
    page = served.get("/s/mine-one")
    assert "<h1>after &lt;b&gt;</h1>" in page.text
    assert "<title>after &lt;b&gt; · turnlog</title>" in page.text
    address = json.loads(served.post("/s/mine-one/fork", {"at": first.seq}).body)["address"]
    forked = served.ask(address)
    assert "first" in forked.text
    assert "second" not in forked.text
    with turnlog.open(str(served.machine.home)) as home:
        archived = {info.id: info.archived for info in home.sessions()}
        assert archived["mine-one"]
        assert not archived[home.find(address.rpartition("/")[2])]
    assert served.post("/s/mine-one/delete", {}).status == 200
    assert served.get("/s/mine-one").status == 404


def test_another_agents_session_is_given_a_title_and_shows_its_tags_and_notes(served: Served):
    name = "claude-code:aaaa1111"
    path = f"/s/{quote(name, safe='')}"
    with turnlog.open(str(served.machine.home)) as home:
        append_marks(interior(home).creator, mark_tag(name, "urgent", True), mark_note(name, "ask <Ann>"))
    served.post(f"{path}/title", {"title": "The blue parser"})
    page = served.get(path)
    assert "<h1>The blue parser</h1>" in page.text
    assert "#urgent" in page.text
    assert "ask &lt;Ann&gt;" in page.text
    assert "ask" not in served.get(path, redact="1").text.partition("<main")[2].partition("<article")[0]
    assert "The blue parser" in served.get("/").text


def events(served: Served, path: str, found: list[dict], stop: threading.Event, **headers: str) -> None:
    import http.client

    link = http.client.HTTPConnection("127.0.0.1", served.port, timeout=15)
    link.request("GET", path, headers={"Cookie": served.cookie, **headers})
    try:
        answer = link.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        while not stop.is_set() and (line := answer.fp.readline().decode()):
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
        answer.close()
    finally:
        link.close()


def test_what_is_appended_is_told_once_and_what_was_missed_comes_later(served: Served):
    with turnlog.open(str(served.machine.home)) as home, home.create(id="live-one") as session:
        session.user("begin")
        version = served.get("/s/live-one").found(r'data-version="(\d+)"')[0]
        found: list[dict] = []
        stop = threading.Event()
        listener = threading.Thread(target=events, args=(served, f"/s/live-one/stream?since={version}", found, stop))
        listener.start()
        time.sleep(0.3)
        session.assistant("news")
        began = time.monotonic()
        while not found and time.monotonic() - began < 3:
            time.sleep(0.02)
        assert (found[0]["first"], found[0]["total"]) == (1, 2)
        stop.set()
        session.assistant("more news")
        listener.join(5)
        again: list[dict] = []
        stop = threading.Event()
        told = threading.Thread(target=events, args=(served, "/s/live-one/stream", again, stop),
                                kwargs={"Last-Event-ID": version})  # fmt: skip
        told.start()
        began = time.monotonic()
        while not again and time.monotonic() - began < 3:
            time.sleep(0.02)
        assert (again[0]["first"], again[0]["total"]) == (1, 3)
        stop.set()
        session.assistant("bye")
        told.join(5)


def test_it_ends_at_once_with_streams_open_and_says_nothing(served: Served):
    for one in (signal.SIGINT, signal.SIGTERM):
        other = Served(served.machine, "--read-only")
        found: list[dict] = []
        stop = threading.Event()
        streams = [
            threading.Thread(target=events, args=(other, path, found, stop)) for path in (f"/s/{ONE}/stream", "/stream")
        ]
        for stream in streams:
            stream.start()
        time.sleep(0.3)
        began = time.monotonic()
        other.process.send_signal(one)
        out, err = other.process.communicate(timeout=5)
        assert time.monotonic() - began < 2
        assert (other.process.returncode, out, err.count("\n")) == (0, "", 1)
        for stream in streams:
            stream.join(5)


def test_read_only_has_no_way_to_write(served: Served):
    other = Served(served.machine, "--read-only")
    page = other.get(f"/s/{ONE}")
    assert page.testids("title-edit") == 0
    assert "turnlog-token" not in page.text
    assert "fork from here" not in page.text
    assert other.post(f"/s/{ONE}/title", {"title": "x"}).status == 405
    assert other.stop()[0] == 0


def test_an_empty_machine_says_where_it_looked(tmp_path, monkeypatch):
    from tests.catalog.machine import Machine

    other = Served(Machine(tmp_path, monkeypatch))
    page = other.get("/")
    assert page.testids("empty") == 1
    assert "claude-code" in page.text
    assert ".claude" in page.text
    assert other.stop()[0] == 0


def test_folders_of_one_name_are_told_apart_by_where_they_lie():
    from collections import Counter

    from turnlog.web.pages.sessions import _short

    names = Counter({"cli": 2, "shop": 1})
    assert [_short(folder, names) for folder in ("/a/one/cli", "/b/two/cli", "/c/shop", "/")] == [
        "one/cli",
        "two/cli",
        "shop",
        "/",
    ]


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59.999999Z", "1000-01-01T00:00:00Z"])
def test_a_message_at_the_end_of_the_calendar_is_shown(served: Served, at: str):
    path = served.machine.claude("odd")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**record, "timestamp": at}) + "\n" for record in records))
    for place in ("", "/tree", "/stats", "/outline?first=0"):
        assert served.get(f"/s/claude-code:odd{place}").status == 200, place
