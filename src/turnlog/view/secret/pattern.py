"""What secrets look like, and where in a text they are. Pure, and linear.

A rule has words to look for and a pattern that is tried behind them. Every repetition in a pattern has an upper limit
and none is inside another, so a try costs a bounded number of steps; a test keeps it that way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from turnlog.view.secret.assignment import assigned
from turnlog.view.secret.placeholder import is_placeholder
from turnlog.view.secret.spot import Spot
from turnlog.view.secret.tokenprefix import DISCORD, DISCORD_HINTS, TOKENS


class _Rule(NamedTuple):
    kind: str
    hints: tuple[str, ...]
    """Words that it begins with; in lower case where case does not matter."""
    pattern: re.Pattern[str]
    """Tried at the hint. A group `secret` is what goes; without one, everything."""
    needs_digit: bool = True
    ignores_case: bool = False


_WORD = re.compile(r"[A-Za-z0-9]")
_TAIL = r"[A-Za-z0-9_-]"
_LONG = 512
_SHORT = 40


def _key(hint: str, least: int, alphabet: str = r"[A-Za-z0-9]", kind: str = "API key") -> _Rule:
    return _Rule(kind, (hint,), re.compile(rf"{re.escape(hint)}{alphabet}{{{least},{_LONG}}}"))


_KEYS = (
    _Rule("API key", ("sk-",), re.compile(rf"sk-{_TAIL}{{16,{_LONG}}}")),  # OpenAI, Anthropic, OpenRouter, DeepSeek …
    _Rule("API key", ("sk_", "rk_"), re.compile(rf"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{{10,{_LONG}}}")),
    _Rule(
        "AWS key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        re.compile(r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
        needs_digit=False,
    ),
    _Rule("API key", ("AIza",), re.compile(rf"AIza{_TAIL}{{30,45}}(?![A-Za-z0-9])"), needs_digit=False),
    _Rule("token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(rf"gh[pousr]_[A-Za-z0-9]{{20,{_LONG}}}")),
    _key("github_pat_", 20, r"[A-Za-z0-9_]", "token"),
    _Rule("token", ("glpat-", "gldt-", "glrt-", "glcbt-"), re.compile(rf"gl(?:pat|dt|rt|cbt)-{_TAIL}{{16,{_LONG}}}")),
    _Rule("token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe"), re.compile(r"xox[abeprs][.-][\w.-]{10,300}")),
    _key("xapp-", 16, r"[A-Za-z0-9-]", "token"),
    _key("hf_", 20, kind="token"),
    _key("npm_", 30, kind="token"),
    _key("pypi-AgE", 30, _TAIL, "token"),
    _key("ya29.", 20, _TAIL, "token"),
    _key("GOCSPX-", 16, _TAIL),
    _key("gsk_", 30),
    _key("xai-", 30),
    _key("pplx-", 30),
    _key("nvapi-", 30, _TAIL),
    _key("r8_", 30),
    _key("sbp_", 30, kind="token"),
    _key("dop_v1_", 40, kind="token"),
    _key("shpat_", 30, kind="token"),
    _key("lin_api_", 30),
    _key("figd_", 20, _TAIL, "token"),
    _key("dckr_pat_", 20, _TAIL, "token"),
    _key("ATATT3x", 40, r"[A-Za-z0-9_=-]", "token"),
    _key("whsec_", 20, r"[A-Za-z0-9+/=]"),
    _key("SG.", 40, r"[A-Za-z0-9_.-]"),
    _Rule("private key", ("AGE-SECRET-KEY-1",), re.compile(r"AGE-SECRET-KEY-1[A-Z0-9]{40,80}"), needs_digit=False),
    _Rule(
        "JWT",
        ("eyJ",),
        re.compile(rf"eyJ{_TAIL}{{8,2048}}\.eyJ{_TAIL}{{8,8192}}(?:\.{_TAIL}{{0,2048}})?"),
        needs_digit=False,
    ),
    _Rule(
        "webhook URL",
        ("hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        re.compile(r"[a-z.]{8,30}/(?:services|api/webhooks)/(?P<secret>[A-Za-z0-9/_-]{20,200})"),
    ),
)
_LISTED = (
    *(_Rule(kind, (hint,), re.compile(re.escape(hint) + behind), needs_digit=False) for kind, hint, behind in TOKENS),
    _Rule("token", DISCORD_HINTS, re.compile(rf"[MNO][A-Za-z]{DISCORD}")),
)
_URL = _Rule(
    "password in a URL",
    ("://",),
    re.compile(r"://[^\s/:@\"'<>`]{0,200}:(?P<secret>[^\s/@\"'<>`]{1,300})@(?=[\w\[.-])"),
    needs_digit=False,
)
_QUOTES = r"[\\\"']{0,4}"
_NAMED = rf"[\\\"']{{1,4}}\s{{0,4}},\s{{0,40}}{_QUOTES}value{_QUOTES}\s{{0,4}}:"
"""Between the name and the value of a header in an HTTP archive: `{"name": "Cookie", "value": "…"}`."""
_HEADER = rf"authorization(?:{_NAMED}|{_QUOTES}\s{{0,4}}[:=,])\s{{0,4}}{_QUOTES}"
_COOKIE = rf"cookie(?:{_NAMED}|{_QUOTES}\s{{0,4}}[:=]|[\\\"']{{1,4}}\s{{0,4}},)\s{{0,4}}{_QUOTES}"
_CREDENTIAL = r"(?P<secret>[^\s\"'\\<>`,;]{6,4096})"
_HEADERS = (
    _Rule(
        "authorization header",
        ("authorization",),
        re.compile(
            rf"{_HEADER}(?:bearer|basic|token|digest|apikey|bot|aws4-hmac-sha256)\s{{1,4}}{_CREDENTIAL}", re.IGNORECASE
        ),
        needs_digit=False,
        ignores_case=True,
    ),
    _Rule(
        "authorization header",
        ("authorization",),
        re.compile(_HEADER + _CREDENTIAL, re.IGNORECASE),
        ignores_case=True,
    ),
    _Rule(
        "authorization header",
        ("bearer ",),
        re.compile(r"bearer {1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,4096})", re.IGNORECASE),
        ignores_case=True,
    ),
    _Rule(
        "cookie",
        ("cookie",),
        re.compile(_COOKIE + r"(?P<secret>[\w.-]{1,100}=[^\r\n\"'\\]{6,4096})", re.IGNORECASE),
        needs_digit=False,
        ignores_case=True,
    ),
    _Rule(
        "password",
        ("curl ",),
        re.compile(r"curl [^\n|;]{0,300}?(?:-u|--user)[ =]{1,2}[\"']?[^\s:\"'$]{1,100}:(?P<secret>[^\s\"'$]{3,200})"),
        needs_digit=False,
    ),
)
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = "-----END "
_KEY_LINE = re.compile(
    r"(?:\\r)?(?:\\n)?\s{0,8}"  # a line end, or one inside a string
    r"(?:[A-Za-z0-9+/=]{16,256}|[A-Z][A-Za-z-]{2,20}: [^\r\n\\]{1,100}|[A-Za-z0-9+/=]{1,15}\Z)"
)
_KEY_MOST = 64 << 10
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{1,256}")
_BODY = re.compile(r"[A-Za-z0-9+/=]{16}")
_PAYLOAD = re.compile(r"[A-Za-z0-9+/]{200}")


def spots(text: str) -> Iterable[Spot]:
    """Every secret in a text, in no particular order; they may overlap."""
    return _short(text) if len(text) <= _SHORT else _spots(text)


@lru_cache(maxsize=1 << 15)
def _short(text: str) -> tuple[Spot, ...]:
    """A log is full of short texts that come again and again: names of fields, roles, models."""
    return tuple(_spots(text))


def _spots(text: str) -> Iterator[Spot]:
    lower = text.replace("\u0130", "I").lower()  # the one character that gets longer: places stay places
    for rule in (*_KEYS, *_LISTED, _URL, *_HEADERS):
        searched = lower if rule.ignores_case else text
        for hint in rule.hints:
            if hint in searched:
                yield from _tried(rule, hint, text, searched)
    yield from assigned(text, lower)
    yield from _private_keys(text)


def _tried(rule: _Rule, hint: str, text: str, searched: str) -> Iterator[Spot]:
    at = searched.find(hint)
    while at >= 0:
        after = at + len(hint)
        match = rule.pattern.match(text, at) if _begins_here(rule, text, at) else None
        if match is not None:
            after = max(after, match.end())
            start, end = match.span("secret" if "secret" in rule.pattern.groupindex else 0)
            if _is_likely(rule, text, start, end):
                yield Spot(start, end, rule.kind)
        at = searched.find(hint, after)


def _begins_here(rule: _Rule, text: str, at: int) -> bool:
    """A key is no key in the middle of a word."""
    return not text[at].isalnum() or at == 0 or _WORD.match(text, at - 1) is None


def _is_likely(rule: _Rule, text: str, start: int, end: int) -> bool:
    secret = text[start:end]
    if is_placeholder(secret):
        return False
    if rule.needs_digit and (not any(c.isdigit() for c in secret) or _is_words(secret)):
        return False
    # Base64 of a picture has everything in it somewhere.
    return _PAYLOAD.match(text, max(0, start - 201)) is None or _PAYLOAD.match(text, end) is None


def _is_words(secret: str) -> bool:
    """`sk-toggleable-label-2`: words with dashes, none of them long."""
    return max(map(len, re.split(r"[-_.]", secret))) < 16 and secret.lower() == secret


# ── private keys ──────────────────────────────────────────────────────────────────────────────────


def _private_keys(text: str) -> Iterator[Spot]:
    """From BEGIN to END; where one of them was cut off, as far as it looks like a key."""
    if "PRIVATE KEY" not in text:
        return
    at, end, key_end = text.find("-----BEGIN "), text.find(_END), 0
    while at >= 0 or end >= 0:
        if at >= 0 and (end < 0 or at < end):
            match = _BEGIN.match(text, at)
            if match is None:
                at = text.find("-----BEGIN ", at + 11)
                continue
            has_end = 0 <= end - match.end() < _KEY_MOST
            key_end = _end_marker(text, end) if has_end else _key_lines_end(text, match.end())
            if _BODY.search(text, match.end(), key_end):  # else somebody only talks about it
                yield Spot(at, key_end, "private key")
            at = text.find("-----BEGIN ", key_end)
        else:
            start = _key_lines_start(text, end, key_end)
            key_end = _end_marker(text, end)
            if "PRIVATE KEY" in text[end:key_end] and end - start > 20:
                yield Spot(start, key_end, "private key")
        if 0 <= end < key_end:
            end = text.find(_END, key_end)


def _end_marker(text: str, end: int) -> int:
    """Where the line with END is over."""
    close = text.find("-----", end + len(_END), end + 80)
    return close + 5 if close >= 0 else end + len(_END)


def _key_lines_end(text: str, start: int) -> int:
    at = start
    while at - start < _KEY_MOST and (match := _KEY_LINE.match(text, at)):
        at = match.end()
    return at


def _key_lines_start(text: str, end: int, first: int) -> int:
    """Where the lines of base64 begin that lead up to there."""
    at = end
    while at > max(first, end - _KEY_MOST):
        line = max(first, text.rfind("\n", max(first, at - 300), at - 1) + 1)
        body = text[line:at].strip()
        is_short = len(body) < 16 and at != end and line > 0  # a word of prose; only the last line of a key is short
        if line == at or is_short or not _BASE64.fullmatch(body):
            break
        at = line
    return at
