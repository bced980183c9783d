"""Every way a log can be harmed: whatever can be read is read, whatever is harmed is named, and writing goes on."""

import json
import zlib

import pytest

import turnlog
from tests.store.damaged import Victim
from turnlog import Custom, Damage, Message, Text
from turnlog.session.interior import interior


@pytest.fixture
def log(tmp_path):
    return Victim(tmp_path)


def kinds(damage):
    return [item.kind for item in damage]


def sealed(text: bytes) -> bytes:
    """A line with a checksum that matches, from JSON without one."""
    body = text[:-1]
    return body + b',"c":"%08x"}' % zlib.crc32(body)


# ── torn ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_unharmed_log_has_no_damage(log):
    assert log.check(log.entries) == []


def test_a_tail_torn_at_every_byte_of_its_last_batch(tmp_path):
    """The batch is there whole or not at all, and is not there later either."""
    log = Victim(tmp_path)
    first = len(log.lines) - 3
    begin = log.line(first)[0]
    for size in range(begin, len(log.bytes)):
        log.put(log.bytes[:size])
        whole = size == len(log.bytes) - 1  # only the newline is missing: a writer adopts the last line
        damage = log.damage()
        assert sum(item.length for item in damage if item.kind == "torn") == size - log.bytes[:size].rfind(b"\n") - 1
        if size > begin:
            assert damage
        log.check_quickly(log.entries if whole else log.entries[:first])
        if size % 29 == 0 or log.bytes[size - 1] == 10:
            log.put(log.bytes[:size])
            log.check(log.entries[:first])


def test_a_single_line_torn_at_every_byte(tmp_path):
    log = Victim(tmp_path)
    with log.home() as home:
        home.resume(log.id).user("the last ☃ words")
    log.learn()
    begin = log.line(-1)[0]
    for size in range(begin, len(log.bytes)):
        log.put(log.bytes[:size])
        log.check_quickly(log.entries if size == len(log.bytes) - 1 else log.entries[:-1])


def test_a_retry_of_a_batch_that_was_torn_is_written_anew(log):
    batch = [Message(role="user", blocks=[Text(text="x")]), Custom(kind="x.y"), Message(role="user")]
    with log.home() as home:
        lost = home.resume(log.id).append(*batch)
    log.put(log.path.read_bytes()[:-20])
    with log.home() as home:
        session = home.resume(log.id)
        again = session.append(*batch)
        assert [entry.id for entry in again] == [entry.id for entry in lost]
        assert again[0].seq > lost[-1].seq
        assert [entry.id for entry in session.entries()].count(lost[0].id) == 1
    assert [entry.seq for entry in log.read()][-3:] == [entry.seq for entry in again]


@pytest.mark.parametrize("index", range(1, 12))
def test_a_line_torn_in_the_middle_of_the_log(log, index):
    offset, line = log.line(index)
    for keep in (1, len(line) // 2, len(line) - 3):
        log.replace(index, line[:keep] + b"\n")
        damage = log.check(log.all_but(index))
        assert damage[0] == Damage(offset, keep, "garbled" if keep == 1 else "torn")


@pytest.mark.parametrize("index", range(1, 12))
def test_the_beginning_of_a_line_is_gone(log, index):
    offset, line = log.line(index)
    log.replace(index, line[20:])
    assert log.check(log.all_but(index))[0] == Damage(offset, len(line) - 21, "garbled")


# ── zeros ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 511, 4096, 70_000, 3 << 20])
def test_zeros_after_the_end(log, size):
    log.put(log.bytes + b"\0" * size)
    [damage] = log.check(log.entries)
    assert (damage.offset, damage.length) == (len(log.bytes), size)
    assert damage.kind in ("torn", "nul")
    assert Damage(len(log.bytes), size, "nul") in log.damage()


def test_an_acknowledged_tail_that_became_zeros(log):
    for lines in (1, 3, 4, 6):
        begin = log.line(-lines)[0]
        log.put(log.bytes[:begin] + b"\0" * (len(log.bytes) - begin))
        damage = log.check(log.entries[: -max(3, lines)])  # of a batch, nothing is left without its last line
        assert (damage[-1].offset, damage[-1].length) == (begin, len(log.bytes) - begin)


@pytest.mark.parametrize("index", range(0, 12))
def test_a_line_that_became_zeros_with_and_without_its_newline(log, index):
    offset, line = log.line(index)
    log.replace(index, b"\0" * (len(line) - 1) + b"\n")
    assert log.check(log.all_but(index))[0] == Damage(offset, len(line) - 1, "nul")
    log.replace(index, b"\0" * len(line))
    damage = log.check(log.all_but(index))
    following = len(log.line(index + 1)[1])
    assert damage[0] == Damage(offset, len(line) + following - 1, "spliced", log.entries[index + 1].seq)


def test_whole_pages_of_zeros_in_the_middle(tmp_path):
    log = Victim(tmp_path)
    with log.home() as home:
        session = home.resume(log.id)
        for index in range(60):
            session.user(f"{index} " + "x" * 700)
    log.learn()
    for begin, end in ((4096, 8192), (8192, 16384), (12288, 45056)):
        log.put(log.bytes[:begin] + b"\0" * (end - begin) + log.bytes[end:])
        whole = [
            entry
            for entry, (offset, line) in zip(log.entries, log.lines, strict=True)
            if offset + len(line) <= begin or offset >= end
        ]
        damage = log.check(whole)
        assert damage[0].offset <= begin
        assert damage[-1].offset + damage[-1].length >= end


# ── spliced ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("index", range(0, 12))
def test_two_lines_without_a_newline_between_them(log, index):
    offset, line = log.line(index)
    log.replace(index, line[:-1])
    [damage] = log.check(log.entries)
    assert damage == Damage(offset, len(line) + len(log.line(index + 1)[1]) - 2, "spliced", log.entries[index].seq)


def test_three_lines_glued_together(log):
    offset = log.line(3)[0]
    glued = b"".join(log.line(index)[1][:-1] for index in (3, 4, 5)) + b"\n"
    end = log.line(6)[0]
    log.put(log.bytes[:offset] + glued + log.bytes[end:])
    [damage] = log.check(log.entries)
    assert damage == Damage(offset, len(glued) - 1, "spliced", log.entries[3].seq)


def test_a_writer_catches_up_with_lines_of_others_that_were_glued_together(tmp_path):
    ours = turnlog.open(tmp_path).create(id="s")
    ours.note("one")
    theirs = turnlog.open(tmp_path).resume("s")
    path = tmp_path / "sessions" / "s.jsonl"
    before = path.read_bytes()
    for text in ("two", "three", "four"):
        theirs.note(text)
    after = path.read_bytes().removeprefix(before)
    path.write_bytes(before + after.replace(b"\n", b"") + b"\n")
    ours.note("five")
    assert [note.text for note in turnlog.open(tmp_path).read("s").entries(kind="note")] == [
        "one", "two", "three", "four", "five",
    ]  # fmt: skip


@pytest.mark.parametrize("index", range(1, 12))
def test_a_torn_line_with_a_whole_one_glued_to_it(log, index):
    offset, line = log.line(index)
    following = log.line(index + 1)[1]
    for keep in range(1, len(line) - 1, 7):
        log.replace(index, line[:keep])
        log.check_both_ways(log.read())
        found = log.entries[index + 1] in log.read()
        assert found or line[:keep].rstrip()[-1:] in b":[,", line[:keep]
        damage = log.damage()[0]
        assert (damage.offset, damage.length) == (offset, keep + len(following) - 1)
    log.check()


def test_a_torn_line_between_two_whole_ones_on_one_line(log):
    first, torn, last = (log.line(index)[1] for index in (4, 5, 6))
    offset, end = log.line(4)[0], log.line(7)[0]
    log.put(log.bytes[:offset] + first[:-1] + torn[:60] + last + log.bytes[end:])
    [damage] = log.check(log.all_but(5))
    assert (damage.offset, damage.kind, damage.seq) == (offset, "spliced", log.entries[4].seq)


def lookalike(seq: int) -> bytes:
    """An entry as any log may hold it, checksum and all."""
    text = f'{{"type":"message","seq":{seq},"at":"2026-11-18T00:00:00.000Z","parent":3,"id":"evil","role":"user"'
    return sealed((text + ',"blocks":[{"type":"text","text":"evil"}]}').encode())


@pytest.mark.parametrize("shape", ["data", "list", "input", "meta"])
@pytest.mark.parametrize("after", ["end", "glued", "sealed"])
def test_what_only_looks_like_an_entry_is_never_taken_for_one(tmp_path, shape, after):
    """Whatever a caller put into JSON, however the line around it is torn."""
    log = Victim(tmp_path)
    evil = lookalike(log.entries[-1].seq + 2)
    value = json.loads(evil)
    with log.home() as home:
        session = home.resume(log.id)
        if shape == "data":
            session.append(Custom(kind="x.y", data=value))
        elif shape == "list":
            session.append(Custom(kind="x.y", data=[1, value]))
        elif shape == "input":
            session.assistant([turnlog.ToolCall(id="1", name="x", input=value)])
        else:
            session.append(Message(role="user", meta={"k": value}))
        last = session.user("after")
    log.learn()
    offset, line = log.line(-2)
    assert evil in line
    keep = line.index(evil) + len(evil)
    torn = log.bytes[: offset + keep]
    if after == "glued":
        torn += log.line(-1)[1]
    elif after == "sealed":
        torn += b"\n" + log.line(-1)[1]
    log.put(torn)
    log.check()
    entries = log.read()
    assert "evil" not in [entry.id for entry in entries]
    assert (last in entries) == (after != "end")
    assert all(message.blocks != [Text(text="evil")] for message in entries if isinstance(message, Message))


def test_text_that_looks_like_an_entry_is_never_taken_for_one(log):
    evil = lookalike(99).decode()
    with log.home() as home:
        home.resume(log.id).append(Message(role="user", blocks=[Text(text=evil + evil + "\n" + evil)]))
    log.learn()
    offset, line = log.line(-1)
    for keep in range(line.index(b"evil"), len(line) - 2):
        log.put(log.bytes[: offset + keep] + b"\n")
        assert [entry.id for entry in log.read()] == [entry.id for entry in log.entries[:-1]]


# ── what JSON does not allow ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "change", "kind"),
    [
        ("bad UTF-8", (b"five", b"f\xff\xfee"), "utf8"),
        ("cut UTF-8", (b"five", b"fi\xe2\x98"), "utf8"),
        ("lone surrogate", (b"five", b"f\\ud800"), "surrogate"),
        ("NaN", (b'"role":', b'"x":NaN,"role":'), "number"),
        ("Infinity", (b'"role":', b'"x":[-Infinity],"role":'), "number"),
        ("too big a number", (b'"role":', b'"x":1e999,"role":'), "number"),
        ("the same key twice", (b'"role":"user"', b'"role":"system","role":"user"'), "duplicate"),
        ("another text", (b"five", b"edited by hand"), "edited"),
        ("spaces", (b'"role":', b' "role" : '), "edited"),
    ],
)  # fmt: skip
def test_a_line_that_somebody_changed_is_used_and_marked(log, name, change, kind):
    index = next(i for i, (_, line) in enumerate(log.lines) if b"five" in line)
    offset, line = log.line(index)
    changed = line.replace(*change)
    assert changed != line
    log.replace(index, changed)
    [damage] = log.check(log.entries)
    assert damage == Damage(offset, len(changed) - 1, kind, log.entries[index].seq)
    entry = next(entry for entry in log.read() if entry.seq == log.entries[index].seq)
    assert entry.unverified
    assert (entry.role, entry.id) == ("user", log.entries[index].id)
    entry.blocks[0].text.encode()
    with log.home() as home:
        session = home.resume(log.id)
        assert damage in session.damage
        assert any(message.seq == entry.seq for message in session.messages())
        assert next(item for item in session.context() if item.seq == entry.seq).blocks[0].text


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ((b"five", b"f\xff\xfee"), "utf8"),
        ((b"five", b"f\\ud800"), "surrogate"),
        ((b'"role":', b'"x":1e999,"role":'), "number"),
    ],
)
def test_a_flawed_line_whose_checksum_fits_is_still_named(log, change, kind):
    """Not rot, then: another program wrote it, with a checksum, as no program should."""
    index = next(i for i, (_, line) in enumerate(log.lines) if b"five" in line)
    _, line = log.line(index)
    log.replace(index, sealed(line.replace(*change)[:-17] + b"}") + b"\n")
    damage = log.check()
    assert [entry.seq for entry in log.read()][: len(log.entries)] == [entry.seq for entry in log.entries]
    # 1e999 is JSON: what it means is the business of who reads it.
    assert kinds(damage) == ([] if kind == "number" else [kind])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"[1,2,3]", "shape"),
        (b'"text"', "shape"),
        (b"null", "shape"),
        (b"{}", "shape"),
        (b'{"type":"message"}', "shape"),
        (b'{"type":"message","seq":"7","id":"x"}', "shape"),
        (b'{"type":"note","seq":-3,"id":"x","text":""}', "shape"),
        (b'{"type":"note","seq":0,"id":"x","text":""}', "shape"),
        (b'{"type":"note","seq":7,"id":"","text":""}', "shape"),
        (b'{"type":"note","seq":99999999999999999999,"id":"x"}', "shape"),
        (b"not json at all", "garbled"),
        (b"<<<<<<< HEAD", "garbled"),
        (b"\xff\xfe\x00\x01", "nul"),
        (b'{"type":"note","se', "torn"),
        (b"{" * 2000, "deep"),
    ],
    ids=repr,
)
def test_a_line_that_is_no_entry_is_named_and_harms_nobody(log, text, kind):
    offset = log.line(5)[0]
    for line in (text, sealed(text) if text[-1:] == b"}" and len(text) > 2 else text):
        log.put(log.bytes[:offset] + line + b"\n" + log.bytes[offset:])
        [damage] = log.check(log.entries)
        assert (damage.offset, damage.length) == (offset, len(line))
        assert damage.kind in (kind, "garbled", "order")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_hundred_thousand_levels_of_nesting(log, opening):
    offset = log.line(5)[0]
    closing = (b"]" if opening == b"[" else b"}") * 100_000
    text = b'{"type":"custom","seq":6,"id":"deep","kind":"x.y","data":' + opening * 100_000 + b"1" + closing + b"}"
    for line in (text, sealed(text), opening * 100_000):
        log.put(log.bytes[:offset] + line + b"\n" + log.bytes[offset:])
        [damage] = log.check(log.entries)
        assert (damage.offset, damage.length) == (offset, len(line))
        assert damage.kind in ("deep", "garbled", "torn")


def test_line_ends_of_another_system(log):
    log.put(log.bytes.replace(b"\n", b"\r\n"))
    damage = log.check(log.entries)
    assert [item.seq for item in damage] in ([], [entry.seq for entry in log.entries])


@pytest.mark.parametrize("blank", [b"\n", b"\n\n\n", b"\r\n", b"  \n", b"\t\n"])
def test_blank_lines_are_nothing(log, blank):
    offset = log.line(5)[0]
    log.put(blank + log.bytes[:offset] + blank + log.bytes[offset:] + blank)
    assert log.check(log.entries) == []


# ── order ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("source", range(0, 14))
@pytest.mark.parametrize("target", [0, 1, 5, 7, 13, 14])
def test_a_line_that_was_pasted_a_second_time(log, source, target):
    _, line = log.line(source)
    offset = log.line(target)[0] if target < len(log.lines) else len(log.bytes)
    log.put(log.bytes[:offset] + line + log.bytes[offset:])
    damage = log.check(log.entries)
    assert kinds(damage) == ["order"]
    assert damage[0].seq == log.entries[source].seq
    assert damage[0].length == len(line) - 1


@pytest.mark.parametrize(("source", "target"), [(2, 9), (9, 2), (1, 14), (4, 12), (11, 1), (3, 5)])
def test_a_line_that_was_moved_costs_no_other(log, source, target):
    offset, line = log.line(source)
    rest = log.bytes[:offset] + log.bytes[offset + len(line) :]
    place = log.line(target)[0] - (len(line) if target > source else 0)
    log.put(rest[:place] + line + rest[place:])
    damage = log.check(log.all_but(source))
    assert kinds(damage) == ["order"]
    assert damage[0].seq == log.entries[source].seq


def test_a_log_that_was_written_twice_into_its_file(log):
    log.put(log.bytes + log.bytes)
    log.check(log.entries)


def test_a_hand_edited_line_pasted_back_in_the_wrong_place(log):
    index = next(i for i, (_, line) in enumerate(log.lines) if b"five" in line)
    _, line = log.line(index)
    log.put(log.bytes + line.replace(b"five", b"edited"))
    log.check(log.entries)


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


def batch_of(log):
    """The lines of the batch in the middle."""
    return [i for i, entry in enumerate(log.entries) if entry.batch and entry.seq < log.entries[-3].seq]


def test_rot_inside_an_old_batch_keeps_its_other_lines(log):
    for index in batch_of(log):
        offset, line = log.line(index)
        log.replace(index, line[:40] + b"\0" + line[41:])
        [damage] = log.check(log.all_but(index))
        assert (damage.offset, damage.length) == (offset, len(line) - 1)


def test_a_line_of_an_old_batch_that_vanished_keeps_the_others(log):
    for index in batch_of(log):
        log.replace(index, b"")
        assert log.check(log.all_but(index)) == []


def test_an_edited_line_of_a_batch_is_used_with_the_others(log):
    index = batch_of(log)[1]
    _, line = log.line(index)
    log.replace(index, line.replace(b"b2", b"edited"))
    [damage] = log.check(log.entries)
    assert (damage.kind, damage.seq) == ("edited", log.entries[index].seq)


def test_an_unfinished_batch_in_the_tail_is_named_and_stays_hidden(log):
    begin = log.line(-3)[0]
    for lines in (1, 2):
        end = log.line(lines - 3)[0]
        log.put(log.bytes[:end])
        damage = log.check(log.entries[:-3])
        assert [(item.offset, item.kind) for item in damage] == [
            (log.line(index - 3)[0], "unfinished") for index in range(lines)
        ]
        assert damage[0].offset == begin
        hidden = {entry.seq for entry in log.entries[-3:]}
        with log.home() as home:
            session = home.resume(log.id)
            session.user("much later")
            assert not hidden & {entry.seq for entry in session.entries()}
            assert all(session.find(entry.id) is None for entry in log.entries[-3:])


def test_a_batch_torn_and_then_rotten_stays_hidden(log):
    """The line that seals an unfinished batch says so; what rots before it changes nothing."""
    end = log.line(-1)[0]
    log.put(log.bytes[: end + 30])
    with log.home() as home:
        home.resume(log.id).user("seals it")
    data = log.path.read_bytes()
    hole = log.line(-2)[0] + 20
    log.put(data[:hole] + b"\0" * 10 + data[hole + 10 :])
    hidden = {entry.seq for entry in log.entries[-3:]}
    assert not hidden & {entry.seq for entry in log.read()}
    log.check_both_ways(log.read())


# ── the ends of the log ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("new", [b"", b"\n", b"\0" * 50 + b"\n", b"{}\n", b"garbage\n", b'{"type":"session"'])
def test_the_first_line_is_gone_and_the_session_is_not(log, new):
    log.replace(0, new)
    log.check(log.all_but(0) if new.endswith(b"\n") or not new else None)
    with log.home() as home:
        [info] = home.sessions()
        assert (info.id, info.title, info.is_readable) == (log.id, "Renamed", False)
        session = home.resume(home.find(log.id[:3]))
        assert session.title == "Renamed"
        assert session.get("mood") == "good"
        assert session.messages()[0].blocks == [Text(text="one")]


def test_the_first_line_of_a_fork_is_gone_and_it_still_knows_its_parent(tmp_path):
    with turnlog.open(tmp_path) as home:
        parent = home.create(id="parent")
        parent.user("one")
        parent.set("k", 1)
        child = parent.fork(id="child")
        child.user("two")
    path = tmp_path / "sessions" / "child.jsonl"
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(b"\0" * len(first) + b"\n" + rest)
    with turnlog.open(tmp_path) as home:
        child = home.resume("child")
        assert [message.blocks[0].text for message in child.messages()] == ["one", "two"]
        assert child.get("k") == 1
        assert child.user("three").seq > child.messages()[1].seq
        with pytest.raises(turnlog.Corrupt):
            home.purge("parent")  # nobody can tell whether the child needs it
    with turnlog.open(tmp_path) as home:
        assert [message.blocks[0].text for message in home.resume("child").messages()] == ["one", "two", "three"]


def test_a_long_id_is_found_though_its_first_line_is_gone(tmp_path):
    name = "a very long id " * 30
    with turnlog.open(tmp_path) as home:
        home.create(id=name).user("one")
    [path] = (tmp_path / "sessions").glob("~*.jsonl")
    data = path.read_bytes()
    path.write_bytes(b"\0" * data.index(b"\n") + data[data.index(b"\n") :])
    with turnlog.open(tmp_path) as home:
        session = home.resume(name)
        assert [message.blocks[0].text for message in session.messages()] == ["one"]
        session.user("two")
        [info] = home.sessions()
        assert not info.is_readable
        assert len(home.resume(info.id).messages()) == 2
        store = interior(home).store
        repaired = store.repair(info.id, without=())
        assert repaired.blanked_bytes == data.index(b"\n")
        assert store.examine(info.id, lambda entry: None).regions == []


@pytest.mark.parametrize(
    "make",
    [
        lambda data: b"",
        lambda data: b"\n",
        lambda data: b"\0" * len(data),
        lambda data: b"\n" * len(data),
        lambda data: bytes(255 - byte for byte in data),
        lambda data: data[:100],
        lambda data: data.replace(b'"', b"'"),
        lambda data: b"\xff" * len(data) + b"\n",
    ],
    ids=["empty", "newline", "zeros", "newlines", "inverted", "cut", "quotes", "ones"],
)
def test_a_log_of_which_nothing_is_left_is_listed_and_goes_on(log, make):
    data = make(log.bytes)
    log.put(data)
    long_gone = len(data) < 1000
    if long_gone:
        log.entries = log.entries[:0] or log.entries[:1]  # nothing tells how long it was
    log.check([] if not data.startswith(b'{"type":"session"') else None)


def test_a_log_that_lost_its_end_is_a_conflict_for_its_writer_and_no_number_comes_twice(log):
    with log.home() as home:
        session = home.resume(log.id)
        used = session.user("six").seq
        log.put(log.bytes[: log.line(-4)[0]])
        with pytest.raises(turnlog.Conflict):
            session.user("seven")
        session.refresh()
        assert session.user("seven").seq > used
        assert session.messages()[-1].blocks == [Text(text="seven")]


def test_damage_does_not_hide_in_a_listing_of_many(tmp_path):
    with turnlog.open(tmp_path) as home:
        for index in range(10):
            home.create(id=f"s{index}", title=str(index)).user("x")
    for index in range(0, 10, 2):
        path = tmp_path / "sessions" / f"s{index}.jsonl"
        path.write_bytes(bytes([index * 25]) * 500)
    with turnlog.open(tmp_path) as home:
        assert sorted(info.id for info in home.sessions()) == [f"s{index}" for index in range(10)]
        assert [info.is_readable for info in sorted(home.sessions(), key=lambda i: i.id)] == [False, True] * 5


@pytest.mark.parametrize("repeated", [None, 3], ids=["joined", "joined, and a line moved"])
def test_lines_that_were_joined_can_be_examined_and_repaired_wherever_they_are(log, repeated):
    """In a batch too: the damage of a line is named before the entries that share it, in both directions."""
    for index in range(len(log.lines) - 1):
        lines = [line for _, line in log.lines]
        lines[index : index + 2] = [lines[index][:-1] + lines[index + 1]]
        if repeated is not None:
            lines.insert(max(0, index - 1), log.lines[-repeated][1])
        log.put(b"".join(lines))
        places = {(type(item), item.offset) for item in log.damage()}
        readable = log.read()
        assert log.read(reverse=True) == readable[::-1]
        survey = log.store().examine(log.id, lambda entry: None)
        assert [region.kind for region in survey.regions].count("spliced") == 1
        for region in survey.regions:
            assert region.length > 0
            assert (Damage, region.offset) in places
            assert region.newer is None or region.older < region.newer
        log.store().repair(log.id, without=())
        left = [entry for entry in log.read() if entry.type != "note" or not entry.text.startswith("repaired")]
        assert left == readable
