"""What `--json` says, command by command: for docs/cli.md, and for the test that compares it with what is printed.

Each line is a field and its meaning; `[name]` may be missing. Every document has a `version` besides.
"""

from __future__ import annotations

_REPORT = "what was `carried` (`messages`, `tool_calls`, `tool_results`), `changed`, `lost`, and `notes`"
_SESSION = "the id of the session"
_DRY = "whether nothing was done"
_COUNTS = "how many paths by action"
_MOVE = {
    "session": _SESSION,
    "action": "rewind, undo or redo",
    "dry_run": _DRY,
    "note": "why files stay as they are; else empty",
    "counts": _COUNTS,
    "steps": "a path each: `action`, `path`, `root`, `reason`",
    "done": "whether it was done",
    "entry": "the entry that says so",
    "result": "how many paths came out how",
    "problems": "what could not be done: `path`, `root`, `problem`",
    "incomplete": "what was put back without its owner or an attribute: `path`, `root`, `note`",
}
_MOVED = {
    "dry_run": _DRY,
    "sessions": "those that differ: `id`, `outcome`, `entries`, `blobs`, `blob_bytes`, `into`, `problems`, "
    "`without_ignored` (checkpoints whose ignored files stay where they are), `error`",
    "same": "how many sessions were the same on both sides",
    "entries": "how many entries went over",
}

FIELDS: dict[str, dict[str, str]] = {
    "checkpoint": {
        "session": _SESSION,
        "is_new": "whether it was made for this",
        "workspace": "the folder",
        "entry": "the number of the checkpoint",
        "label": "its name, or null",
        "files": "how many files are in it",
        "size_bytes": "how many bytes those have",
        "skipped": "paths that are not covered, and why",
    },
    "checkpoints": {
        "session": _SESSION,
        "checkpoints": "the oldest first: `entry`, `at`, `label`, `when` (begin or end of a turn), `turn`, `files`, "
        "`size_bytes`, `changed` (against the one before), `skipped`",
    },
    "compact": {
        "session": _SESSION,
        "dry_run": _DRY,
        "entry": "the number of the compaction; null if nothing was done",
        "removed": "how many messages a model sees no more",
        "kept": "how many it still sees",
        "summary": "what it sees instead",
    },
    "completion": {"shell": "which", "install": "the command that keeps it", "script": "what the shell has to run"},
    "demo": {
        "ok": "whether every check held",
        "checks": "`text` and `ok` of each",
        "seconds": "how long it took",
        "home": "where it was kept, with --keep",
    },
    "diff": {
        "session": _SESSION,
        "changes": "a path each: `path`, `action`, `lines`, and `before` and `after` with `kind`, `mode`, `digest`, "
        "`size`, `target`",
        "counts": _COUNTS,
    },
    "doctor": {
        "ok": "whether nothing is wrong",
        "store": "how a home that is no folder is; else null",
        "sessions": "`id`, `title`, `path`, `size_bytes`, `entries`, `regions` that are damaged, `findings`, `folds`, "
        "`repaired`, `left`, `ok`",
        "damaged_blobs": "digests, with --blobs",
        "[old_index]": "the index that an earlier version left in the home, where it could not be removed",
    },
    "export": {
        "path": "where it was written",
        "[agent]": "for which agent",
        "[id]": "its id there",
        "[report]": _REPORT,
        "[form]": "which document, if it is one",
        "[size_bytes]": "of the document",
        "redacted": "how many secrets of which kind were taken out; null where nothing was looked for",
    },
    "fork": {
        "session": "the id of the new session",
        "handle": "its short name",
        "parent": "the id of the one that it continues",
        "at": "the entry from which",
        "name": "what this way of going on is called, or null",
        "messages": "how many it begins with",
    },
    "formats": {"formats": "`name`, `title`, what can be done (`read`, `write`, `resume`), and `homes`"},
    "gc": {
        "dry_run": _DRY,
        "quota_bytes": "the quota, or null",
        "disk": "bytes of `logs`, `trash` and `blobs` now",
        "disk_before": "the same before",
        "blobs": "how many were removed",
        "freed_bytes": "how much that gave back",
        "dropped": "how many checkpoints were given up",
    },
    "import": {"sessions": "`id` here, `agent`, `source`, `key`, how many entries were `added`, and `problems`"},
    "log": {"session": _SESSION, "entries": "as [the format](format.md) has them, without the checksum"},
    "ls": {
        "sessions": "the `name` to type, `id`, `handle`, `is_ours`, `agent`, `path`, `key`, `workspace`, `title`, "
        "`preview`, `model`, `created_at`, `updated_at`, `messages`, `turns`, `tool_calls`, `branches`, `fork`, "
        "`parent`, `copy_of`, `hidden`, `archived`, `deleted`, `tags`, `labels`, `seq`, `state`, `damage`, `problem`, "
        "`is_readable`, `size_bytes`, tokens and `cost_micros` in `own`, `inherited` and `subagents`, and models that "
        "are `unpriced`",
    },
    "mv": {
        "dry_run": _DRY,
        "sessions": "`id`, `handle` and the new `workspace` of each",
        "other_agents": "how many sessions of which agent stay where they are",
    },
    "path": {"session": _SESSION, "path": "its file"},
    "pull": _MOVED,
    "push": _MOVED,
    "redo": _MOVE,
    "restore": {"sessions": "`id` and `handle` of each"},
    "resume": {
        "agent": "where it goes on",
        "id": "its id there",
        "path": "where it lies; null for an agent that reads it here",
        "cwd": "the folder for the command",
        "command": "its words",
        "report": _REPORT,
    },
    "rewind": {
        **_MOVE,
        "target": "the entry that it goes back to",
        "checkpoint": "the checkpoint of the files, or null",
        "files": "whether files go back",
        "conversation": "whether the conversation does",
    },
    "rm": {"purged": "whether for good", "sessions": "`id` and `handle` of each"},
    "run": {
        "session": _SESSION,
        "exit_code": "of the command",
        "seconds": "how long it ran",
        "counts": _COUNTS,
        "changes": "as in `diff`, without `lines`",
        "problem": "why what changed is not known, or that the folder is gone; empty if nothing is wrong",
    },
    "search": {
        "query": "what was asked",
        "hits": "`session` as in `ls`, `entry`, `seq`, `role`, `tool`, `at`, `snippet`, `marks` (from and to in it), "
        "`resume` (the command), `cursor` (for --before)",
        "before": "for the next page: `--before`; null at the end",
        "is_cut": "whether it was too much to look through, and only what is newer than `before` was",
    },
    "show": {
        "session": _SESSION,
        "title": "or null",
        "workspace": "or null",
        "agent": "or null",
        "head": "the entry at which the conversation stands",
        "totals": "`messages`, `tool_calls`, `tool_results`, `usage`",
        "[system]": "the system prompt, with --context",
        "[source]": "where it was read, if it is another agent's",
        "[problems]": "what was wrong there",
        "messages": "as [the format](format.md) has them",
        "pending": "tool calls without a result",
    },
    "sync": {"dry_run": _DRY, "push": "as in `push`", "pull": "as in `pull`"},
    "tag": {"session": _SESSION, "tags": "all that it has now"},
    "title": {"session": _SESSION, "title": "or null"},
    "tree": {
        "session": _SESSION,
        "tree": "`id`, `handle`, `title`, `agent`, `is_asked`, `head`, `branches`, and the same of its `forks` and "
        "`subagents`",
    },
    "uncompact": {
        "session": _SESSION,
        "dry_run": _DRY,
        "compaction": "the entry that no longer applies",
        "entry": "the entry that says so; null if nothing was done",
        "messages_before": "how many a model saw",
        "messages": "how many it sees now; null if nothing was done",
    },
    "undo": _MOVE,
    "usage": {
        "by": "what the groups are",
        "groups": "`group`, tokens of six kinds, `cost_micros`, `requests`, `sessions`, and `unpriced` models",
        "total": "the same of all",
    },
    "watch": {
        "session": _SESSION,
        "title": "or null",
        "agent": "or null",
        "seq": "the last entry that was there before; those that follow are a line each",
        "source": "where it is read, if it is another agent's",
    },
}
