"""A session as rows and text: what every viewer draws. Pure functions over entries; no files, no terminal.

row       entries to rows: who spoke, prose, tool calls, output, what happened in between
tool      what tells one tool call from another, and the change that it makes to a file
markdown  what models write, as blocks
plain     rows as lines for a terminal or a pipe; `typeset` does the Markdown in them
document  rows as Markdown
page      rows as one HTML file
branch    the shape of a conversation: where it splits, and where its ends are
redact    secrets taken out, before anything is cut; `secret` and `assigned` find them
visible   untrusted text that can neither drive a terminal nor deceive the eye
"""
