"""What is not certain is not believed: numbers of entries that cannot be read, and folds that do not fit their log."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog import Session, Usage
from turnlog.log.draft import prepare
from turnlog.log.fold import to_fold
from turnlog.thread.reader import history_of


@pytest.fixture
def session(tmp_path: Path) -> Session:
    session = turnlog.open(tmp_path).create(id="one", title="right")
    session.spend(Usage(output_tokens=5))
    return session


@pytest.fixture
def file(tmp_path: Path, session: Session) -> Path:
    return tmp_path / "sessions" / f"{session.id}.jsonl"


def again(session: Session, file: Path) -> Session:
    """The same session as a new process sees it."""
    session.close()
    return turnlog.open(file.parents[1]).resume(session.id)


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_the_numbers_of_entries_that_became_unreadable_are_not_given_out_again(
    session: Session, file: Path, lines: int
):
    last = [session.note(f"{n}") for n in range(6)][-1]
    data = file.read_bytes().splitlines(keepends=True)
    kept = b"".join(data[:-lines])
    file.write_bytes(kept + bytes(len(b"".join(data)) - len(kept)))
    new = again(session, file).note("after")
    assert new.seq > last.seq


def test_a_number_that_can_be_read_in_a_damaged_line_is_not_given_out_again(session: Session, file: Path):
    last = session.append(turnlog.Note(text="first of a batch"), turnlog.Note(text="second"))[-1]
    data = file.read_bytes()
    file.write_bytes(data[: data.rindex(b'{"type":"note"')])
    other = again(session, file)
    assert [note.text for note in other.entries(kind="note")] == []
    assert other.note("after").seq > last.seq


def test_a_number_that_only_an_unfinished_batch_tells_is_not_given_out_again(session: Session, file: Path):
    for number in range(40):
        session.user(f"{number}")
    fork = session.fork(id="two")
    first, _ = fork.append(turnlog.Note(text="first"), turnlog.Note(text="second"))
    path = file.with_name("two.jsonl")
    *others, first_line, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(bytes(len(b"".join(others))) + b"\n" + first_line)
    assert again(fork, path).note("after").seq > first.seq


def test_a_fork_whose_second_line_is_damaged_still_knows_its_parent(session: Session, file: Path):
    session.user("inherited")
    fork = session.fork(id="two")
    path = file.with_name("two.jsonl")
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + bytes(len(second) - 1) + b"\n")
    again(fork, path).user("own")
    assert len(again(fork, path).messages()) == 2


# ── folds ─────────────────────────────────────────────────────────────────────────────────────────


def fold_of(session: Session) -> Any:
    return prepare(to_fold(session._appender.state))[0]


def append_fold(session: Session, fold: Any) -> None:
    log = history_of(session).log
    log.append([fold], after=1 << 40, head=0)


def change_fold(file: Path, change: Any, *, seals: bool) -> None:
    """Rewrite the fold in a log; `seals` gives it a checksum that fits."""
    lines = file.read_bytes().splitlines(keepends=True)
    for index, line in enumerate(lines):
        fields = json.loads(line)
        if fields["type"] == "fold":
            fields.pop("c")
            change(fields)
            text = json.dumps(fields, separators=(",", ":")).encode()[:-1]
            sum_of = zlib.crc32(text) if seals else 0
            lines[index] = b'%b,"c":"%08x"}\n' % (text, sum_of)
    file.write_bytes(b"".join(lines))


def test_a_fold_that_fits_is_used(session: Session, file: Path):
    append_fold(session, fold_of(session))
    change_fold(file, lambda fields: fields["state"]["wide"].update(title="left"), seals=True)
    assert again(session, file).title == "left", "or the tests below prove nothing"


def test_a_fold_that_somebody_edited_is_not_believed(session: Session, file: Path):
    append_fold(session, fold_of(session))
    change_fold(file, lambda fields: fields["state"]["wide"].update(title="left"), seals=False)
    assert again(session, file).title == "right"


def test_a_fold_that_says_it_knows_more_than_it_can_is_not_believed(session: Session, file: Path):
    append_fold(session, fold_of(session))

    def claim(fields: dict[str, Any]) -> None:
        fields["state"]["seq"] = fields["seq"] + 10
        fields["state"]["wide"]["title"] = "left"

    change_fold(file, claim, seals=True)
    assert again(session, file).title == "right"


def test_what_others_wrote_between_a_fold_and_what_it_knows_counts(session: Session, file: Path):
    old = fold_of(session)
    other = turnlog.open(file.parents[1]).resume("one")
    other.spend(Usage(output_tokens=7))
    other.set("title", "new")
    append_fold(session, old)
    view = again(session, file)
    assert view.usage().own.output_tokens == 12
    assert view.title == "new"


def test_without_its_folds_a_log_says_the_same(session: Session, file: Path):
    for number in range(300):
        session.user(f"{number}")
    session.rewind(turns=3)
    session.set("mood", "good")
    lines = file.read_bytes().splitlines(keepends=True)
    assert any(b'"type":"fold"' in line for line in lines)
    before = again(session, file)
    told = (before.title, before.facts, before.head, before.stats(), before.usage(), len(before.messages()))
    before.close()
    file.write_bytes(b"".join(line for line in lines if b'"type":"fold"' not in line))
    after = turnlog.open(file.parents[1]).resume("one")
    assert told == (after.title, after.facts, after.head, after.stats(), after.usage(), len(after.messages()))
