"""What a session knows is folded from its entries; a fold entry half-way changes nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.log.entries import entries, usages
from turnlog import Message, Set, Text, Usage
from turnlog.log.entry import Child, Edit, Fold, Head, Start, Turn, Unknown, Writer
from turnlog.log.fold import State, copy, fold, fork_state, from_fold, to_fold

small = st.integers(0, 9)
more = st.one_of(
    entries,
    st.builds(Set, key=st.sampled_from(["k", "title", "tags"]), value=st.integers(), unset=st.booleans()),
    st.builds(Message, role=st.just("system"), blocks=st.just([Text(text="s")])),
    st.builds(Message, role=st.just("assistant"), usage=usages, request=st.sampled_from([None, "r1", "r2"])),
    st.builds(Head, to=small, asof=small, why=st.sampled_from(["rewind", "undo", "redo"]), undoes=small),
    st.builds(Turn, state=st.sampled_from(["begin", "completed"]), turn=st.sampled_from(["t", "u"])),
    st.builds(Child, session=st.sampled_from(["a", "b"])),
    st.builds(Writer, word=st.text("abc", min_size=1, max_size=2), pid=st.integers(1, 9)),
    st.builds(Edit, entry=st.integers(1, 9), blocks=st.just([Text(text="e")])),
    st.builds(Unknown, kind=st.just("later"), json=st.just('{"type":"later"}'), critical=st.booleans()),
)  # fmt: skip


def placed(drawn):
    """The entries as a store gives them back."""
    head = 0
    found = [Start(id="s", seq=1, title="t", labels={"a": "b"})]
    for index, entry in enumerate(drawn):
        seq = index + 2
        entry = replace(entry, seq=seq, parent=head if entry.is_node else None)
        head = seq if entry.is_node else entry.to if isinstance(entry, Head) else head
        found.append(entry)
    return found


def folded(found, state=None):
    state = State() if state is None else state
    for entry in found:
        fold(state, entry)
    return state


@settings(max_examples=150)
@given(st.lists(more, max_size=25), st.integers(0, 25))
def test_a_fold_entry_half_way_changes_nothing(drawn, place):
    found = placed(drawn)
    half = folded(found[: place + 1])
    kept = from_fold(to_fold(half))
    assert kept == half
    assert folded(found[place + 1 :], kept) == folded(found)


@settings(max_examples=60)
@given(st.lists(more, max_size=12), st.integers(0, 12))
def test_a_copy_is_a_state_of_its_own(drawn, place):
    found = placed(drawn)
    state = folded(found[: place + 1])
    other = copy(state)
    folded(found[place + 1 :], other)
    assert state == folded(found[: place + 1])


@settings(max_examples=60)
@given(st.lists(more, max_size=15))
def test_a_fork_knows_everything_and_has_spent_nothing(drawn):
    state = folded(placed(drawn))
    child = fork_state(state, state.seq)
    assert child.own == Usage()
    assert child.inherited.usage == state.own
    assert (child.facts, child.wide, child.head, child.system) == (state.facts, state.wide, state.head, state.system)
    assert (child.undo, child.redo, child.children, child.counts.turns) == ([], [], [], 0)
    grandchild = fork_state(child, child.seq)
    assert grandchild.inherited == child.inherited


def test_a_fold_that_cannot_be_believed_is_not_used():
    state = folded(placed([Set(key="k", value=1)]))
    entry = to_fold(state)
    assert from_fold(entry) == state
    assert from_fold(replace(entry, unverified=True)) is None
    assert from_fold(replace(entry, upto=entry.upto + 1)) is None
    assert from_fold(Fold(upto=2, state={"seq": 2, "head": "x"})) is None
    assert from_fold(Fold(upto=2, state=None)) is None
    assert from_fold(Fold(upto=2, state=[1])) is None


def test_a_fold_entry_is_nothing_that_happened():
    found = placed([Set(key="k", value=1)])
    state = folded(found)
    later = folded([*found, replace(to_fold(state), seq=9)])
    assert replace(later, seq=state.seq) == state
