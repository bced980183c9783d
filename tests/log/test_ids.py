"""Names of entries and sessions."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.ids import handle_of, is_ours, new_id, new_session_id, process_word, word, word_of


def test_ids_are_never_given_twice():
    made = [new_id() for _ in range(5000)]
    assert len(set(made)) == 5000
    assert all(is_ours(entry_id) and word_of(entry_id) == process_word() for entry_id in made)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_gives_other_ids():
    mine = process_word()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, f"{process_word()} {new_id()}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs, their_id = os.read(read, 1000).decode().split()
    os.close(read)
    os.close(write)
    assert theirs != mine
    assert not is_ours(their_id)
    assert process_word() == mine


def test_a_session_id_sorts_by_time_and_its_handle_is_its_last_part():
    one = new_session_id("20261115-070012")
    assert one.startswith("20261115-070012-")
    assert handle_of(one) == one[-8:]
    assert one < new_session_id("20261115-070013")


@pytest.mark.parametrize("name", ["mine", "a-b-c", "2026-07-x", "20261115-070012", "20261115-070012-short", ""])
def test_any_other_id_is_its_own_handle(name):
    assert handle_of(name) == name


@given(st.text(max_size=40))
def test_what_a_caller_chose_is_not_ours(entry_id):
    assert not is_ours(entry_id)


def test_words_are_easy_to_read_aloud():
    assert not set("ilou") & set(word(500))
