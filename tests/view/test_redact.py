"""Secrets are found and taken out; what only looks like one stays; and no text makes it slow."""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path

import pytest

from tests.view.corpus import ALIKE, KINDS, LETTERS, NOT_SAID, PLACES, SAID, word
from turnlog import Message, Note, Text, ToolCall, ToolResult
from turnlog.log.codec import body_text
from turnlog.view.secret import assignment as assigned
from turnlog.view.secret import pattern as secret
from turnlog.view.secret.pattern import spots
from turnlog.view.secret.redactor import Redactor

KEY = "\n".join(word(64, seed=n) for n in range(5))
# Each is a text and the secret in it; the parts are put together here so that nobody mistakes them for real ones.
SECRETS = {
    "anthropic": ("sk-" + "ant-api03-" + word(90, LETTERS + "_-"), ""),
    "openai": ("sk-" + "proj-" + word(48), ""),
    "openai old": ("sk-" + word(48), ""),
    "stripe": ("sk_" + "live_" + word(24), ""),
    "aws": ("AKIA" + word(16, string.ascii_uppercase + "234567"), ""),
    "google": ("AIza" + word(35, LETTERS + "_-"), ""),
    "github": ("ghp_" + word(36), ""),
    "github fine": ("github_" + "pat_" + word(22) + "_" + word(59), ""),
    "gitlab": ("glpat-" + word(20, LETTERS + "_-"), ""),
    "slack": ("xoxb-" + "123456789012-1234567890123-" + word(24), ""),
    "hugging face": ("hf_" + word(34), ""),
    "npm": ("npm_" + word(36), ""),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + word(43), ""),
    "bearer": ("Authorization: Bearer " + word(30), word(30)),
    "basic": ('curl -H "Authorization: Basic dXNlcjpwYXNz" https://a.b', "dXNlcjpwYXNz"),
    "a header in JSON": ('{"authorization": "token ' + word(20) + '"}', word(20)),
    "a header in JSON in JSON": ('{\\"Authorization\\": \\"Bearer ' + word(20) + '\\"}', word(20)),
    "bearer alone": ("the token is Bearer " + word(24) + ".", word(24)),
    "x-api-key": ("x-api-key: " + word(30), word(30)),
    "url": ("postgresql://ada:hunter2@db/shop", "hunter2"),
    "url with an odd password": ("https://ada:p%40ss:w0rd!@github.com/a.git", "p%40ss:w0rd!"),
    "query": ("https://a.b/c?access_token=" + word(20) + "&x=1", word(20)),
    "password=": ("password=hunter2abc", "hunter2abc"),
    "DB_PASSWORD=": ("export DB_PASSWORD=correcthorse", "correcthorse"),
    "json": ('"api_key": "abcd1234"', "abcd1234"),
    "python": ("api_key = 'abcd-efgh'", "abcd-efgh"),
    "escaped json": ('{\\"client_secret\\": \\"s3cr3t-s3cr3t\\"}', "s3cr3t-s3cr3t"),
    "yaml": ("db:\n  password: hunter22x\n  user: ada", "hunter22x"),
    "option": ("mysql --password hunter22 shop", "hunter22"),
    "option=": ("tool --token=abc123def", "abc123def"),
    "aws secret": ("aws_secret_access_key = " + word(40, LETTERS + "/+"), word(40, LETTERS + "/+")),
    "curl -u": ("curl -s -u ada:geheim https://a.b", "geheim"),
    "cookie": ("Set-Cookie: session=abcdef123456; Path=/", "abcdef123456"),
    "a cookie in JSON": ('{"Cookie": "session=abc123def456ghi"}', "abc123def456ghi"),
    "a cookie in Python": ("headers = {'Cookie': 'sessionid=abc123def456ghi; theme=dark'}", "abc123def456ghi"),
    "a cookie in JSON in JSON": ('{\\"set-cookie\\": \\"sid=abc123def456ghi; HttpOnly\\"}', "abc123def456ghi"),
    "a cookie in JavaScript": ('document.cookie = "sid=abc123def456ghi"', "abc123def456ghi"),
    "a cookie as an argument": ('request.setHeader("Cookie", "sid=abc123def456ghi")', "abc123def456ghi"),
    "a cookie in an HTTP archive": (
        '{\n            "name": "Cookie",\n            "value": "sid=abc123def456ghi"\n}',
        "abc123def456ghi",
    ),
    "a header in an HTTP archive": ('{"name": "Authorization", "value": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
    "webhook": ("https://hooks." + "slack.com/services/T0001/B0001/" + word(24), word(24)),
    "private key": (f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----", word(64, seed=2)),
    "private key in a string": (
        "-----BEGIN PRIVATE KEY-----\\n" + KEY.replace("\n", "\\n") + "\\n-----END PRIVATE KEY-----\\n",
        word(64, seed=4),
    ),
    "private key without its end": (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY}\n" + word(20), word(64, seed=4)),
    "private key without its beginning": (f"{KEY}\n-----END EC PRIVATE KEY-----", word(64, seed=0)),
    "encrypted key": (
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n{KEY}",
        word(64, seed=3),
    ),
}
HARMLESS = {
    "names that begin like a token": "hf_hub_download_and_cache_everything_now re_match fc-list secret_manager_client",
    "words that begin like a token": "pattern.abcdef dapifoo csk-like jina_embeddings_v3 ntn_name glc_size phx_ids",
    "numbers with a colon": "12:AA 2026-11-15T10:00:00 12345678:AAPL 99999999:AAA",
    "dotted names": "MTServer.config.loader NTFS.volume.name ODBC.driver.manager MjRenderer.render.everything",
    "git hash": "commit 5f2c9a1b7e3d4c5a6b7e8f9a0b1c2d3e4f5a6b7c",
    "uuid": "session 550e8400-e29b-41d4-a716-446655440000",
    "digest": "sha256:" + "ab12" * 16,
    "integrity": '"integrity": "sha512-' + word(86) + '=="',
    "a picture": "data:image/png;base64," + base64.b64encode(random.Random(1).randbytes(60_000)).decode(),
    "a class name": '<div class="sk-toggleable__label-arrow-2 sk-estimator-id-10">',
    "counts": "max_tokens=100000, tokens: 1500, total_tokens: 12345678",
    "types": "password: string; token: str | None = None; api_key: Optional[str]; secret: bytes",
    "arguments": "login(password=password, token=token, api_key=settings.api_key1)",
    "calls": "token = get_token2(); password = request.form['password1']; const token = await getToken2()",
    "variables": "PASSWORD=$DB_PASSWORD2 TOKEN=${GH_TOKEN2} KEY=%API_KEY2% -H 'Authorization: Bearer $TOKEN'",
    "instructions": 'export OPENAI_API_KEY=sk-... "password": "your-password" Authorization: Bearer <token>',
    "a secret of Kubernetes": "secretName: my-app-v2-secret\nsecretKeyRef:\n  key: password1",
    "a tokenizer": "tokenizer: cl100k_base",
    "keys": "primary_key=user_id_2000 keyboard=qwerty12345 public_key: abcdefgh12345678 key: value123456",
    "urls": "https://example.com:8080/a@b git@github.com:a/b.git http://localhost:3000/@fs/x ssh://git@host:22/x",
    "prose": "The authorization: checked in middleware1. The password is wrong. Passwords: see chapter 12345678.",
    "a certificate": f"-----BEGIN CERTIFICATE-----\n{KEY}\n-----END CERTIFICATE-----",
    "names of classes": "PrivateKey = hpke.X25519PrivateKey",
    "examples": "Client(api_key='fake_api_key') token=\"test-refresh-token\" KEY: 'TEST_API_KEY', 'challengePassword'",
    "talk of a key": '("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")',
    "talk of cookies": "cookies: see middleware; set_cookie(cookie, max_age=3600000) cookie == name, cookie: string",
    "values of cookies": '{"cookie": ""} {"name": "cookie", "value": ""} "cookie", "accept" <Cookie value="theme">',
    "a comparison": "if password == expected1234: token !== other12345",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_taken_out_and_counted(name: str):
    said, gone = SECRETS[name]
    redactor = Redactor()
    clean = redactor.text(f"what came before\n{said}\nafter")
    assert (gone or said) not in clean
    assert "[redacted: " in clean
    assert clean.startswith("what came before\n")
    assert sum(redactor.counts.values()) == 1, redactor.counts


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_secret_stays(name: str):
    redactor = Redactor()
    assert redactor.text(HARMLESS[name]) == HARMLESS[name]
    assert redactor.summary == ""


MISSED = {
    "the password is swordfish",
    "password: correct horse battery staple",
    "passwort: Sommer2024",
    "the PIN is 4711",
}
TAKEN: set[str] = set()


def test_misses_and_false_alarms_are_what_the_guide_says():
    tokens = [(place.format(kind.begin + kind.rest), kind.rest) for kind in KINDS.values() for place in PLACES]
    alike = [form.format(kind.begin) for kind in KINDS.values() for form in ALIKE]
    alike += [text for kind in KINDS.values() for text in kind.alike]
    missed = {text for text, gone in (*tokens, *SAID) if gone in Redactor().text(text)}
    taken = {text for text in (*alike, *NOT_SAID) if Redactor().text(text) != text}
    assert missed == MISSED
    assert taken == TAKEN
    rows = [
        f"| {len(KINDS)} kinds of tokens, each in {len(PLACES)} places | {len(tokens)} | 0 missed |",
        f"| sentences that tell a password or a key | {len(SAID)} | {len(missed)} missed |",
        f"| what begins like a token and is none | {len(alike)} | 0 taken out |",
        f"| sentences about passwords and keys | {len(NOT_SAID)} | {len(taken)} taken out |",
    ]
    assert "\n".join(rows) in (Path(__file__).parents[2] / "docs/guide/reading.md").read_text()
    assert len(KINDS) >= 60


def test_what_is_around_it_stays_readable():
    assert Redactor().text("postgresql://ada:hunter2@db/shop") == (
        "postgresql://ada:[redacted: password in a URL]@db/shop"
    )
    assert Redactor().text('{"api_key": "abcd1234", "x": 1}') == '{"api_key": "[redacted: named secret]", "x": 1}'


def test_a_character_that_gets_longer_in_lower_case_moves_nothing():
    assert Redactor().text("İİİ PASSWORD=hunter2abc ok") == "İİİ PASSWORD=[redacted: password] ok"


def test_what_was_found_once_is_found_everywhere():
    entries = [
        Note(text="DB_PASSWORD=tr0ub4dor-x9"),
        Message(role="assistant", blocks=[Text("I log in with tr0ub4dor-x9 now.")]),
        Note(text="POSTGRES_PASSWORD=postgres"),
        Note(text="postgres runs on postgres:16"),
    ]
    redactor = Redactor()
    for entry in entries:
        redactor.learn(entry)
    clean = [body_text(redactor.entry(entry)) for entry in entries]
    assert "tr0ub4dor" not in "".join(clean)
    assert "PASSWORD=postgres" not in clean[2]
    assert "postgres runs on postgres:16" in clean[3], "a word is no secret where it stands for other reasons"
    assert redactor.summary == "3 × password"


def test_every_field_of_an_entry_is_looked_through():
    key = SECRETS["openai"][0]
    entry = Message(
        role="assistant",
        blocks=[
            Text(f"a {key}"),
            ToolCall(id="c1", name="x", input={"headers": {"Authorization": "Bearer abcdef"}, "password": "hunter2"}),
            ToolResult(call="c1", content=[Text(f"b {key}")], details={"env": [f"KEY={key}"]}),
        ],
        error={"message": f"c {key}"},
        meta={"note": f"d {key}"},
    )
    redactor = Redactor()
    clean = redactor.entry(entry)
    text = body_text(clean)
    assert isinstance(clean, Message)
    assert clean.id == entry.id
    for gone in (key, "abcdef", "hunter2"):
        assert gone not in text
    assert redactor.counts == {"API key": 5, "authorization header": 1, "password": 1}
    untouched = Message(role="user", blocks=[Text("nothing to see")])
    assert Redactor().entry(untouched) is untouched


def test_two_fields_that_are_masked_alike_both_stay():
    first, second = (SECRETS["anthropic"][0][:-1] + letter for letter in "ab")
    clean = Redactor().value({first: 1, second: 2, "c": 3})
    assert clean == {"[redacted: API key]": 1, "[redacted: API key] 2": 2, "c": 3}


@pytest.mark.parametrize("value", ["ab1!", "ab1!x", "ab1!xy"])
def test_a_short_value_under_the_name_of_a_secret_is_taken_out(value: str):
    assert Redactor().value({"password": value, "other": value}) == {"password": "[redacted: password]", "other": value}
    assert Redactor().text(f'password = "{value}"') == 'password = "[redacted: password]"'


@pytest.mark.parametrize("name", ["Cookie", "set-cookie"])
def test_a_cookie_in_a_field_is_taken_out_as_in_a_text(name: str):
    headers = {"headers": {name: "sid=abcDEF123456789; theme=dark"}}
    assert Redactor().value(headers) == {"headers": {name: "[redacted: cookie]"}}
    assert Redactor().value({name: "is accepted"}) == {name: "is accepted"}


def test_a_value_beside_its_name_is_taken_out_as_under_it():
    header = {"name": "Cookie", "value": "sid=abcDEF123456789"}
    redactor = Redactor()
    redactor.learn_value([header])
    assert redactor.value([header]) == [{"name": "Cookie", "value": "[redacted: cookie]"}]
    assert redactor.text("look at sid=abcDEF123456789 now") == "look at [redacted: cookie] now"
    for other in ({"name": ["Cookie"], "value": "theme"}, {"name": "Cookie", "value": 7}, {"value": "theme"}):
        assert redactor.value(other) == other


@pytest.mark.parametrize("scheme", ["Basic", "token", "Bearer"])
def test_the_credential_of_a_header_is_found_without_its_scheme(scheme: str):
    redactor = Redactor()
    redactor.learn_value({"headers": {"Authorization": f"{scheme} dXNlcjpwYXNzd29yZDEyMw=="}})
    assert redactor.text("echo dXNlcjpwYXNzd29yZDEyMw== | base64 -d") == (
        "echo [redacted: authorization header] | base64 -d"
    )


def test_no_field_is_a_hiding_place():
    key = SECRETS["openai"][0]
    picture = base64.b64encode(random.Random(3).randbytes(3000)).decode()
    call = ToolCall(
        id="c1", name="put", input={"data": f"KEY={key}", "signature": key, key: "as a name", "image": picture}
    )
    redactor = Redactor()
    text = body_text(redactor.entry(Message(role="assistant", blocks=[call])))
    assert key not in text
    assert picture in text
    assert redactor.counts["API key"] == 3
    assert redactor.value({"data": picture, "signature": picture}) == {"data": picture, "signature": picture}


def test_a_secret_that_two_blocks_share_is_found():
    key = SECRETS["openai"][0]
    begin, end = key[:9], key[9:]
    entry = Message(role="user", blocks=[Text(f"key: {begin}"), Text(f"{end} and so on"), Text("more")])
    redactor = Redactor()
    clean = redactor.entry(entry)
    assert isinstance(clean, Message)
    texts = [block.text for block in clean.blocks if isinstance(block, Text)]
    assert texts == ["key: [redacted: API key]", " and so on", "more"]
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----"
    parts = [pem[:120], pem[120:240], pem[240:]]
    assert "".join(Redactor().texts(parts)) == "[redacted: private key]"
    # A word before a key in the block above does not hide it.
    assert Redactor().texts(["the", key]) == ["the", "[redacted: API key]"]


# ── no text makes it slow ─────────────────────────────────────────────────────────────────────────


def patterns() -> list[re.Pattern[str]]:
    rules = [rule.pattern for rule in (*secret._KEYS, *secret._LISTED, secret._URL, *secret._HEADERS)]
    found = [*vars(secret).values(), *vars(assigned).values()]
    return [*rules, *(value for value in found if isinstance(value, re.Pattern))]


def repeats(tree: object, inside: int = 1) -> list[int]:
    """How often the innermost part of every repetition can be tried."""
    from re import _constants, _parser  # type: ignore[attr-defined]

    found: list[int] = []
    for code, value in tree:  # type: ignore[attr-defined]
        parts = value if isinstance(value, (list, tuple)) else [value]
        times = 1
        if code in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            times = int(value[1])
            found.append(inside * times)
        for part in parts:
            for inner in part if isinstance(part, (list, tuple)) and code is _constants.BRANCH else [part]:
                if isinstance(inner, _parser.SubPattern):
                    found += repeats(inner, inside * max(1, times))
    return found


@pytest.mark.parametrize("pattern", patterns(), ids=lambda pattern: pattern.pattern[:40])
def test_every_repetition_has_a_limit(pattern: re.Pattern[str]):
    from re import _parser  # type: ignore[attr-defined]

    assert max(repeats(_parser.parse(pattern.pattern, pattern.flags)), default=0) <= 8192


class Counting:
    """A pattern that counts how many characters it was tried on."""

    def __init__(self, pattern: re.Pattern[str], work: list[int]) -> None:
        self._pattern, self._work = pattern, work
        self.groupindex = pattern.groupindex

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        found = self._pattern.match(text, at)
        self._work[0] += 1 + (found.end() - at if found is not None else 0)
        return found

    def search(self, text: str, at: int, end: int) -> re.Match[str] | None:
        self._work[0] += end - at
        return self._pattern.search(text, at, end)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        self._work[0] += len(text)
        return self._pattern.fullmatch(text)


BOMBS = {
    "sk-": "sk-" * 20_000,
    "assignments": "token=token=" * 5_000,
    "colons": "token:token:" * 5_000,
    "quotes": "token='" * 8_000,
    "urls": "://" * 20_000,
    "urls with users": "://a:" * 12_000,
    "names": "password" * 8_000,
    "headers": "authorization: " * 4_000,
    "begins": "-----BEGIN RSA PRIVATE KEY-----" * 2_000,
    "ends": "-----END RSA PRIVATE KEY-----\n" * 2_000,
    "jwt": "eyJaaaaaaaaaaaa.eyJ" * 3_000,
    "curl": "curl -u " * 8_000,
    "one word": "a" * 60_000,
    "base64": base64.b64encode(random.Random(2).randbytes(45_000)).decode(),
    "options": "--password " * 6_000,
    "cookies": 'cookie", "' * 6_000,
    "cookies without an end": "cookie=a" * 6_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_the_work_grows_with_the_text(name: str, monkeypatch: pytest.MonkeyPatch):
    """Counted in characters that patterns went over, on a text and on half of it: twice as much, not four times."""

    def worked(text: str) -> int:
        work = [0]
        with monkeypatch.context() as patch:
            for module in (secret, assigned):
                for key, value in list(vars(module).items()):
                    if isinstance(value, re.Pattern):
                        patch.setattr(module, key, Counting(value, work))
            counted = {
                key: tuple(rule._replace(pattern=Counting(rule.pattern, work)) for rule in getattr(secret, key))
                for key in ("_KEYS", "_HEADERS")
            }
            for key, rules in counted.items():
                patch.setattr(secret, key, rules)
            patch.setattr(secret, "_URL", secret._URL._replace(pattern=Counting(secret._URL.pattern, work)))
            list(spots(text))
        return work[0]

    bomb = BOMBS[name]
    half, whole = worked(bomb[: len(bomb) // 2]), worked(bomb)
    assert whole <= 2.5 * half + 10_000
    assert whole <= 40 * len(bomb)
