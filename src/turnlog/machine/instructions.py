"""What a project and its people tell every agent: `AGENTS.md` and personal instructions."""

from __future__ import annotations

import os

from turnlog.errors import Unavailable
from turnlog.machine.environment import default_home


def instructions(workspace: str | os.PathLike[str]) -> str | None:
    """The project's `AGENTS.md`, then personal instructions, joined by an empty line; None if there are none.

    Personal are `.turnlog/instructions.md` and `.sofos/instructions.md` in the workspace, and `instructions.md` in the
    home folder. One that is there and cannot be read is an error: a model would work without it, and nobody would know.
    """
    folder = os.fspath(workspace)
    paths = (
        os.path.join(folder, "AGENTS.md"),
        os.path.join(folder, ".turnlog", "instructions.md"),
        os.path.join(folder, ".sofos", "instructions.md"),
        os.path.join(default_home(), "instructions.md"),
    )
    texts: list[str] = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read().strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unavailable(f"{path} cannot be read: {reason}", hint="let it be read, or take it away") from None
        if text:
            texts.append(text)
    return "\n\n".join(texts) or None
