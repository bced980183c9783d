"""rho: a file of lines for each session, grouped by workspace; since version 4 a tree, in a folder of its own."""

from __future__ import annotations

from turnlog.formats import Format, Writing
from turnlog.formats._shared.finding import resume_command
from turnlog.formats.seeds.rho.layout import find, homes, place
from turnlog.formats.seeds.rho.reading import read
from turnlog.formats.seeds.rho.writing import write

FORMAT = Format(
    "rho, versions 1 to 4: files, folders, trees and checkpoints",
    homes,
    find,
    read,
    write=Writing(render=write, place=place, versions={1: "every rho", 4: "rho of 2026-07-21 or newer"}),
    resume=resume_command("rho", "--resume", "ID"),
)
