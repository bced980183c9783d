"""With a real git: what it brings is its own, what it brings back has the author it had."""

import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.blame.lab import Lab
from turnlog.blame.repository import Repository
from turnlog.log.part import Git


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.git("init", "-qb", "main")
    lab.write("f", "one", "two", "three", "four", "five", "six")
    lab.commit("first")
    return lab


def other_clone(lab: Lab) -> Path:
    folder = lab.folder.parent / "theirs"
    lab.git("clone", "-q", str(lab.folder), str(folder))
    lab.git("remote", "add", "theirs", str(folder))
    return folder


def test_a_turn_that_commits_what_it_wrote_is_its_author(lab):
    with lab.turn():
        lab.write("f", *lab.lines("f"), "new")
        lab.commit("mine")
    lab.turn_that(lambda: lab.git("commit", "-q", "--amend", "-m", "other words"))
    assert lab.told("f") == dict.fromkeys(["one", "two", "three", "four", "five", "six"], "before") | {"new": 1}


def test_the_first_commit_of_a_turn_is_its_own_whichever_hash_git_uses(tmp_path):
    lab = Lab(tmp_path)
    lab.git("init", "-qb", "main", "--object-format=sha256")
    with lab.turn():
        lab.write("f", "one", "two")
        lab.commit("mine")
    assert lab.told("f") == {"one": 1, "two": 1}


def test_what_a_turn_pulled_is_gits_and_what_it_wrote_besides_is_its_own(lab):
    folder = other_clone(lab)
    (folder / "f").write_text("theirs\n" + (folder / "f").read_text())
    commit = lab.commit("theirs", folder)
    with lab.turn():
        lab.write("f", *lab.lines("f"), "mine")
        lab.commit("mine")
        lab.git("pull", "-q", "--no-rebase", "--no-edit", "theirs", "main")
        lab.write("f", *lab.lines("f"), "mine, too")
    found = lab.told("f")
    assert (found["theirs"], found["mine"], found["mine, too"], found["one"]) == ("git", 1, 1, "before")
    assert lab.blame("f")[0].commit == commit


def test_what_came_by_a_merge_between_turns_is_gits(lab):
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "mine"))
    lab.commit("mine")
    folder = other_clone(lab)
    lab.git("checkout", "-q", "-b", "topic", "HEAD~1", folder=folder)
    (folder / "f").write_text("theirs\n" + (folder / "f").read_text())
    commit = lab.commit("theirs", folder)
    lab.git("fetch", "-q", "theirs")
    lab.git("merge", "-q", "--no-edit", "theirs/topic")
    assert lab.told("f")["theirs"] == "git", "the checkpoint of now is the first that sees it"
    lab.turn_that(lambda: None)
    found = lab.blame("f")
    assert (found[0].text, found[0].why, found[0].commit) == ("theirs", "git", commit)
    assert lab.told("f")["mine"] == 1


def test_a_conflict_that_a_turn_solved_has_both_authors(lab):
    folder = other_clone(lab)
    (folder / "f").write_text((folder / "f").read_text().replace("two", "theirs"))
    lab.commit("theirs", folder)
    lab.turn_that(lambda: lab.write("f", "one", "mine", "three", "four", "five", "six"))
    lab.commit("mine")
    lab.git("fetch", "-q", "theirs")
    with lab.turn():
        with pytest.raises(Exception, match="merge"):
            lab.git("merge", "-q", "--no-edit", "theirs/main")
        lab.write("f", "one", "mine", "theirs", "solved", "three", "four", "five", "six")
        lab.commit("merged")
    found = lab.told("f")
    assert (found["mine"], found["theirs"], found["solved"]) == (1, "git", 2)


@pytest.mark.parametrize("in_turn", [False, True])
def test_lines_keep_their_author_over_a_branch_switch(lab, in_turn):
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "", "new"))
    lab.commit("mine")

    def switch(name: str) -> None:
        lab.turn_that(lambda: lab.git("checkout", "-q", name)) if in_turn else lab.git("checkout", "-q", name)
        lab.turn_that(lambda: None)

    lab.git("branch", "old", "HEAD~1")
    switch("old")
    assert lab.told("f").keys() == {"one", "two", "three", "four", "five", "six"}
    lab.turn_that(lambda: lab.write("g", "of old"))
    lab.commit("of old")
    switch("main")
    assert lab.told("f")["new"] == 1
    assert lab.told("f")[""] == 1
    lab.git("merge", "-q", "--no-edit", "old")
    lab.turn_that(lambda: None)
    assert lab.told("f")["new"] == 1
    assert lab.told("g")["of old"] == (4 if in_turn else 3)


@pytest.mark.parametrize("in_turn", [False, True])
def test_lines_keep_their_author_over_a_stash(lab, in_turn):
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "new"))

    def do(*words: str) -> None:
        lab.turn_that(lambda: lab.git(*words)) if in_turn else lab.git(*words)
        lab.turn_that(lambda: None)

    do("stash")
    lab.turn_that(lambda: lab.write("f", "zero", *lab.lines("f")))
    lab.commit("zero")
    do("stash", "pop")
    found = lab.told("f")
    assert (found["new"], found["zero"]) == (1, 4 if in_turn else 3)


def test_what_a_stash_brings_that_nobody_saw_is_gits(lab):
    lab.write("f", *lab.lines("f"), "of long ago")
    lab.git("stash")
    lab.turn_that(lambda: lab.git("stash", "pop"))
    assert lab.told("f")["of long ago"] == "git"


def test_lines_keep_their_author_over_squash_and_rebase(lab):
    lab.git("checkout", "-q", "-b", "topic")
    for number in range(3):
        lab.turn_that(lambda n=number: lab.write("f", *lab.lines("f"), f"topic {n}"))
        lab.commit(f"topic {number}")
    lab.git("checkout", "-q", "main")
    lab.turn_that(lambda: lab.write("f", "of main", *lab.lines("f")))
    lab.commit("main went on")
    lab.git("merge", "-q", "--squash", "topic")
    lab.commit("all of the topic")
    lab.turn_that(lambda: None)
    wanted = {"of main": 4, "topic 0": 1, "topic 1": 2, "topic 2": 3}
    assert {text: told for text, told in lab.told("f").items() if text in wanted} == wanted

    lab.git("checkout", "-q", "topic")
    lab.turn_that(lambda: None)
    lab.git("reset", "-q", "--hard", "HEAD~1")
    lab.git("rebase", "-q", "main~1")
    lab.turn_that(lambda: None)
    del wanted["topic 2"]
    assert {text: told for text, told in lab.told("f").items() if text in wanted} == wanted


@pytest.mark.parametrize("words", [("checkout", "--", "f"), ("restore", "f"), ("reset", "-q", "--hard")])
def test_what_git_put_back_has_the_author_it_had(lab, words):
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "new"))
    lab.commit("mine")
    lab.write("f", "one")  # a person deletes nearly everything …
    lab.turn_that(lambda: lab.write("f", "one", "more"))
    lab.turn_that(lambda: lab.git(*words))  # … and an agent gets it back
    assert lab.told("f") == dict.fromkeys(["one", "two", "three", "four", "five", "six"], "before") | {"new": 1}


def test_a_file_that_a_turn_took_from_another_branch_is_gits(lab):
    lab.git("checkout", "-q", "-b", "topic")
    lab.write("f", "theirs", *lab.lines("f"))
    commit = lab.commit("theirs")
    lab.git("checkout", "-q", "main")
    lab.turn_that(lambda: lab.git("checkout", "topic", "--", "f"))
    line = lab.blame("f")[0]
    assert (line.text, line.why, line.commit) == ("theirs", "git", commit)
    with lab.turn():
        lab.write("f", *lab.lines("f"), "staged by hand")
        lab.git("add", "f")
    lab.commit("all")
    assert lab.told("f")["staged by hand"] == 2, "a commit that came later says nothing"


def test_a_line_that_is_written_again_is_of_who_wrote_it_again(lab):
    for text in ("two", "TWO", "two"):
        with lab.turn():
            lab.write("f", "one", text, "three")
            lab.commit(text)
    assert lab.told("f")["two"] == 3


def test_a_revert_brings_back_the_author(lab):
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "new"))
    lab.commit("mine")
    with lab.turn():
        lab.write("f", "one", "two")
        lab.commit("too much")
    lab.turn_that(lambda: lab.git("revert", "--no-edit", "HEAD"))
    assert lab.told("f")["new"] == 1
    assert lab.told("f")["six"] == "before"


def test_lines_that_git_removed_and_that_are_written_again_one_by_one_keep_their_authors(lab):
    """Both come back as the first line of the file, which is where each begins a run of its own."""
    base = lab.lines("f")
    for lines in (["top", *base], ["top", *base, "end"]):
        with lab.turn():
            lab.write("f", *lines)
            lab.commit("added")
    lab.turn_that(lambda: lab.git("reset", "-q", "--hard", "HEAD~2"))
    for lines in (["top", *base], ["end", "top", *base]):
        with lab.turn():
            lab.write("f", *lines)
            lab.commit("again")
    told = lab.told("f")
    assert (told["top"], told["end"]) == (1, 2)


def test_a_second_that_git_notes_late_hides_no_commit(lab):
    """Git reads a clock that may still be in the second before, of which a checkpoint saw the end."""
    with closing(Repository(str(lab.folder))) as repository:
        first = Git(branch="refs/heads/main", commit=repository.head(), log_bytes=repository.steps[-1].end)
        lab.write("f", *lab.lines("f"), "new")
        lab.commit("second")
    with closing(Repository(str(lab.folder))) as repository:
        after = datetime.fromtimestamp(repository.steps[-1].at + 1, UTC)
        assert repository.moves_before([(first, after)]) == [1]


def test_without_a_record_of_git_no_turn_gets_what_may_be_somebody_elses(lab):
    with lab.turn():
        lab.write("f", *lab.lines("f"), "new")
        lab.commit("mine")
        lab.write("f", *lab.lines("f"), "newer")
    shutil.rmtree(lab.folder / ".git" / "logs")
    assert (lab.told("f")["new"], lab.told("f")["newer"]) == ("git", 1)


def test_a_worktree_of_somebody_else_is_asked_nothing(lab):
    """What the settings of a repository say is not run."""
    lab.git("config", "diff.evil.textconv", "touch evil; cat")
    lab.git("config", "core.fsmonitor", "touch evil")
    lab.write(".gitattributes", "* diff=evil")
    lab.commit("attributes")
    folder = other_clone(lab)
    (folder / "f").write_text("theirs\n" + (folder / "f").read_text())
    lab.commit("theirs", folder)
    (lab.folder / "evil").unlink(missing_ok=True)
    with lab.turn():
        lab.git("-c", "core.fsmonitor=false", "pull", "-q", "theirs", "main")
    (lab.folder / "evil").unlink(missing_ok=True)
    assert lab.told("f")["theirs"] == "git"
    assert not (lab.folder / "evil").exists()
