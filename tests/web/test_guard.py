"""Nobody gets a word who has no business here: Host, Origin, token, methods, headers, what listens."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.conftest import Served, state_file

PAGES = ("/", "/s/talk-one", "/help", "/static/script.js", "/nowhere", "/s/talk-one/rows?first=0&end=9")


@pytest.mark.parametrize("path", PAGES)
def test_without_the_token_there_is_not_a_word(served: Served, path: str):
    for cookie in (
        "-",
        f"turnlog-{served.port}=wrong",
        f"turnlog-{served.port}=",
        f"turnlog-1={served.token}",
        "\xff=;;",
    ):
        answer = served.ask(path, Cookie=cookie)
        assert answer.status == 401
        assert len(answer.body) < 200
        assert b"login" not in answer.body
    assert served.ask(f"{path.partition('?')[0]}?token=wrong").status == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "", "-", "[::2]", "0.0.0.0"]
)
def test_another_name_of_this_machine_is_refused_before_anything_else(served: Served, host: str):
    with socket.create_connection(("127.0.0.1", served.port)) as link:
        name = "" if host == "-" else f"Host: {host}\r\n"
        link.sendall(f"GET / HTTP/1.1\r\n{name}Cookie: {served.cookie}\r\nConnection: close\r\n\r\n".encode())
        answer = link.makefile("rb").read().decode()
    assert answer.split()[1] in ("421", "400")
    assert "login" not in answer


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9", "LOCALHOST:7475", "[::1]:7475", "127.0.0.1:7475"])
def test_every_port_of_a_tunnel_may_be_asked(served: Served, host: str):
    assert served.ask("/", Host=host).status == 200


def test_another_site_is_refused_even_with_the_cookie(served: Served):
    for headers in (
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": f"http://127.0.0.1:{served.port + 1}"},
        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
    ):  # fmt: skip
        assert served.ask("/", **headers).status == 403
    assert served.ask("/", Sec_Fetch_Site="same-origin", Origin=f"http://127.0.0.1:{served.port}").status == 200
    assert served.ask("/", Sec_Fetch_Site="none").status == 200


def test_the_token_becomes_a_cookie_that_no_script_reads(served: Served):
    answer = served.ask(f"/s/talk-one?at=3&token={served.token}", Cookie="-")
    assert (answer.status, answer.headers["location"]) == (303, "/s/talk-one?at=3")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"turnlog-{served.port}={served.token};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    away = served.ask(f"//evil.example/?token={served.token}", Cookie="-")
    assert away.headers["location"].startswith("/evil.example")


def test_a_file_that_redirects_with_the_token_opens_the_page(served: Served):
    answer = served.ask(f"/s/talk-one?at=3&token={served.token}", Cookie="-", Sec_Fetch_Site="cross-site")
    assert answer.status == 200
    assert answer.found('http-equiv="refresh" content="0; url=([^"]+)"') == ["/s/talk-one?at=3"]
    assert answer.headers["set-cookie"].startswith(f"turnlog-{served.port}={served.token};")
    wrong = served.ask("/?token=wrong", Cookie="-", Sec_Fetch_Site="cross-site")
    assert (wrong.status, wrong.headers["set-cookie"]) == (403, None)


@pytest.mark.parametrize(
    "other", ['session={"a":1}', "path=/x", "flag", "x[y]=1", "na\xefve=\xe9", "a b=c", "=", "{", '"']
)
def test_a_cookie_of_another_program_on_this_machine_locks_nobody_out(served: Served, other: str):
    for cookie in (f"{other}; {served.cookie}", f"{served.cookie}; {other}"):
        assert served.ask("/help", Cookie=cookie).status == 200


@pytest.mark.parametrize("path", ["/\\evil.example/", "\\/evil.example/", "\\\\evil.example/"])
def test_the_token_leads_to_no_other_host(served: Served, path: str):
    with socket.create_connection(("127.0.0.1", served.port)) as link:
        link.sendall(
            f"GET {path}?token={served.token} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        answer = link.makefile("rb").read().decode()
    place = next((line for line in answer.splitlines() if line.lower().startswith("location: ")), "location: /evil")
    assert place.lower().startswith("location: /evil")


def test_every_answer_says_what_may_be_done_with_it(served: Served):
    for path in (*PAGES, "/s/nowhere"):
        for cookie in (served.cookie, "-"):
            headers = served.ask(path, Cookie=cookie).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert "base-uri 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "no-store"
            assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["server"] is None


def test_what_changes_something_needs_the_page_it_comes_from(served: Served):
    path, body = "/s/talk-one/title", {"title": "taken"}
    assert served.ask(path).status == 405
    for headers in (
        {"Origin": "-"}, {"Origin": "http://evil.example"}, {"X_Turnlog_Token": "-"}, {"X_Turnlog_Token": served.token},
        {"Content_Type": "text/plain"}, {"Content_Type": "application/x-www-form-urlencoded"}, {"Cookie": "-"},
    ):  # fmt: skip
        assert served.post(path, body, **headers).status in (401, 403, 415)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert served.ask(path, method, body).status == 405
    assert served.post(path, b"{").status == 400
    assert served.post(path, {"title": "  "}).status == 400
    assert served.post("/s/claude-code%3Aaaaa1111/fork", {"at": 1}).status == 400
    assert "taken" not in served.get("/").text


def test_only_this_machine_can_ask(served: Served):
    rows = Path("/proc/net/tcp").read_text().splitlines()
    listening = {row.split()[1] for row in rows if row.split()[3] == "0A"}
    assert f"0100007F:{served.port:04X}" in listening
    assert f"00000000:{served.port:04X}" not in listening


def test_the_token_is_long_kept_and_only_its_owners(served: Served):
    kept = state_file(served.machine.user)
    assert kept.read_text().strip() == served.token
    assert len(served.token) >= 32
    assert os.stat(kept).st_mode & 0o777 == 0o600


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "turnlog", "web", "--no-open", *options], capture_output=True, text=True, timeout=30
    )


def test_a_port_that_is_taken_is_an_error_in_one_line(served: Served):
    done = run("--port", str(served.port))
    assert (done.returncode, done.stdout) == (8, "")
    first, hint = done.stderr.strip().split("\n")
    assert str(served.port) in first
    assert hint.startswith("hint: ")
    assert run("--host", "0.0.0.0").returncode == 2
    assert run("nowhere").returncode == 3


def test_without_the_extra_it_says_what_to_install(served: Served):
    code = (
        "import sys; sys.modules['starlette'] = None; "
        "from turnlog.cli import main; sys.argv = ['turnlog', 'web']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 7
    assert "pip install 'turnlog[web]'" in done.stderr
    assert "Traceback" not in done.stderr
