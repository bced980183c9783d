"""Where things are on this machine: the only module that reads the environment and the home directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from turnlog.errors import Invalid, NotFound, Unavailable, Unsupported

if TYPE_CHECKING:
    from turnlog.formats import Places


def default_home() -> str:
    """`$TURNLOG_HOME`, or `.turnlog` in the home directory."""
    chosen = os.environ.get("TURNLOG_HOME")
    if chosen and chosen.strip():
        return chosen
    home = os.path.expanduser("~")
    if home == "~":
        raise Invalid("there is no home directory", hint="set TURNLOG_HOME")
    return os.path.join(home, ".turnlog")


def kind_of(location: str) -> str:
    """Which store a location is one of: `memory`, `postgres` or `files`."""
    scheme, colon, _ = location.partition(":")
    if location == "memory:":
        return "memory"
    if colon and scheme in ("postgresql", "postgres"):
        return "postgres"
    if colon and "//" in location and "/" not in scheme:
        raise Unsupported(f"no store for {scheme}: locations", hint="a folder, memory: or postgresql://…")
    return "files"


def current_folder() -> str:
    """The current folder, also where it is gone: then what it was called when it was there."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        pass
    try:
        return os.readlink("/proc/self/cwd").removesuffix(" (deleted)")
    except OSError:
        shell = os.environ.get("PWD", "")  # what a shell says of itself: the only one who still knows
    if not os.path.isabs(shell):
        raise NotFound("the current folder is gone", hint="`cd` to one that is there")
    return shell


def is_here() -> bool:
    """Whether the current folder is there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def expand(path: str) -> str:
    """A path with `~` at its beginning resolved."""
    return os.path.expanduser(path)


def absolute(path: str) -> str:
    """A path from the root, `~` resolved; links stay. Nothing lies in a current folder that is gone."""
    path = expand(path)
    if not os.path.isabs(path) and not is_here():
        raise NotFound(f"there is no {path}: the current folder is gone", hint="`cd` to one that is there")
    return os.path.abspath(path)


def named_here(path: str) -> str:
    """What a path is called from the root, also where the current folder is gone; links stay."""
    return os.path.normpath(os.path.join(current_folder(), expand(path)))


def places_of(workspace: str | None) -> Places:
    """What formats may know of this machine."""
    from turnlog.formats import Places

    home = os.path.expanduser("~")
    return Places(home=home, workspace=named_here(workspace or "."), environ=dict(os.environ))


def workspace_path(path: str | os.PathLike[str]) -> str:
    """A folder as sessions name it: absolute, links resolved; `bytes:` and %-escapes where it is not Unicode."""
    try:
        text = os.fsdecode(path)
        real = os.path.realpath(text if os.path.isabs(text) else os.path.join(current_folder(), text))
    except (TypeError, ValueError) as error:
        raise Invalid(f"the folder {path!r:.80}: {error}") from None
    try:
        real.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote_from_bytes

        return "bytes:" + quote_from_bytes(os.fsencode(real))
    return real


def place_in(workspace: str | None, path: str | os.PathLike[str], *, is_relative: bool) -> str:
    """A file as the log names it: absolute, or relative to the workspace if it is in there."""
    from turnlog.workspace.tree import path_bytes, path_text

    base = os.fsdecode(path_bytes(workspace or current_folder()))
    full = os.path.normpath(os.path.join(base, os.fspath(path)))
    # The folder as it is, whatever links lead to it now: going back never goes through one.
    full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    if is_relative and full.startswith(base + os.sep):
        full = os.path.relpath(full, base)
    return path_text(os.fsencode(full))


def instructions(workspace: str | os.PathLike[str]) -> str | None:
    """The project's `AGENTS.md`, then personal instructions, joined by an empty line; None if there are none.

    Personal are `.turnlog/instructions.md` and `.sofos/instructions.md` in the workspace, and `instructions.md` in the
    home folder. One that is there and cannot be read is an error: a model would work without it, and nobody would know.
    """
    folder = os.fspath(workspace)
    places = (
        os.path.join(folder, "AGENTS.md"),
        os.path.join(folder, ".turnlog", "instructions.md"),
        os.path.join(folder, ".sofos", "instructions.md"),
        os.path.join(default_home(), "instructions.md"),
    )
    texts: list[str] = []
    for place in places:
        try:
            with open(place, encoding="utf-8", errors="replace") as file:
                text = file.read().strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            told = error.strerror or str(error)
            raise Unavailable(f"{place} cannot be read: {told}", hint="let it be read, or take it away") from None
        if text:
            texts.append(text)
    return "\n\n".join(texts) or None


def this_process() -> dict[str, Any]:
    """What tells this process from any other, now or later: its pid alone does not."""
    return {
        "pid": os.getpid(),
        "started": _read_word("/proc/self/stat", after=")", index=19),
        "host": os.uname().nodename,
        "boot": _read_word("/proc/sys/kernel/random/boot_id"),
        "namespace": _read_link("/proc/self/ns/pid"),
    }


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _read_word(path: str, *, after: str = "", index: int = 0) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    words = text.rpartition(after)[2].split() if after else text.split()
    return words[index] if index < len(words) else None


def refuses_checkpoints(root: str) -> str:
    """Why that folder is never scanned as a workspace; empty if it may be."""
    home = os.path.realpath(os.path.expanduser("~"))
    if root == "/" or os.path.dirname(root) == root:
        return "it is the whole file system"
    if root == home:
        return "it is the home folder"
    if home.startswith(root.rstrip("/") + "/"):
        return "the home folder is in it"
    return ""


def outside_rules(root: str) -> list[tuple[bytes, bytes]]:
    """Ignore rules for a tree that are not in it: global excludes, `info/exclude`, `.gitignore` files above it.

    Each with the path of the tree as those rules see it. Later ones count more, as with git.
    """
    found: list[tuple[bytes, bytes]] = []
    _add_rules(found, b"", _global_excludes())
    top = root
    while top != os.path.dirname(top) and not mode_of(os.path.join(top, ".git")):
        top = os.path.dirname(top)
    if not mode_of(os.path.join(top, ".git")):
        return found
    lead = b"" if top == root else os.fsencode(os.path.relpath(root, top)) + b"/"
    _add_rules(found, lead, os.path.join(top, ".git", "info", "exclude"))
    folder = top
    while lead:
        _add_rules(found, lead, os.path.join(folder, ".gitignore"))
        name, _, lead = lead.partition(b"/")
        folder = os.path.join(folder, os.fsdecode(name))
    return found


def mode_of(path: str) -> int:
    """What is at a path, as `st_mode` has it; 0 for nothing. Raises where it is the system that cannot tell."""
    from turnlog.workspace.read import refuse_hole

    try:
        return os.stat(path).st_mode
    except OSError as error:
        refuse_hole(error, os.fsencode(path))
        return 0


def _add_rules(found: list[tuple[bytes, bytes]], lead: bytes, path: str) -> None:
    from turnlog.workspace.read import refuse_hole

    try:
        with open(path, "rb") as file:
            text = file.read(1 << 20)
    except OSError as error:
        refuse_hole(error, os.fsencode(path))
        return
    if text.strip():
        found.append((lead, text))


def _global_excludes() -> str:
    """Where git looks for rules of all repositories: `core.excludesFile`, or its default place."""
    from turnlog.workspace.read import refuse_hole

    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    for path in (os.path.join(os.path.expanduser("~"), ".gitconfig"), os.path.join(config, "git", "config")):
        section = ""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    text = line.strip()
                    if text.startswith("["):
                        section = text.strip("[]").strip().lower()
                    key, equals, value = text.partition("=")
                    if section == "core" and equals and key.strip().lower() == "excludesfile":
                        return os.path.expanduser(value.strip().strip('"'))
        except OSError as error:
            refuse_hole(error, os.fsencode(path))
    return os.path.join(config, "git", "ignore")


def lives(who: dict[str, Any]) -> bool | None:
    """Whether that process still runs; None for one on another machine or in another PID namespace: who knows."""
    here = this_process()
    if who.get("host") != here["host"]:
        return None
    if who.get("boot") != here["boot"]:
        return False
    if who.get("namespace") is not None and who.get("namespace") != here["namespace"]:
        return None
    started = _read_word(f"/proc/{who.get('pid')}/stat", after=")", index=19)
    if here["started"] is not None:
        return started is not None and started == who.get("started")
    try:
        os.kill(int(who.get("pid") or 0), 0)
    except OSError:
        return False
    return True


def is_alive(who: dict[str, Any]) -> bool:
    """Whether that process runs, or may run where nobody here can look."""
    return lives(who) is not False


def environment() -> Mapping[str, str]:
    """What the environment says."""
    return os.environ


def user_folder() -> str:
    """The home directory of whoever runs this; `~` if there is none."""
    return os.path.expanduser("~")


def state_folder() -> str:
    """Where this machine remembers what is this person's alone and cannot be made again; "" where there is no such."""
    base = os.environ.get("XDG_STATE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "turnlog") if os.path.isabs(base) else ""


def key_of(location: str) -> str:
    """A name for a home among others: the same however its folder is written; without the password of a database."""
    from hashlib import sha256

    if kind_of(location) == "files":
        name = os.path.realpath(absolute(location))
    else:
        scheme, mark, rest = location.partition("://")
        who, at, where = rest.rpartition("@")
        where, question, asked = where.partition("?")
        kept = "&".join(part for part in asked.split("&") if not part.startswith("password="))
        name = f"{scheme}{mark}{who.partition(':')[0]}{at}{where}{question}{kept}"
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def cache_folders() -> Iterator[str]:
    """Where things may lie that can be made again; the next one is for where the one before cannot be used."""
    base = os.environ.get("XDG_CACHE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    yield os.path.join(base, "turnlog")
    from tempfile import gettempdir  # hardly ever, and it takes a while to load

    yield os.path.join(gettempdir(), f"turnlog-{os.getuid()}")
