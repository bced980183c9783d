"""Prints receipts: which sessions were removed for good, which entries were erased, and what stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnlog.cli.draw.table import table
from turnlog.cli.frame.notes import tell_table
from turnlog.log.ids import handle_of
from turnlog.thread.removal.erasing import ErasureReceipt
from turnlog.thread.removal.purging import Purged
from turnlog.thread.report import Info
from turnlog.view.number import count, size
from turnlog.view.time import local_minute
from turnlog.view.visible import one_line


def print_receipt(purged: Sequence[Purged]) -> None:
    """Print what was removed with the sessions, and what stayed and why."""
    for receipt in purged:
        for removed in receipt.removed:
            if removed.kind != "session":
                print(f"{removed.kind} {one_line(handle_of(removed.id))} was removed for good")
        for left in receipt.left:
            what = "contents of files" if left.kind == "blobs" else f"{left.kind} {one_line(handle_of(left.id))}"
            more = f"; --{left.kind}s removes it as well" if left.kind in ("fork", "subagent") else ""
            print(f"{what} stayed: {one_line(left.why)}{more}")
    blobs, freed = sum(receipt.blobs for receipt in purged), sum(receipt.freed_bytes for receipt in purged)
    if blobs:
        print(f"{count(blobs, 'blob')} removed, {size(max(0, freed))} freed")


def show_sessions(rows: Iterable[Info]) -> None:
    """Print on stderr the sessions that are about to be removed, before the question."""
    cells = [(row.handle, local_minute(row.updated_at), str(row.seq), row.title or "") for row in rows]
    tell_table(table(("SESSION", "LAST ENTRY", "SEQ", "TITLE"), cells, right=(2,)))


def print_erasure(handle: str, receipt: ErasureReceipt) -> None:
    """Print what was erased, and what is out of reach."""
    seqs = ", ".join(str(entry.seq) for entry in receipt.entries) or "nothing: it was erased before"
    print(one_line(f"erased in session {handle}: {seqs}"))
    if receipt.also:
        print(f"{count(len(receipt.also), 'line')} that repeated it changed as well")
    if receipt.blobs:
        print(f"{count(receipt.blobs, 'blob')} removed, {size(max(0, receipt.freed_bytes))} freed")
    for blob in receipt.needed:
        users = ", ".join(f"{handle_of(user.session)}:{user.seq}" for user in blob.entries) or "a checkpoint"
        print(one_line(f"still there: {blob.digest[:19]}…, which {users} needs"))
    if receipt.summaries:
        numbers = ", ".join(str(entry.seq) for entry in receipt.summaries)
        print(f"look at the summaries that came later, which may quote it: {numbers}")
    for copy in receipt.copies:
        print(one_line(f"not changed: {copy}"))
    for why in receipt.left:
        print(one_line(f"not finished: {why}"))
    print("the file system, its snapshots and your backups may still have it")
