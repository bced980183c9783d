"""What a later version wrote survives: kinds, blocks and fields, to the letter, wherever they are carried."""

import json
import zlib

import pytest

from turnlog import Message, Text, UnknownBlock, Unsupported
from turnlog.log.entry import Unknown

BLOCK = '{"type":"hologram","depth":1.50,"huge":123456789012345678901234567890,"x":{"b":1,"a":[]}}'
FIELDS = '"later":{"z":1,"a":[2.0]},"also":"ü"'


def plant(place, session, *bodies):
    """Append lines as a later version would have written them."""
    session.close()
    path = place.path(session)
    seq = json.loads(path.read_bytes().splitlines()[-1])["seq"]
    with path.open("ab") as file:
        for body in bodies:
            seq += 1
            text = body.replace("SEQ", str(seq)).replace("AT", "2027-01-01T00:00:00.000Z").encode()[:-1]
            file.write(text + b',"c":"%08x"}\n' % zlib.crc32(text))
    return place.open().resume(session.id)


@pytest.fixture
def session(files):
    session = files.open().create()
    session.user("before")
    return session


MARK = '{"type":"hologram","seq":SEQ,"at":"AT","id":"mark","depth":1.50,"k":{"b":1,"a":[]}}'
NODE = '{"type":"vision","seq":SEQ,"at":"AT","parent":3,"id":"node","frames":[1e400]}'
MESSAGE = (
    '{"type":"message","seq":SEQ,"at":"AT","parent":3,"id":"msg","role":"user","blocks":['
    '{"type":"text","text":"hi","later":[1.0]},' + BLOCK + '],"mood":{"b":2,"a":1.10}}'
)
CRITICAL = '{"type":"lock","seq":SEQ,"at":"AT","id":"crit","critical":true,"k":1}'


def test_an_unknown_entry_is_kept_and_shown(session, files):
    session = plant(files, session, MARK)
    entry = session.find("mark")
    assert isinstance(entry, Unknown)
    assert (entry.kind, entry.type) == ("hologram", "hologram")
    assert list(session.entries(kind="hologram")) == [entry]
    assert '"depth":1.50,"k":{"b":1,"a":[]}' in entry.json
    assert session.damage == []
    session.user("after")
    assert [message.blocks[0].text for message in session.messages()] == ["before", "after"]


def test_an_unknown_node_carries_the_conversation(session, files):
    session = plant(files, session, NODE)
    node = session.find("node")
    assert session.head == node.seq
    assert session.user("after").parent == node.seq
    assert [message.blocks[0].text for message in session.messages()] == ["before", "after"]
    assert len(session.context()) == 2


def test_unknown_blocks_and_fields_of_a_message_are_kept(session, files):
    session = plant(files, session, MESSAGE)
    message = session.messages()[-1]
    assert (message.role, message.blocks[0].text) == ("user", "hi")
    assert isinstance(message.blocks[1], UnknownBlock)
    assert message.blocks[1].json == BLOCK
    assert bytes(message.unknown["mood"]) == b'{"b":2,"a":1.10}'
    assert bytes(message.blocks[0].unknown["later"]) == b"[1.0]"
    assert session.context()[-1] == message


def test_copies_keep_every_letter_of_what_is_unknown(session, files):
    session = plant(files, session, MARK, MESSAGE)
    other = files.open().create()
    other.append(session.find("mark"))
    other.append(session.find("msg"))
    fork = session.fork()
    fork.user("x")
    for line in files.path(other).read_text().splitlines()[-2:]:
        assert '"depth":1.50,"k":{"b":1,"a":[]}' in line or ('"mood":{"b":2,"a":1.10}' in line and BLOCK in line)
    copied = files.open().resume(other.id)
    assert copied.find("msg").blocks == session.find("msg").blocks
    assert '"depth":1.50,"k":{"b":1,"a":[]}' in copied.find("mark").json
    assert fork.find("msg") == session.find("msg")


def test_an_unknown_node_stays_a_node_when_it_is_copied(session, files):
    session = plant(files, session, NODE)
    other = files.open().create()
    one = other.user("one")
    copied = other.append(session.find("node"))
    assert copied.parent == one.seq
    assert other.head == copied.seq
    assert '"frames":[1e400]' in copied.json


def test_a_known_kind_with_a_field_it_cannot_hold_is_kept_whole(session, files):
    odd = '{"type":"note","seq":SEQ,"at":"AT","id":"odd","text":{"rich":[1.0]}}'
    session = plant(files, session, odd)
    entry = session.find("odd")
    assert isinstance(entry, Unknown)
    assert (entry.kind, '"text":{"rich":[1.0]}' in entry.json) == ("note", True)
    assert session.damage == []


def test_a_known_block_with_a_field_it_cannot_hold_is_kept_whole(session, files):
    block = '{"type":"text","text":{"rich":[1.0]}}'
    odd = '{"type":"message","seq":SEQ,"at":"AT","parent":3,"id":"odd","role":"user","blocks":[' + block + "]}"
    session = plant(files, session, odd)
    assert session.messages()[-1].blocks == [UnknownBlock(kind="text", json=block)]


def test_a_role_of_later_days_is_kept(session, files):
    odd = '{"type":"message","seq":SEQ,"at":"AT","parent":3,"id":"odd","role":"critic","blocks":[]}'
    assert plant(files, session, odd).messages()[-1].role == "critic"


def test_a_critical_entry_that_is_unknown_refuses_context_and_append_but_not_reading(session, files):
    session = plant(files, session, CRITICAL)
    for attempt in (
        session.context,
        lambda: session.user("x"),
        lambda: session.set("k", 1),
        lambda: session.rewind(to=0),
    ):
        with pytest.raises(Unsupported, match="lock"):
            attempt()
    assert [message.blocks[0].text for message in session.messages()] == ["before"]
    assert [entry.id for entry in session.entries()][-1] == "crit"
    assert session.find("crit").critical
    assert session.stats().messages == 1
    assert [info.id for info in files.open().sessions()] == [session.id]


def test_a_critical_entry_is_inherited_by_a_fork(session, files):
    message = next(session.entries(kind="message"))
    session = plant(files, session, CRITICAL)
    with pytest.raises(Unsupported):
        session.fork().context()
    assert len(session.fork(at=message).context()) == 1


def test_a_critical_entry_of_a_kind_that_is_known_is_no_obstacle(session, files):
    known = '{"type":"note","seq":SEQ,"at":"AT","id":"n","critical":true,"text":"t"}'
    session = plant(files, session, known)
    assert session.find("n").critical
    assert session.user("on").seq


def test_a_later_layout_of_the_home_is_refused(files):
    files.open().create()
    (files.folder / "home.json").write_text('{"layout":99,"packs":1}')
    with pytest.raises(Unsupported, match="99"):
        files.open()


def test_what_this_version_writes_is_valid_json_with_its_checksum_last(session, files):
    session.append(Message(role="user", blocks=[Text(text='tricky ,"c":"00000000"} ü')]))
    session.close()
    for line in files.path(session).read_bytes().splitlines():
        fields = json.loads(line)
        assert list(fields)[-1] == "c"
        assert next(iter(fields)) == "type"
        body = line[: line.rindex(b',"c":')]
        assert fields["c"] == f"{zlib.crc32(body):08x}"


def test_the_blobs_of_an_unknown_entry_are_not_collected(session, files):
    home = files.open()
    name = home.put_blob(b"what only a later version understands")
    plant(files, session, MARK[:-1] + f',"blobs":["{name}"]}}')
    home.gc()
    assert home.get_blob(name) == b"what only a later version understands"
