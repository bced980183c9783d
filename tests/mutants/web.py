"""Faults in `web`."""

from tests.mutants.mutant import Mutant

WEB_GUARD = "tests/web/test_guard.py"

MUTANTS = [
    Mutant(
        "web: any name of this machine is answered",
        "web/guard.py",
        "if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):",
        "if len(hosts) != 1:",
        (WEB_GUARD,),
    ),
    Mutant(
        "web: what changes something needs no token of its page",
        "web/guard.py",
        """if not hmac.compare_digest(headers.get("x-turnlog-token", "").encode(), self._page_token.encode()):""",
        "if False:",
        (WEB_GUARD,),
    ),
    Mutant(
        "web: who leaves is worked for to the end",
        "web/disconnect.py",
        "            waiter.leave()\n",
        "",
        ("tests/web/test_leaving.py",),
    ),
    Mutant(
        "web: another site's page may ask",
        "web/guard.py",
        'is_elsewhere = site not in (None, "same-origin", "none")',
        "is_elsewhere = False",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "web: a foreign origin is answered",
        "web/guard.py",
        "if (origin is not None and origin.lower() != own) or",
        "if",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "web: without a page's origin one may write",
        "web/guard.py",
        "        if origin is None:\n",
        "        if False:\n",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "web: read-only takes what a page sends",
        "web/guard.py",
        'if self._is_read_only or method != "POST":',
        'if method != "POST":',
        ("tests/web/test_pages.py::test_read_only_has_no_way_to_write",),
    ),
    Mutant(
        "web: a form may write",
        "web/guard.py",
        '.partition(";")[0].strip() != "application/json"',
        '.partition(";")[0].strip() == "text/html"',
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "web: the token is sent on to another host",
        "web/guard.py",
        'path = "/" + raw.decode("latin-1").lstrip("/',
        'path = raw.decode("latin-1").lstrip("',
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "web: a cookie that Python does not understand hides the ones behind it",
        "web/guard.py",
        'return cookie_parser(headers.get("cookie", "")).get(self._cookie, "")',
        'return getattr(__import__("http.cookies").cookies.SimpleCookie(headers.get("cookie", "")).get(self._cookie), '
        '"value", "")',
        (WEB_GUARD,),
    ),
    Mutant(
        "web: the server ends in the middle of a change",
        "web/server.py",
        "        changes.shutdown()",
        "        pass",
        ("tests/web/test_leaving.py",),
    ),
    Mutant(
        "web: a script may read the cookie",
        "web/guard.py",
        "httponly=True",
        "httponly=False",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "web: half of an address is a folder",
        "web/guard.py",
        'path.replace(b"%2F", b"%252F").replace(b"%2f", b"%252F")',
        "path",
        ("tests/web/test_guard.py", "tests/web/test_pages.py"),
    ),
    Mutant(
        "web: a prompt pays for the one that was left after it",
        "web/outline.py",
        "        if outline.flags[index] & PROMPT:\n",
        "        if outline.flags[index] & PROMPT and index in outline.path(outline.last):\n",
        ("tests/web/test_pages.py",),
    ),
]
