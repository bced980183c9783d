"""The query language: what is understood, what is refused, and that it can be said again."""

from datetime import UTC, datetime, timedelta
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.plain import fill
from turnlog.catalog.ask.filters import of_sessions, of_spending
from turnlog.catalog.ask.moment import moment
from turnlog.catalog.ask.query import FILTERS, HELP, KINDS, MAX_LENGTH, ROLES, Filter, Query, cost_of, parse
from turnlog.catalog.index.terms import Term
from turnlog.errors import Invalid

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)

# What people type, and what tends to break parsers.
PIECES = st.sampled_from(
    [
        *FILTERS, *KINDS, *ROLES, ":", "-", '"', "*", ",", "\\", " ", "\n", "\t", "(", ")", "AND", "OR", "NOT", "NEAR",
        ">", "<", "=", "$", "1.50", "7d", "today", "2026-11", "2026-11-01", "T09:30", "foo", "foo_bar", "é", "e\u0301",
        "日本語", "🎉", "\0", "\ud800", "\u2028", "http://x.y/z", "std::vector", "--force", "->", "~", "/a/b", "{}",
    ]
)  # fmt: skip
LIKELY = st.lists(PIECES, max_size=12).map("".join)


def refused(text: str) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("error", Term("word", "error")),
        ("-error", Term("word", "error", True)),
        ("migrat*", Term("prefix", "migrat")),
        ('"exact  phrase"', Term("phrase", "exact phrase")),
        ('"word"', Term("word", "word")),
        ("self._x.append(", Term("code", "self._x.append(")),
        ("foo_bar*", Term("code", "foo_bar")),
        ("*ession_la*", Term("part", "ession_la")),
        ("*ytest", Term("part", "ytest")),
        ('"key: value"', Term("code", "key: value")),
        (r'"say \"hi\""', Term("code", 'say "hi"')),
        (r'"\d+\\"', Term("code", "\\d+\\")),
        ("--force", Term("code", "--force")),
        ("->", Term("code", "->")),
        ('"-v"', Term("code", "-v")),
        ("-v", Term("word", "v", True)),
        ("-*oo*", Term("part", "oo", True)),
        ('-"a b"', Term("phrase", "a b", True)),
        ("-_x", Term("code", "_x", True)),
        ("http://localhost:8080/x", Term("code", "http://localhost:8080/x")),
        ("std::vector", Term("code", "std::vector")),
        ("TypeError:", Term("code", "TypeError:")),
        ("note:", Term("code", "note:")),
        ("日本語", Term("part", "日本語")),
        ("e\u0301t\u00e9", Term("word", "été")),
        ("🎉", Term("code", "🎉")),
    ],
)
def test_a_term(text: str, term: Term):
    if term.negated:
        assert parse(f"here {text}").terms[1] == term
    else:
        assert parse(text) == Query((term,))


@pytest.mark.parametrize(
    ("text", "filter"),
    [
        ("agent:codex", Filter("agent", ("codex",))),
        ("-agent:codex,claude-code", Filter("agent", ("codex", "claude-code"), True)),
        ('workspace:"my project",api', Filter("workspace", ("my project", "api"))),
        ("workspace:/home/ada/api", Filter("workspace", ("/home/ada/api",))),
        ('file:"a,b.py"', Filter("file", ("a,b.py",))),
        ("file:*.py", Filter("file", ("*.py",))),
        ("role:User", Filter("role", ("user",))),
        ("is:crashed", Filter("is", ("crashed",))),
        ("since:09:30", Filter("since", ("09:30",))),
        ("cost:>1.50", Filter("cost", (">1.50",))),
    ],
)
def test_a_filter(text: str, filter: Filter):
    assert parse(text) == Query((), (filter,))


def test_everything_at_once():
    found = parse('agent:codex retry -draft "rate limit" since:7d back*')
    assert [term.text for term in found.terms] == ["retry", "draft", "rate limit", "back"]
    assert [filter.name for filter in found.filters] == ["agent", "since"]
    assert parse(" \n ") == Query()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour:red", "no filter colour:"),
        ("localhost:8080", "no filter localhost:"),
        ("project:api", "no filter project:"),
        ("agent:", "agent: has no value"),
        ("agent:,x", "agent: has an empty value"),
        ("agent:codex,", "agent: has an empty value"),
        ('agent:""', "agent: has an empty value"),
        ('"never closed', "never closed"),
        ('""', "nothing between the quotes"),
        ("**", "is everything"),
        ("-draft", "only what must not be there"),
        ("-draft agent:codex", "only what must not be there"),
        ("role:robot", "no role:robot"),
        ("is:new", "no is:new"),
        ("cost:1.50", "cost:1.50 is not an amount"),
        ("cost:>1,50", "cost:>1,50 is not an amount"),
        ('since:"7d",8d', "several values"),
        ("cost:>", "is not an amount"),
        ("since:later", "'later' is not a time"),
        ("since:2026-13", "'2026-13' is not a time"),
        ("since:2026-02-30", "is not a time"),
        ("until:9999-12", "is not a time"),
        ("since:999999w", "is not a time"),
        ("since:25:00", "is not a time"),
        ("a\0b", "NUL"),
        ("\ud800", "not Unicode"),
        ("x" * (MAX_LENGTH + 1), "characters"),
        ("a " * 200, "parts"),
        ("error OR", "OR with nothing on one of its sides"),
        ("OR error", "OR with nothing on one of its sides"),
        ("error OR OR failure", "OR with nothing on one of its sides"),
        ("AND error", "AND with nothing on one of its sides"),
        ("(error OR failure", "a ( that is never closed"),
        ("error OR failure)", "a ) that was never opened"),
        ("() OR error", "nothing between the parentheses"),
        ("-(error OR failure) x", "a minus before a group"),
        ("error OR -draft", "only what must not be there: '-draft'"),
        ("a OR " * 40 + "b", "more than 32 ways"),
    ],
)
def test_what_is_refused_says_why(text: str, said: str):
    error = refused(text)
    assert said in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("error timeout OR failure", "error timeout OR failure"),
        ("agent:codex (error OR failure)", "error agent:codex OR failure agent:codex"),
        ("(a b) OR (c d)", "a b OR c d"),
        ("((a OR b) c OR d) since:7d", "a c since:7d OR b c since:7d OR d since:7d"),
        ("(-a OR b) c", "-a c OR b c"),
        ('("x (y" OR z) title:"a OR b)"', '"x (y" title:"a OR b)" OR z title:"a OR b)"'),
        ("error AND failure", "error failure"),
        ('"OR" "AND" or and', '"OR" "AND" or and'),
        ("f(a) OR g()", '"f(a)" OR "g()"'),
        ("(x OR y)", "x OR y"),
        ("call(a, b)", '"call(a," "b)"'),
        ("(x y)", '"(x" "y)"'),
    ],
)
def test_or_is_weaker_than_a_blank_and_parentheses_say_what_belongs_together(text: str, said: str):
    assert str(parse(text)) == said
    assert parse(said) == parse(text)


def test_a_filter_is_put_on_every_side_and_taken_off_again():
    asked, chosen = parse("a OR b tag:x"), Filter("tag", ("x",))
    assert str(asked.within(chosen)) == "a tag:x OR b tag:x tag:x"
    assert asked.within(chosen).without(chosen) == parse("a OR b")
    assert parse("a tag:x OR a tag:y").without(chosen) == parse("a OR a tag:y")
    assert parse("tag:x OR b").without(chosen) == Query(), "one side asks for nothing: everything fits"


def test_an_unknown_filter_lists_those_there_are_and_how_to_mean_it_as_text():
    hint = refused("localhost:8080").hint
    assert hint is not None
    assert all(name in hint for name in FILTERS)
    assert '"localhost:8080"' in hint
    assert parse('"localhost:8080"').terms[0].kind == "code"


def test_the_help_has_every_filter_and_what_it_shows_is_understood():
    for line in HELP.splitlines():
        if line:
            parse(f"word {line[:21].strip()}")
    assert all(f"\n{name}:" in HELP or f" {name}:" in HELP for name in FILTERS)
    assert all(role in HELP for role in ROLES)
    assert all(kind in HELP for kind in KINDS)


@given(st.text(max_size=60) | LIKELY)
def test_any_text_is_understood_or_invalid_and_can_be_said_again(text: str):
    try:
        found = parse(text)
    except Invalid as error:
        assert "\n" not in error.message
        return
    said = str(found)
    assert parse(said) == found
    assert str(parse(said)) == said


_VALUES = st.text(st.sampled_from('ab)( :/,"\\*é\u0301-.=~'), min_size=1, max_size=6)


@given(st.lists(st.tuples(st.sampled_from(["title", "tag", "file", "workspace", "-model"]), _VALUES), min_size=1))
def test_any_value_of_a_filter_can_be_said_again_also_beside_an_or(filters: list[tuple[str, str]]):
    clauses = (Filter(name.lstrip("-"), (value,), name[0] == "-") for name, value in filters[:5])
    asked = Query(filters=tuple(clauses), others=(Query((Term("word", "y"),)),))
    said = parse(str(asked))
    assert parse(str(said)) == said
    assert [clause.values[0] for clause in said.filters] == [
        clause.values[0] if clause.name in ("file", "workspace") else normalize("NFC", clause.values[0])
        for clause in asked.filters
    ]


def test_a_path_is_found_whether_its_accents_are_joined_or_apart():
    joined, apart = "/w/Caf\u00e9", "/w/Cafe\u0301"
    assert parse(f"workspace:{apart}").filters[0].values == (apart,)
    assert parse(f"title:{apart}").filters[0].values == (joined,)
    for given_path in (joined, apart):
        condition = str(of_sessions(parse(f"workspace:{given_path}"), fill([])))
        assert repr(joined)[1:-1] in condition
        assert repr(apart)[1:-1] in condition


def test_the_order_of_filters_does_not_make_a_sum_of_two_times():
    parsed = parse("agent:a since:7d model:m OR agent:b model:m since:7d")
    assert of_spending(parsed) is parsed


# ── times ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "since", "until"),
    [
        ("today", "2026-11-15T00:00+01:00", "2026-11-16T00:00+01:00"),
        ("yesterday", "2026-11-14T00:00+01:00", "2026-11-15T00:00+01:00"),
        ("2026-11-01", "2026-11-01T00:00+01:00", "2026-11-02T00:00+01:00"),
        ("2026-7-5", "2026-07-05T00:00+02:00", "2026-07-06T00:00+02:00"),
        ("2026-10-25", "2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),
        ("2026-12", "2026-12-01T00:00+01:00", "2027-01-01T00:00+01:00"),
        ("2026", "2026-01-01T00:00+01:00", "2027-01-01T00:00+01:00"),
        ("09:30", "2026-11-15T09:30+01:00", "2026-11-15T09:30+01:00"),
        ("2026-07-01T09:30", "2026-07-01T09:30+02:00", "2026-07-01T09:30+02:00"),
        ("2026-07-01 09:30", "2026-07-01T09:30+02:00", "2026-07-01T09:30+02:00"),
        ("2026-07-01T09:30Z", "2026-07-01T09:30+00:00", "2026-07-01T09:30+00:00"),
        ("2h", "2026-11-15T12:30+00:00", "2026-11-15T12:30+00:00"),
        ("30min", "2026-11-15T14:00+00:00", "2026-11-15T14:00+00:00"),
        ("7d", "2026-11-08T14:30+00:00", "2026-11-08T14:30+00:00"),
        ("1w", "2026-11-08T14:30+00:00", "2026-11-08T14:30+00:00"),
    ],
)
def test_a_time(value: str, since: str, until: str):
    assert moment(value, now=NOW, zone=BERLIN) == datetime.fromisoformat(since)
    assert moment(value, now=NOW, zone=BERLIN, is_end=True) == datetime.fromisoformat(until)


def test_the_day_is_the_one_of_the_time_zone():
    late = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)
    assert moment("today", now=late, zone=BERLIN).day == 16
    assert moment("today", now=late, zone=UTC).day == 15


def test_without_a_time_zone_it_is_the_local_one(monkeypatch: pytest.MonkeyPatch):
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert moment("2026-07-01", now=NOW).utcoffset() == timedelta(hours=-4)
        assert moment("2026-12-01", now=NOW).utcoffset() == timedelta(hours=-5)
    finally:
        monkeypatch.undo()
        time.tzset()


@given(
    st.text(max_size=20) | st.lists(st.sampled_from("0123456789-:T.+Zdhwm "), max_size=22).map("".join), st.booleans()
)
def test_any_text_is_a_time_or_invalid(value: str, is_end: bool):
    try:
        found = moment(value, now=NOW, zone=BERLIN, is_end=is_end)
    except Invalid:
        return
    assert found.tzinfo is not None
    found.timestamp()


# ── money ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "sign", "micros"),
    [
        (">1.50", ">", 1_500_000),
        ("<0.1", "<", 100_000),
        (">=2", ">=", 2_000_000),
        ("<=.000001", "<=", 1),
        (">$3", ">", 3_000_000),
    ],
)
def test_an_amount(value: str, sign: str, micros: int):
    assert cost_of(value) == (sign, micros)


@pytest.mark.parametrize("value", [".", ">.", "=1", ">1e9", ">-1", ">1.1234567", "> 1", ""])
def test_what_is_no_amount(value: str):
    with pytest.raises(Invalid):
        cost_of(value)


@pytest.mark.parametrize(
    ("typed", "meant"), [("project:api", "workspace:"), ("after:7d", "since:"), ("modle:x", "model:")]
)
def test_the_filter_that_is_meant_is_named(typed: str, meant: str):
    with pytest.raises(Invalid) as raised:
        parse(typed)
    assert f"did you mean {meant}?" in str(raised.value.hint)


@pytest.mark.parametrize("name", ["user", "machine"])
def test_what_can_only_be_added_up_by_is_said(name: str):
    with pytest.raises(Invalid, match=f"there is no filter {name}:") as raised:
        parse(f"{name}:anna")
    assert str(raised.value.hint).startswith(f"`turnlog usage --by {name}`")
