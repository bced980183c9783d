"""Code in colours: what in it is a keyword, a string, a number, a comment. Few rules, which fit most languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_LONGEST = 20_000
"""Longer code stays as it is: nobody reads that in colours, and it would make a page three times as large."""
_PYTHON = """and as assert async await break case class continue def del elif else except False finally for from
    global if import in is lambda match None nonlocal not or pass raise return True try while with yield
    self"""
_C = """abstract as async await bool break case catch char class const constexpr continue crate default defer
    delete do double else enum export extends extern false final finally float fn for foreach from func
    function go goto if impl implements import in instanceof int interface let long loop match mod mut
    namespace new nil null of override package private protected pub public raise range return select
    self short signed sizeof static struct super switch template this throw throws trait true try type
    typedef typeof undefined union unsafe unsigned use using var void volatile when where while yield"""
_SHELL = """break case cd continue do done echo elif else esac eval exec exit export fi for function if in local
    return set shift source then trap unset until while"""
_SQL = """add all alter and as asc begin between by case check commit constraint create cross default delete desc
    distinct drop else end exists false foreign from full group having if in index inner insert into is
    join key left like limit not null offset on or order outer primary references returning right
    rollback select set table then true union unique update using values view when where with"""
_RUBY = """alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo
    rescue retry return self super then true undef unless until when while yield"""
_NAMES = {
    "python": "python py pyi python3", "c": "c h cc cpp cxx hpp java js jsx mjs cjs ts tsx javascript typescript go rs "
    "rust kt kotlin swift scala cs csharp php dart proto zig scss less css", "shell": "sh bash zsh shell console fish "
    "dockerfile makefile make", "sql": "sql", "ruby": "rb ruby", "data": "json jsonc json5 yaml yml toml ini",
}  # fmt: skip
_FAMILIES = {name: family for family, names in _NAMES.items() for name in names.split()}
_WORDS = {
    "python": _PYTHON, "c": _C, "shell": _SHELL, "sql": _SQL, "ruby": _RUBY, "data": "true false null yes no on off",
}  # fmt: skip
_COMMENTS = {
    "python": r"#[^\n]*", "c": r"//[^\n]*|/\*.*?(?:\*/|\Z)", "shell": r"(?<!\S)#[^\n]*",
    "sql": r"--[^\n]*|/\*.*?(?:\*/|\Z)", "ruby": r"#[^\n]*", "data": r"(?<!\S)(?:#|//)[^\n]*",
}  # fmt: skip
_LONG_STRING = 400
"""From this length on a string need not be closed: to look for the end again at every quote would be quadratic."""
_STRINGS = "|".join((
    r'"""[\s\S]*?(?:"""|\Z)',
    *(
        rf"{quote}(?:(?:{inner}|\\.){{0,{_LONG_STRING}}}{quote}|(?:{inner}|\\.){{{_LONG_STRING},}}+{quote}?)"
        for quote, inner in (('"', r'[^"\\\n]'), ("'", r"[^'\\\n]"), ("`", r"[^`\\]"))
    ),
))  # fmt: skip
_NUMBERS = r"(?<![\w.])(?:0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?!\w)"


def family_of(name: str) -> str:
    """The rules for code in a language, or in a file of that name; empty where there are none."""
    return _FAMILIES.get(name.rpartition("/")[2].rpartition(".")[2].lower(), "")


@lru_cache
def _pattern(family: str) -> re.Pattern[str]:
    words = "|".join(_WORDS[family].split())
    flags = re.DOTALL | (re.IGNORECASE if family == "sql" else 0)
    rules = {"cm": _COMMENTS[family], "st": _STRINGS, "nu": _NUMBERS, "kw": rf"(?<![\w.$-])(?:{words})(?![\w-])"}
    return re.compile("|".join(f"(?P<{kind}>{rule})" for kind, rule in rules.items()), flags)


def coloured(code: str, family: str) -> Iterator[tuple[str, str]]:
    """The code in pieces, each with its kind: `cm`, `st`, `nu`, `kw` or nothing. Together they are the code."""
    at = 0
    for match in _pattern(family).finditer(code) if len(code) <= _LONGEST else ():
        if match.start() > at:
            yield "", code[at : match.start()]
        yield match.lastgroup or "", match[0]
        at = match.end()
    if at < len(code):
        yield "", code[at:]
