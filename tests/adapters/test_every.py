"""What every adapter does, whichever framework it is for: `<framework>/driver.py` is a small program of that one."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from importlib import import_module

import pytest

import turnlog
from tests.adapters.conftest import INSTALLED
from turnlog import Invalid
from turnlog.adapters._sessions import AdapterSessions

SECRET = {"api_key": "sk-live-1234567890abcdef", "deep": [{"password": "p", "authorization": "Bearer t"}]}


@pytest.fixture(params=INSTALLED)
def driver(request):
    return import_module(f"tests.adapters.{request.param}.driver")


def asked(*words):
    """What a conversation with these questions says."""
    return [text for word in words for text in (f"question {word}", f"answer to question {word}")]


def begun(driver, home, *words):
    with driver.opened(home) as store:
        for word in words:
            driver.ask(store, f"question {word}")


def seen(driver, home, session=None):
    """What the framework reads, opened anew."""
    session = session or driver.SESSION
    with driver.opened(home, session) as store:
        return driver.texts(store, session)


def said(home, session, *words):
    """What a command prints for programs."""
    user = home.parent / "nobody"
    user.mkdir(exist_ok=True)
    env = {**os.environ, "HOME": str(user), "TURNLOG_HOME": str(home)}
    command = [sys.executable, "-m", "turnlog", *words, *([session] if session else []), "--json"]
    ended = subprocess.run(command, env=env, cwd=user, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_commands_know_its_sessions(driver, tmp_path):
    home, session = tmp_path / "home", driver.SESSION
    begun(driver, home, "one", "two", "three")
    assert session in [row["id"] for row in said(home, None, "ls", "--all")["sessions"]]
    assert session in [hit["session"] for hit in said(home, None, "search", '"answer to question two"')["hits"]]
    shown = json.dumps(said(home, session, "show"))
    assert all(text in shown for text in asked("one", "two", "three"))
    assert said(home, None, "usage")["total"]["output_tokens"] == 6
    fork = said(home, session, "fork", "--at", "turn:3")
    forked = json.dumps(said(home, fork["session"], "show"))
    assert [text for text in asked("one", "two", "three") if text in forked] == asked("one", "two")
    out = tmp_path / "out.jsonl"
    said(home, session, "export", "--to", "claude-code", "-o", str(out))
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    carried = [line["message"]["content"] for line in lines if line["type"] in ("user", "assistant")]
    assert [text for text in asked("one", "two", "three") if text not in json.dumps(carried)] == []
    read_back = json.dumps(said(home, str(out), "show"))
    assert all(text in read_back for text in asked("one", "two", "three"))


def test_what_the_commands_do_the_framework_sees(driver, tmp_path):
    home, session = tmp_path / "home", driver.SESSION
    begun(driver, home, "one", "two", "three")
    said(home, session, "compact", "--keep", "2", "--summary", "so far")
    summary, *rest = seen(driver, home)
    assert "so far" in summary
    assert rest == asked("three")
    begun(driver, home, "four")
    assert seen(driver, home)[1:] == asked("three", "four")
    said(home, session, "uncompact")
    assert seen(driver, home) == asked("one", "two", "three", "four")
    said(home, None, "rewind", "turn:3", "--conversation", "--yes", "-s", session)
    assert seen(driver, home) == asked("one", "two")
    begun(driver, home, "five")
    assert seen(driver, home) == asked("one", "two", "five")


def test_a_message_made_with_turnlog_is_seen_and_gone_on_from(driver, tmp_path):
    with turnlog.open(tmp_path) as home:
        begun(driver, home, "one")
        ours = home.resume(driver.SESSION)
        ours.user("from a person")
        ours.assistant("from elsewhere")
        assert seen(driver, home) == [*asked("one"), "from a person", "from elsewhere"]
        begun(driver, home, "two")
        assert seen(driver, home) == [*asked("one"), "from a person", "from elsewhere", *asked("two")]


def test_a_fork_made_with_turnlog_is_a_session_of_the_framework(driver, tmp_path):
    with turnlog.open(tmp_path) as home:
        begun(driver, home, "one")
        begun(driver, home, "left out")
        ours = home.resume(driver.SESSION)
        ours.fork(ours.messages()[2].seq - 1, id=driver.OTHER)
        assert seen(driver, home, driver.OTHER) == asked("one")
        with driver.opened(home, driver.OTHER) as store:
            driver.ask(store, "question two", driver.OTHER)
        assert seen(driver, home, driver.OTHER) == asked("one", "two")
        assert seen(driver, home) == asked("one", "left out")


def test_a_second_run_goes_on(driver, tmp_path):
    for word in ("one", "two"):
        begun(driver, tmp_path, word)
    assert seen(driver, tmp_path) == asked("one", "two")


def test_no_id_matches_by_its_beginning(driver, tmp_path):
    with turnlog.open(tmp_path) as home:
        begun(driver, home, "one")
        for other in (driver.SESSION[:-1] + "?", driver.SESSION + "1"):
            assert seen(driver, home, other) == []
        assert seen(driver, home) == asked("one")


def test_a_given_home_stays_open_and_an_own_one_is_closed(driver, tmp_path):
    with turnlog.open(tmp_path) as home:
        store = driver.opened(home)
        driver.ask(store, "question one")
        store.close()
        store.close()
        with pytest.raises(Invalid, match="closed"):
            driver.ask(store, "question two")
        assert len(home.resume(driver.SESSION).messages()) == 2
    with driver.opened(tmp_path) as store:
        driver.ask(store, "question two")
        own = store.sessions.home
        session = own.resume(driver.SESSION)
    with pytest.raises(Invalid, match="closed"):
        session.user("too late")

    async def work():
        async with driver.opened(tmp_path) as store:
            return store

    with pytest.raises(Invalid, match="closed"):
        driver.ask(asyncio.run(work()), "question three")
    assert seen(driver, tmp_path) == asked("one", "two")


def test_nothing_waits_for_a_disk_on_the_loop(driver, tmp_path, monkeypatch):
    if driver.__name__.endswith(".strands.driver"):
        pytest.skip("Strands asks its repository on the loop; the guide says so")
    real = AdapterSessions.home.fget
    on_loop = []

    def home(sessions):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            on_loop.append(sys._getframe(1).f_code.co_name)
        return real(sessions)

    monkeypatch.setattr(AdapterSessions, "home", property(home))
    with driver.opened(tmp_path) as store:
        driver.ask(store, "question one")
        assert driver.texts(store) == asked("one")
    assert on_loop == []


def test_threads_share_one_store(driver, tmp_path):
    with driver.opened(tmp_path) as store:
        driver.ask(store, "question zero")
        failed = []

        def work(name):
            try:
                for number in range(3):
                    driver.ask(store, f"question {name}-{number}")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
    with turnlog.open(tmp_path) as home:
        entries = home.resume(driver.SESSION).entries()
        said = [entry for entry in entries if isinstance(entry, turnlog.Message) and entry.role == "user"]
        texts = [entry.blocks[0].text for entry in said]
    assert sorted(texts) == sorted(["question zero", *(f"question {name}-{n}" for name in "abcd" for n in range(3))])


def test_nothing_a_run_needs_is_masked(driver, tmp_path):
    with driver.opened(tmp_path) as store:
        driver.keep(store, SECRET)
    with driver.opened(tmp_path) as store:
        assert driver.kept(store) == SECRET


def test_delete_erases(driver, tmp_path):
    with driver.opened(tmp_path) as store:
        driver.ask(store, "question one")
        driver.erase(store)
    assert b"question one" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with turnlog.open(tmp_path) as home:
        assert home.sessions() == []


def test_of_a_damaged_log_the_rest_is_given(driver, tmp_path):
    begun(driver, tmp_path / "home", "one", "two", "three", "last")
    [log] = [path for path in (tmp_path / "home/sessions").glob("*.jsonl") if b"question two" in path.read_bytes()]
    whole = log.read_bytes().splitlines(keepends=True)
    end = next(number for number, line in enumerate(whole) if b"question last" in line)
    for number, line in enumerate(whole[1:end], 1):  # what is hurt at the end is torn: the batch never was
        hurt = line.replace(b'"', b"\x00", 1)
        log.write_bytes(b"".join([*whole[:number], hurt, *whole[number + 1 :]]))
        lost = [text for text in asked("one", "two", "three") if text.encode() in line]
        with turnlog.open(tmp_path / "home") as home:
            assert home.resume(driver.SESSION).damage, line
            texts = seen(driver, home)
            assert [text for text in asked("one", "two", "three") if text not in [*lost, *texts]] == [], line
            begun(driver, home, "four")
            assert seen(driver, home)[-2:] == asked("four"), line


def test_a_missing_framework_says_what_to_install(driver, monkeypatch):
    name = driver.__name__.split(".")[-2]
    for module in [module for module in sys.modules if module.startswith(f"turnlog.adapters.{name}")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("langgraph.checkpoint.base", "agents", "claude_agent_sdk", "pydantic_ai.conversation_store",
                   "google.adk", "strands"):  # fmt: skip
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(turnlog.Unsupported) as error:
        import_module(f"turnlog.adapters.{name}")
    assert error.value.hint == f"pip install 'turnlog[{name.replace('_', '-')}]'"


def test_a_home_that_cannot_be_made_is_told(driver):
    with pytest.raises(turnlog.Unavailable, match="/proc/nowhere"), driver.opened("/proc/nowhere") as store:
        driver.ask(store, "question one")


def test_a_session_that_was_deleted_is_not_there(driver, tmp_path):
    with turnlog.open(tmp_path) as home, driver.opened(tmp_path) as store:
        driver.ask(store, "question one")
        home.delete(driver.SESSION)
        assert driver.texts(store) == []
        driver.ask(store, "question two")
        assert driver.texts(store) == asked("two")


def test_a_forked_process_uses_the_store_it_has(driver, tmp_path):
    with driver.opened(tmp_path) as store:
        driver.ask(store, "question one")
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # it must not wait for threads that it does not have
            driver.ask(store, "question two")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        driver.ask(store, "question three")
        assert driver.texts(store) == asked("one", "two", "three")
