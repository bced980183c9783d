"""The session layer for AI coding agents: a durable, append-only log of what an agent said and did.

A name is imported when it is first used: whoever needs only some of them, as `turnlog ls` does, waits for no others.
"""

from __future__ import annotations

from turnlog.version import __version__

TYPE_CHECKING = False  # as type checkers know it; importing `typing` would be half of what this module costs
if TYPE_CHECKING:
    from turnlog.blame.authorship import Blame, BlamedLine, LineAuthor
    from turnlog.blame.commit import CommitBlame, CommitTurn
    from turnlog.catalog import Catalog
    from turnlog.catalog.answer import FoundPage, FoundSession, Hit, Hits, Spending
    from turnlog.catalog.values import Card, ListingRow, Standing, Synced, TokenSums
    from turnlog.errors import (
        AlreadyExists,
        Ambiguous,
        Conflict,
        Corrupt,
        Invalid,
        NotFound,
        OutOfSpace,
        TurnlogError,
        TurnlogWarning,
        Unavailable,
        Unsupported,
    )  # fmt: skip
    from turnlog.exchange.exporting.output import Exported
    from turnlog.exchange.exporting.readback import ExportCounts
    from turnlog.exchange.importing.sessionimport import Imported
    from turnlog.formats import Loss, Problem, Source
    from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
    from turnlog.log.codec import Damage
    from turnlog.log.context import Context
    from turnlog.log.context.tokens import Tokens
    from turnlog.log.entry import (
        Alias,
        Answer,
        AnyEntry,
        Ask,
        Changed,
        Checkpoint,
        Child,
        Compaction,
        Custom,
        Drop,
        Edit,
        Entry,
        Fold,
        Head,
        Intent,
        Message,
        Note,
        Ref,
        Role,
        Set,
        Spent,
        Start,
        Started,
        Stop,
        Track,
        Turn,
        TurnState,
        Uncompact,
        Unknown,
        Writer,
    )
    from turnlog.log.erasure.content import Erasure
    from turnlog.log.fold.opencall import PendingCall
    from turnlog.log.part import Fork, Git, Root, Spawned  # fmt: skip
    from turnlog.log.usage import Usage, UsageReport
    from turnlog.machine.instructions import instructions
    from turnlog.pricing import Cost, CostReport
    from turnlog.reader.export.document import export
    from turnlog.session.comparison import (
        ChangedFile,
        CommonBeginning,
        ComparedSide,
        ComparedTurn,
        Comparison,
    )  # fmt: skip
    from turnlog.session.document import Document, DocumentForm
    from turnlog.session.home import Home
    from turnlog.session.opening import Durability
    from turnlog.session.opening import open_home as open
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.session.session import Session
    from turnlog.store import Clock
    from turnlog.store.broadcast import Delta
    from turnlog.store.capability import Following
    from turnlog.store.tenant import DroppedTenant
    from turnlog.thread.branch import Branch
    from turnlog.thread.call.ending import LastTurn, TurnEnding
    from turnlog.thread.removal.erasing import EntryPlace, ErasureReceipt, NeededBlob
    from turnlog.thread.removal.purging import Purged, Remnant, Removed
    from turnlog.thread.report import Compacted, Info, Stats
    from turnlog.thread.space.garbage import Collected, KeptCheckpoint
    from turnlog.thread.stream import Live
    from turnlog.thread.target import Target
    from turnlog.transfer.report import TransferOptions, Transferred
    from turnlog.workspace.diff import Difference
    from turnlog.workspace.plan import Plan, Step
    from turnlog.workspace.restore import Outcome
    from turnlog.workspace.tree import TreeNode

__all__ = [
    "Alias", "AlreadyExists", "Ambiguous", "Answer", "AnyBlock", "AnyEntry", "Ask", "Blame", "BlamedLine", "Branch",
    "Card", "Catalog", "Changed", "ChangedFile", "Checkpoint", "Child", "Clock", "Collected", "CommitBlame",
    "CommitTurn", "CommonBeginning", "Compacted", "Compaction", "ComparedSide", "ComparedTurn", "Comparison",
    "Conflict", "Context", "Corrupt", "Cost", "CostReport", "Custom", "Damage", "Delta", "Difference", "Document",
    "DocumentForm", "Drop", "DroppedTenant", "Durability", "Edit", "Entry", "EntryPlace", "Erasure", "ErasureReceipt",
    "ExportCounts", "Exported", "File", "Fold", "Following", "Fork", "FoundPage", "FoundSession", "Git", "Head",
    "Hit", "Hits", "Home", "Image", "Imported", "Info", "Intent", "Invalid", "KeptCheckpoint", "LastTurn", "LineAuthor",
    "ListingRow", "Live", "Loss", "Message", "NeededBlob", "NotFound", "Note", "OutOfSpace", "Outcome", "PendingCall",
    "Plan", "Problem", "Purged", "ReadOnlySession", "Ref", "Remnant", "Removed", "Role", "Root", "Session", "Set",
    "Source", "Spawned", "Spending", "Spent", "Standing", "Start", "Started", "Stats", "Step", "Stop", "Synced",
    "Target", "Text", "Thinking", "TokenSums", "Tokens", "ToolCall", "ToolResult", "Track", "TransferOptions",
    "Transferred", "TreeNode",
    "Turn", "TurnEnding", "TurnState", "TurnlogError", "TurnlogWarning", "Unavailable", "Uncompact", "Unknown",
    "UnknownBlock", "Unsupported", "Usage", "UsageReport", "Writer", "__version__", "export", "instructions", "open",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would take every name to exist
    _MODULES = {
        "turnlog.blame.authorship": "Blame BlamedLine LineAuthor",
        "turnlog.blame.commit": "CommitBlame CommitTurn",
        "turnlog.catalog": "Catalog",
        "turnlog.catalog.answer": "FoundPage FoundSession Hit Hits Spending",
        "turnlog.catalog.values": "Card ListingRow Standing Synced TokenSums",
        "turnlog.errors": (
            "AlreadyExists Ambiguous Conflict Corrupt Invalid NotFound OutOfSpace TurnlogError TurnlogWarning "
            "Unavailable Unsupported"
        ),
        "turnlog.exchange.importing.sessionimport": "Imported",
        "turnlog.exchange.exporting.output": "Exported",
        "turnlog.exchange.exporting.readback": "ExportCounts",
        "turnlog.formats": "Loss Problem Source",
        "turnlog.log.block": "AnyBlock File Image Text Thinking ToolCall ToolResult UnknownBlock",
        "turnlog.log.codec": "Damage",
        "turnlog.log.context": "Context",
        "turnlog.log.entry": (
            "Alias Answer AnyEntry Ask Changed Checkpoint Child Compaction Custom Drop Edit Entry Fold Git Head Intent "
            "Message Note Ref Role Root Set Spent Start Started Stop Track Turn TurnState Uncompact Unknown Writer"
        ),
        "turnlog.log.erasure.content": "Erasure",
        "turnlog.log.fold.opencall": "PendingCall",
        "turnlog.log.part": "Fork Spawned",
        "turnlog.log.context.tokens": "Tokens",
        "turnlog.log.usage": "Usage UsageReport",
        "turnlog.machine.instructions": "instructions",
        "turnlog.pricing": "Cost CostReport",
        "turnlog.reader.export.document": "export",
        "turnlog.session": "Home ReadOnlySession Session",
        "turnlog.session.comparison": "ChangedFile CommonBeginning ComparedSide ComparedTurn Comparison",
        "turnlog.session.document": "Document DocumentForm",
        "turnlog.session.opening": "Durability",
        "turnlog.store": "Clock",
        "turnlog.store.broadcast": "Delta",
        "turnlog.store.capability": "Following",
        "turnlog.store.tenant": "DroppedTenant",
        "turnlog.thread.call.ending": "LastTurn TurnEnding",
        "turnlog.thread.space.garbage": "Collected KeptCheckpoint",
        "turnlog.thread.removal.erasing": "EntryPlace ErasureReceipt NeededBlob",
        "turnlog.thread.removal.purging": "Purged Remnant Removed",
        "turnlog.thread.branch": "Branch",
        "turnlog.thread.report": "Compacted Info Stats",
        "turnlog.thread.stream": "Live",
        "turnlog.thread.target": "Target",
        "turnlog.transfer.report": "TransferOptions Transferred",
        "turnlog.workspace.diff": "Difference",
        "turnlog.workspace.plan": "Plan Step",
        "turnlog.workspace.restore": "Outcome",
        "turnlog.workspace.tree": "TreeNode",
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

    def __getattr__(name):
        from importlib import import_module

        if name == "open":
            member = import_module("turnlog.session").open_home
        elif name in _MODULE_OF:
            member = getattr(import_module(_MODULE_OF[name]), name)
        else:
            raise AttributeError(f"module 'turnlog' has no attribute {name!r}")
        globals()[name] = member
        return member

    def __dir__():
        return sorted({*globals(), *__all__})
