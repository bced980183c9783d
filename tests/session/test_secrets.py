"""Secrets that are configuration never reach the disk; what people and models said stays untouched."""

import pytest

from turnlog import Custom, Set, ToolCall, TurnlogWarning

NAMES = [
    "api_key", "apiKey", "API-KEY", "openai_api_key", "OPENAI_API_KEY", "x-api-key", "token", "access_token",
    "refreshToken", "auth_token", "GITHUB_ACCESS_TOKEN", "authorization", "Authorization", "Proxy-Authorization",
    "password", "db_password", "passwd", "pwd", "passphrase", "secret", "client_secret", "secret_key",
    "aws_secret_access_key", "AWS_SESSION_TOKEN", "private_key", "credentials", "credential", "cookie", "Set-Cookie",
    "bearer", "session_token", "id_token", "access_key", "signing_key", "encryption_key",
]  # fmt: skip

HARMLESS = [
    "max_tokens", "tokens", "token_count", "input_tokens", "tokenizer", "author", "authority", "keys", "key",
    "secretary", "password_hint_shown", "pass", "cookies_enabled", "primary_key", "keyboard",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_value_under_a_secret_name_is_masked_with_a_warning(s, name):
    with pytest.warns(TurnlogWarning, match="secret"):
        entry = s.set(name, "hunter2")
    assert entry.value == s.get(name) == "[secret]"


@pytest.mark.parametrize("name", NAMES[::4])
@pytest.mark.parametrize("value", ["hunter2", 12345, ["hunter2"], {"id": "me", "value": "hunter2"}])
def test_a_secret_is_masked_at_any_depth_whatever_it_is(s, name, value):
    with pytest.warns(TurnlogWarning):
        s.set("config", {"servers": [{"name": "a", "headers": {name: value}}], "n": 1})
    assert s.get("config") == {"servers": [{"name": "a", "headers": {name: "[secret]"}}], "n": 1}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_name_that_only_looks_like_one_is_left_alone(s, name):
    s.set("config", {name: "visible", "deep": [{name: 4096}]})
    s.set(name, "visible")
    assert s.get("config") == {name: "visible", "deep": [{name: 4096}]}
    assert s.get(name) == "visible"


@pytest.mark.parametrize("value", [None, "", True, False, "[secret]"])
def test_a_secret_name_without_a_secret_needs_no_warning(s, value):
    s.set("config", {"api_key": value})
    assert s.get("config") == {"api_key": value}


def test_nothing_of_a_secret_is_on_the_disk(place, home, monkeypatch):
    monkeypatch.setattr("turnlog.thread.appender._FOLD_ENTRIES", 3)
    session = home.create()
    with pytest.warns(TurnlogWarning):
        session.set("api_key", "hunter2")
        session.set("config", {"env": [{"OPENAI_API_KEY": "hunter2", "model": "m"}]})
        session.append(Set(key="headers", value={"Authorization": "Bearer hunter2"}))
        session.set("listed", [{"token": "hunter2"}])
        session.append(Set(key="title", value="t", all={"title": "t", "listed": {"password": "hunter2"}}))
        session.set("big", {"password": "hunter2" * 20_000, "rest": "x" * 100_000})
    one = session.user("one")
    for index in range(8):
        session.note(str(index))
    session.rewind(to=one)
    session.fork()
    home.create(labels={"token": "hunter2", "team": "a"})
    assert session.get("config") == {"env": [{"OPENAI_API_KEY": "[secret]", "model": "m"}]}
    if place.face != "memory":
        assert b"hunter2" not in place.all_bytes()
        session = place.open().resume(session.id)
        assert "hunter2" not in repr(list(session.entries()))


def test_a_secret_does_not_come_along_with_another_fact(place, home):
    """A session-wide fact carries the others of its batch, too."""
    listed = Set(key="listed", value={"api_key": "hunter2", "n": 1})
    mine = {"api_key": "hunter2"}
    with pytest.warns(TurnlogWarning, match="listed.api_key"):
        session = home.create(drafts=[listed, Set(key="title", value="t")])
        first = session.user("one")
        session.append(listed, Set(key="title", value="t"), Set(key="tags", value=["a"]))
        session.append(listed, Set(key="title", value="t"), to=0)
        session.append(Set(key="title", value="t", all=mine), Set(key="mood", value=1, all=mine), to=first)
        session.append(Set(key="mood", value=1, all=mine))
    assert "hunter2" not in repr(list(session.entries()))
    assert home.sessions()[0].listed == session.get("listed") == {"api_key": "[secret]", "n": 1}
    if place.face != "memory":
        assert b"hunter2" not in place.all_bytes()
        assert "hunter2" not in repr(list(place.open().resume(session.id).entries()))


def test_an_exact_fact_stays_exact_beside_others(s):
    s.append(Set(key="listed", value={"api_key": "public"}, exact=True), Set(key="title", value="t"))
    s.set("tags", ["a"])
    assert [entry.all["listed"] for entry in s.entries(kind=Set)] == [{"api_key": "public"}] * 3


def test_what_was_said_is_the_callers_and_stays(s, place):
    s.user("my password is hunter2")
    s.assistant([ToolCall(id="1", name="http", input={"Authorization": "Bearer hunter2"})])
    s.tool_result("1", "token=hunter2", details={"api_key": "hunter2"})
    s.append(Custom(kind="x.y", data={"password": "hunter2"}, meta={"token": "hunter2"}))
    s.note("n", data={"secret": "hunter2"})
    session = place.open().resume(s.id)
    assert session.messages()[1].blocks[0].input == {"Authorization": "Bearer hunter2"}
    assert session.messages()[2].blocks[0].details == {"api_key": "hunter2"}
    [custom] = session.entries(kind="custom")
    assert (custom.data, custom.meta) == ({"password": "hunter2"}, {"token": "hunter2"})
    [note] = session.entries(kind="note")
    assert note.data == {"secret": "hunter2"}


def test_a_warning_says_where_the_secret_was(s):
    with pytest.warns(TurnlogWarning, match=r"config\.servers\[1\]\.api_key"):
        s.set("config", {"servers": [{}, {"api_key": "hunter2"}]})


def test_labels_are_masked_as_well(home):
    session = home.create(labels={"api_key": "hunter2", "team": "a"})
    assert session.labels == {"api_key": "[secret]", "team": "a"}
