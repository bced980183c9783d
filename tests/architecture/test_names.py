"""One word, one meaning: the glossary, and the names of classes."""

import ast
import re
from collections import defaultdict

import pytest

from tests.architecture.map import ROOT, SRC, tree_of

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
APART = ("aio", "testing")
"""The mirror of the same objects, and suites that nobody imports but tests."""
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \| ([^|]*)\|$", GLOSSARY, re.MULTILINE)
EXCEPTIONS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|$", GLOSSARY, re.MULTILINE))


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        if name.split("/")[0].removesuffix(".py") in APART:
            continue
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def test_one_public_class_name_is_one_class():
    several = {name: places for name, places in public_classes().items() if len(places) > 1}
    assert several.keys() == EXCEPTIONS.keys()
    assert len(EXCEPTIONS) <= 5


def test_every_word_is_explained_once():
    words = [word for word, *_ in ROWS]
    assert len(words) > 80
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(("word", "meaning", "where"), [row[:3] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_word_of_the_glossary_is_used_where_it_says(word, meaning, where):
    assert meaning.strip().endswith(".")
    text = (SRC / where).read_text().casefold().replace("_", " ")
    used = re.split(r"\W+", text + " " + where.casefold().replace("_", " "))
    for part in word.casefold().split():
        assert any(each.startswith(part.rstrip("e")) for each in used), f"{where} does not speak of {part!r}"


def test_a_word_that_is_not_used_for_one_thing_is_explained_where_it_is_used_for_another():
    words = {word for word, *_ in ROWS}
    for word, _, _, others in ROWS:
        assert word not in {other.strip() for other in others.split(",")}, f"{word} is not used for itself?"
    assert {"branch", "fork", "plan", "intent", "format", "dialect", "turn"} <= words
