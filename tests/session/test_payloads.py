"""Big payloads and bytes lie in blobs, once; lines stay short; what comes back is what was said."""

import json
import re

import pytest

import turnlog
from turnlog import Custom, File, Image, Invalid, Message, NotFound, Text, Thinking, ToolCall, ToolResult
from turnlog.log.payload import digest

BIG = "Ünd so weiter. " * 10_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


def lines(place, session):
    return place.path(session).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "block",
    {
        "text": Text(text=BIG),
        "thinking": Thinking(text=BIG, provider="p", data={"signature": BIG}),
        "call": ToolCall(id="1", name="write", input={"content": BIG, "n": [1, None]}),
        "meta": Text(text="small", meta={"m": BIG}),
    }.items(),
    ids=lambda item: item[0],
)  # fmt: skip
def test_a_big_block_comes_back_whole_and_not_from_the_line(files, block):
    with files.open() as home:
        session = home.create()
        message = session.assistant([block[1], Text(text="after")])
        assert max(map(len, lines(files, session))) < 4096
        assert session.messages()[0].blocks == [block[1], Text(text="after")]
        assert len(message.blobs) == 1
    session = files.open().resume(session.id)
    assert session.messages()[0].blocks == [block[1], Text(text="after")]
    assert session.context()[0] == session.messages()[0]
    [entry] = session.entries(kind="message")
    assert entry.blocks == [block[1], Text(text="after")]
    assert session.find(entry.id) == entry


@pytest.mark.parametrize(
    "content", [BIG, [Text(text=BIG), Text(text="b")], [Text(text="a"), Image(data=PNG, media_type="image/png")]]
)
def test_a_big_result_comes_back_whole(s, place, content):
    s.assistant([ToolCall(id="1", name="x")])
    s.tool_result("1", content, details={"d": BIG})
    [_, message] = place.open().resume(s.id).messages()
    [result] = message.blocks
    assert result.details == {"d": BIG}
    if isinstance(content, str):
        assert result.content == content
    else:
        assert [type(block) for block in result.content] == [type(block) for block in content]
        assert result.content[0] == content[0]


def test_a_payload_of_up_to_64_kib_stays_in_the_line(files):
    with files.open() as home:
        session = home.create()
        small = session.user("x" * 65_000)
        big = session.user("y" * 66_000)
        assert (small.blobs, len(big.blobs)) == ([], 1)
        assert b"x" * 65_000 in lines(files, session)[2]
        assert b"y" * 1000 not in lines(files, session)[3]


def test_a_line_shows_a_short_stand_in_and_names_its_blobs(files):
    with files.open() as home:
        session = home.create()
        session.user("Once upon a time " * 10_000)
        line = json.loads(lines(files, session)[-1])
        assert line["blocks"][0]["text"].startswith("Once upon a time")
        assert len(line["blocks"][0]["text"]) < 300
        assert line["blobs"] == [line["blocks"][0]["blob"]]
        assert re.fullmatch("sha256:[0-9a-f]{64}", line["blobs"][0])
        assert home.get_blob(line["blobs"][0])


def test_many_payloads_are_taken_out_until_the_line_is_short(files):
    blocks = [Text(text=f"{index} " + "z" * 40_000) for index in range(60)]
    with files.open() as home:
        session = home.create()
        session.user(blocks)
        assert len(lines(files, session)[-1]) <= 1 << 20
    assert files.open().resume(session.id).messages()[0].blocks == blocks


@pytest.mark.parametrize(
    "entry",
    {
        "custom": Custom(kind="x.y", data={"d": BIG}, meta={"m": 1}),
        "note": turnlog.Note(text=BIG, data=[BIG]),
        "fact": turnlog.Set(key="k", value=[BIG]),
        "custom with blocks": Custom(kind="x.y", data=BIG, blocks=[Text(text=BIG)]),
        "meta": turnlog.Note(text="a", meta={"m": BIG}),
    }.items(),
    ids=lambda item: item[0],
)  # fmt: skip
def test_a_big_entry_comes_back_whole(files, entry):
    with files.open() as home:
        session = home.create()
        done = session.append(entry[1])
        assert max(map(len, lines(files, session))) < 8192
    [found] = [e for e in files.open().resume(session.id).entries() if e.id == done.id]
    for name in ("data", "text", "value", "blocks", "meta"):
        assert getattr(found, name, None) == getattr(entry[1], name, None)


@pytest.mark.parametrize("kind", [Image, File])
def test_an_image_or_file_is_kept_as_a_blob(s, home, place, kind):
    s.user([kind(data=PNG, media_type="image/png", name="shot.png"), Text(text="see")])
    for session in (s, place.open().resume(s.id)):
        picture, text = session.messages()[0].blocks
        assert (picture.media_type, picture.name, picture.data) == ("image/png", "shot.png", None)
        assert picture.blob == digest(PNG)
        assert home.get_blob(picture.blob) == PNG
        assert text == Text(text="see")


def test_an_image_elsewhere_is_a_reference(s):
    blocks = [Image(url="https://example.org/a.png"), File(file="file-123", provider="openai", media_type="text/csv")]
    s.user(blocks)
    assert s.messages()[0].blocks == blocks


def test_a_blob_that_was_put_before_can_be_named(s, home, place):
    name = home.put_blob(PNG)
    message = s.user([Image(blob=name, media_type="image/png")])
    assert message.blobs == [name]
    assert place.open().get_blob(name) == PNG


def test_the_same_payload_is_stored_once(files):
    import random

    noise = random.Random(1).randbytes(300_000)
    with files.open() as home:
        for _ in range(5):
            home.create().user([Image(data=noise), Text(text=BIG)])
        blobs = list((files.folder / "blobs").iterdir())
        assert sum(path.stat().st_size for path in blobs) < 320_000


def test_blobs_are_compressed(files):
    with files.open() as home:
        home.create().user("a" * 1_000_000)
        assert sum(path.stat().st_size for path in (files.folder / "blobs").iterdir()) < 10_000


def test_what_cannot_be_taken_out_and_is_too_long_is_refused(s):
    calls = [ToolCall(id=str(index), name="x" * 10_000) for index in range(1700)]
    with pytest.raises(Invalid):
        s.assistant(calls)
    with pytest.raises(Invalid):
        s.append(Message(role="user", agent="a" * (17 << 20)))
    assert s.messages() == []
    assert s.user("still works").seq


def test_what_can_be_taken_out_may_be_longer_than_any_line(files):
    text = "0123456789abcdef" * (20 << 16)
    session = files.open().create()
    session.tool_result("1", text)
    assert files.open().resume(session.id).messages()[0].blocks[0].content == text


# ── bytes that are not Unicode ────────────────────────────────────────────────────────────────────

LATIN = b"caf\xe9 \xff\xfe\x00 fin"


def test_bytes_of_a_tool_that_are_not_unicode_are_kept(s, home, place):
    s.tool_result("1", LATIN)
    [result] = place.open().resume(s.id).messages()[0].blocks
    assert result.content.startswith("caf") and result.content.endswith(" fin")
    result.content.encode()
    assert home.get_blob(result.raw) == LATIN


def test_bytes_that_are_text_are_text(s):
    s.tool_result("1", "déjà vu".encode())
    [result] = s.messages()[0].blocks
    assert (result.content, result.raw) == ("déjà vu", None)


def test_lone_surrogates_are_kept_as_bytes_with_a_readable_stand_in(s, home, place):
    odd = "a\ud800b"
    s.user(odd)
    s.assistant([Thinking(text=odd), ToolCall(id="1", name="x", input={"k": [odd]})])
    s.tool_result("1", [Text(text=odd)])
    s.note(odd)
    s.set("k", {"deep": odd})
    s.append(Custom(kind="x.y", data=[odd]))
    session = place.open().resume(s.id)
    user, assistant, tool = session.messages()
    text = user.blocks[0]
    assert text.text == "a�b"
    assert home.get_blob(text.raw) == odd.encode("utf-8", "surrogatepass")
    assert assistant.blocks[0].text == "a�b"
    assert assistant.blocks[1].input == {"k": ["a�b"]}
    assert json.loads(home.get_blob(assistant.blocks[1].raw)) == {"k": [odd]}
    assert tool.blocks[0].content[0].text == "a�b"
    [note] = session.entries(kind="note")
    assert (note.text, home.get_blob(note.raw)) == ("a�b", odd.encode("utf-8", "surrogatepass"))
    assert session.get("k") == {"deep": "a�b"}
    [custom] = session.entries(kind="custom")
    assert json.loads(home.get_blob(custom.raw)) == [odd]
    assert json.dumps([message.role for message in session.context()])


def test_a_big_text_with_lone_surrogates_keeps_both(s, home, place):
    odd = BIG + "\udcff"
    s.user(odd)
    [text] = place.open().resume(s.id).messages()[0].blocks
    assert text.text == BIG + "�"
    assert home.get_blob(text.raw) == odd.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    "attempt",
    [
        lambda s: s.user("a", agent="\ud800"),
        lambda s: s.assistant("a", model="\ud800"),
        lambda s: s.append(turnlog.Note(text="a"), id="\ud800"),
        lambda s: s.set("\ud800", 1),
        lambda s: s.append(Message(role="user", meta={"k": "\ud800"})),
    ],
    ids=["agent", "model", "id", "key", "meta"],
)
def test_where_only_unicode_makes_sense_anything_else_is_refused(s, attempt):
    with pytest.raises(Invalid):
        attempt(s)
    assert s.messages() == []


# ── blobs that are lost ───────────────────────────────────────────────────────────────────────────


def test_a_payload_that_was_lost_leaves_its_stand_in_and_a_warning(files):
    with files.open() as home:
        session = home.create()
        session.user(BIG)
        session.user("after")
    for path in (files.folder / "blobs").iterdir():
        path.unlink()
    session = files.open().resume(session.id)
    with pytest.warns(turnlog.TurnlogWarning, match="stand-in"):
        messages = session.messages()
    assert messages[0].blocks[0].text.startswith("Ünd so weiter.")
    assert messages[1].blocks == [Text(text="after")]


def test_a_fact_that_was_lost_does_not_keep_a_session_from_opening(files):
    with files.open() as home:
        session = home.create()
        session.set("plan", BIG)
        session.user("after")
    for path in (files.folder / "blobs").iterdir():
        path.unlink()
    with pytest.warns(turnlog.TurnlogWarning):
        session = files.open().resume(session.id)
    assert len(session.messages()) == 1
    assert session.user("on").seq


def test_a_blob_is_found_by_its_digest_only(home):
    name = home.put_blob(b"data")
    assert (name, home.get_blob(name)) == (digest(b"data"), b"data")
    assert home.put_blob(bytearray(b"data")) == name
    with pytest.raises(NotFound):
        home.get_blob(digest(b"other"))
    with pytest.raises(Invalid):
        home.get_blob("data")


def test_results_with_images_survive_a_fork(s):
    s.assistant([ToolCall(id="1", name="x")])
    s.append(Message(role="tool", blocks=[ToolResult(call="1", content=[Image(data=PNG)])]))
    [_, tool] = s.fork().messages()
    assert tool.blocks[0].content[0].blob == digest(PNG)
