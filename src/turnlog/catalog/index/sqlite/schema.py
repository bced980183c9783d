"""The tables of the catalog. A catalog of another version is deleted and rebuilt, so nothing is ever migrated.

A time is milliseconds since 1970. A path or name that is not Unicode is kept as bytes, everything else as text.
"""

from __future__ import annotations

APPLICATION = 0x7475726E
"""`turn`, where a SQLite file names its application."""
VERSION = 13

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- One row per session, ours and other agents'.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,        -- what to type for it: the handle of ours, agent:id of another agent's
    native TEXT NOT NULL,      -- its id: ours, or that agent's own
    is_ours INTEGER NOT NULL,
    agent TEXT,
    path NOT NULL,             -- the file it lies in; '' in a database of ours
    key TEXT NOT NULL,         -- which session of the file it is; '' if the file has one
    workspace,
    title TEXT,
    preview TEXT NOT NULL DEFAULT '',
    model TEXT,                -- of the newest answer
    created INTEGER,
    updated INTEGER,
    messages INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    tool_calls INTEGER NOT NULL DEFAULT 0,
    branches INTEGER NOT NULL DEFAULT 0,
    fork TEXT,                 -- native id
    parent TEXT,               -- native id
    origin TEXT NOT NULL DEFAULT '',       -- agent and identity, on two lines; of ours only if imported
    copy_of TEXT,              -- its original or other copy: see `Card.copy_of`
    is_hidden INTEGER NOT NULL DEFAULT 0,
    is_archived INTEGER NOT NULL DEFAULT 0,
    is_deleted INTEGER NOT NULL DEFAULT 0,
    is_copied INTEGER NOT NULL DEFAULT 0,  -- all of it is in another one, which lists and searches show
    copied TEXT NOT NULL DEFAULT '',       -- what it was written from, in JSON, if we wrote it
    carried INTEGER NOT NULL DEFAULT -1,   -- the last step that was copied from the original
    repeats INTEGER NOT NULL DEFAULT -1,   -- `carried` while the original is here: searches show it there
    tags TEXT NOT NULL DEFAULT '',         -- each with a line feed before and after it
    models TEXT NOT NULL DEFAULT '',       -- every model that answered, in the form of `tags`
    unpriced TEXT NOT NULL DEFAULT '',     -- the models without a known price, in the form of `tags`
    git_branches TEXT NOT NULL DEFAULT '', -- the branches that it worked on, in the form of `tags`
    own TEXT NOT NULL DEFAULT '',          -- spent by itself: six counts, micro-dollars, with spaces; '' for nothing
    inherited TEXT NOT NULL DEFAULT '',    -- spent by others that have the same requests, in the form of `own`
    before TEXT NOT NULL DEFAULT '',       -- spent in the parent before a fork of ours, in the form of `own`
    subagents TEXT NOT NULL DEFAULT '',    -- spent by its subagents, in the form of `own`
    cost INTEGER NOT NULL DEFAULT 0,       -- micro-dollars of `own`
    is_conversation INTEGER NOT NULL DEFAULT 0,  -- somebody said something, and not only `turnlog run`
    ending TEXT NOT NULL DEFAULT '',       -- where it ended: see `ending.py`
    writer TEXT NOT NULL DEFAULT '',       -- the processes that wrote last: pid started host boot, a line each
    damage INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    size INTEGER NOT NULL DEFAULT 0,
    resume TEXT NOT NULL DEFAULT '',       -- the command with which its agent goes on, a line per word
    family TEXT NOT NULL DEFAULT '',       -- one name for all forks of a session, and what was imported from it
    depth INTEGER NOT NULL DEFAULT 0,      -- how many forks lie between it and the first of them
    totals TEXT NOT NULL DEFAULT '',       -- what it spent according to itself, in JSON
    stamp TEXT NOT NULL DEFAULT '',        -- the version that its store or database reported when it was read
    mark BLOB                              -- the saved state of reading: see `read/intake.py`
);
CREATE INDEX sessions_by_time ON sessions (updated DESC);
CREATE INDEX sessions_by_id ON sessions (native);
CREATE UNIQUE INDEX sessions_by_place ON sessions (path, key, agent, native);

-- Sessions of other agents with a title, tags or notes given here: the title, tags and archived state of their own.
CREATE TABLE marked (session INTEGER PRIMARY KEY, title TEXT, tags TEXT NOT NULL, is_archived INTEGER NOT NULL);

-- One row per entry that has text. Its id is a time, so the newest comes first almost without sorting: see `rowid.py`.
CREATE TABLE docs (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    session INTEGER NOT NULL,
    step INTEGER NOT NULL,     -- seq in a session of ours, number of the record in another agent's
    entry TEXT NOT NULL,       -- the id of the entry
    role TEXT NOT NULL,        -- user, assistant, tool, system, note, summary
    tool TEXT NOT NULL,        -- names of tools that were called or answered, each with a line feed before and after it
    hash INTEGER NOT NULL,     -- of the text
    bundle INTEGER NOT NULL,   -- where the text is, and which one it is in there
    number INTEGER NOT NULL
);
CREATE INDEX docs_by_session ON docs (session, step);
-- Bundles, see `bundle.py`. A number is never used again: a reader may ask for a bundle that was removed meanwhile.
CREATE TABLE texts (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (
    text, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2"
);

-- Files that tools were called with.
CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE touched (path INTEGER, doc INTEGER, PRIMARY KEY (path, doc)) WITHOUT ROWID;
CREATE INDEX touched_by_doc ON touched (doc);

-- Outlines of our sessions, without texts, in pieces: the number of the first entry of each.
CREATE TABLE outlines (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX outlines_by_session ON outlines (session, first);

-- What tools did: one row per tool in an entry that calls it or answers for it.
CREATE TABLE used (
    session INTEGER NOT NULL,
    step INTEGER NOT NULL,
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    took INTEGER NOT NULL,     -- milliseconds
    PRIMARY KEY (session, step, tool)
) WITHOUT ROWID;

-- One row per request.
CREATE TABLE spent (
    session INTEGER NOT NULL,
    step INTEGER NOT NULL,
    token INTEGER NOT NULL,    -- a digest: even of the request, odd of the entry where it has none
    at INTEGER NOT NULL,
    model TEXT NOT NULL,       -- '' where none is named
    is_inherited INTEGER NOT NULL DEFAULT 0,   -- another session has the same request, and counts it
    is_reported INTEGER NOT NULL DEFAULT 0,    -- the agent said what it cost
    is_total INTEGER NOT NULL,                 -- a sum that it reports, or an import booked for it
    cost INTEGER,              -- millionths of micro-dollars; NULL where there is no known price
    input_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    PRIMARY KEY (session, token)
) WITHOUT ROWID;
CREATE INDEX spent_by_token ON spent (token, session);
-- `spent` summed up, without what is inherited: what a session spent in a quarter of an hour with one model.
CREATE TABLE quarters (
    session INTEGER NOT NULL,
    quarter INTEGER NOT NULL,  -- milliseconds / 900000
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    cost INTEGER NOT NULL,     -- of those that have a known price
    unpriced INTEGER NOT NULL, -- how many have none
    input_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_write_1h_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    PRIMARY KEY (session, quarter, model)
) WITHOUT ROWID;

-- What was looked at, and how it looked then.
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    path NOT NULL UNIQUE,
    agent TEXT NOT NULL,       -- '' for ours
    is_foreign INTEGER NOT NULL,
    is_watched INTEGER NOT NULL,
    size INTEGER NOT NULL,     -- below zero where it is no regular file
    mtime INTEGER NOT NULL,    -- nanoseconds; 0 where it was too young to be sure
    inode INTEGER NOT NULL
);
CREATE TABLE parts (session INTEGER, file INTEGER, PRIMARY KEY (file, session)) WITHOUT ROWID;
CREATE INDEX parts_by_session ON parts (session);
CREATE TABLE folders (
    id INTEGER PRIMARY KEY, path NOT NULL, agent TEXT NOT NULL, home NOT NULL, mtime INTEGER NOT NULL,
    UNIQUE (agent, path)
);
"""
