"""`turnlog web`."""

from __future__ import annotations

import sys
from urllib.parse import quote

from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.webpage import open_in_browser
from turnlog.cli.pick.session import names
from turnlog.errors import Unsupported
from turnlog.session import open_home

GROUP = "Find", 12
CHANGES = shape.WORKSPACE
FIELDS = {"url": shape.text("the address with its token"), "port": shape.number()}


@declare(
    SESSION_ARGUMENT,
    Option("--port N", "The port; 0 for any free one. [default: 7475]", least=0, most=65535),
    Option("--no-open", "Start no browser."),
    Option("--print-url", "Print only the address with its token on stdout."),
    Option("--read-only", "Nothing can be changed from the pages."),
    Option("--until-stdin-ends", "End when stdin does: when the process that started it ends.", hidden=True),
)
def command(
    session: str | None,
    port: int | None,
    no_open: bool,
    print_url: bool,
    read_only: bool,
    until_stdin_ends: bool,
    as_json: bool,
) -> None:
    """Show every session on this machine, in the browser.

    Serves pages on 127.0.0.1 until Ctrl-C, and opens them: search over all text, sessions to read and to watch while
    they run. The address contains a token; requests without it are refused. From another machine: `ssh -L
    7475:127.0.0.1:7475 HOST`.

    Needs the extra: pip install 'turnlog[web]'.

    \b
    turnlog web
    turnlog web k3f9
    turnlog web --no-open --print-url --port 0
    """
    try:
        from turnlog.web import server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise Unsupported("`turnlog web` needs Starlette and uvicorn", hint="pip install 'turnlog[web]'") from None
    location = home_location()
    path = "/"
    if session is not None:
        with open_home(location) as home:
            ref = names(home).find(session)
        path = f"/s/{quote(ref.name, safe='')}"
    bound = server.listen(port)
    token = server.token_kept()
    bare = f"http://127.0.0.1:{bound.getsockname()[1]}{path}"
    url = f"{bare}?token={token}"

    def started() -> None:
        if as_json:
            print_json({"url": url, "port": bound.getsockname()[1]})
            sys.stdout.flush()
        elif print_url:
            print(url, flush=True)
        printed = bare if print_url or as_json else url
        tell(f"{printed}  (Ctrl-C ends it)")
        if not no_open and not as_json:
            open_in_browser(url)

    lifeline = sys.stdin.fileno() if until_stdin_ends else None
    server.run(location, bound, token, is_read_only=read_only, started=started, lifeline=lifeline)
