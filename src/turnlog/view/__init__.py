"""A session as rows and text: what every viewer draws. No files, no terminal.

row         what a reader sees of an entry: who spoke, prose, tool calls, output, what happened in between
rowmaker    makes rows of entries; `event` of those that nobody said, `cost` what they cost
toolcall    what tells one tool call from another; `filechange` the change that it makes to files
terminal    rows as lines for a terminal or a pipe
markdown    what models write, as blocks; rows as Markdown
html        rows as HTML, and the page around them
secret      secrets taken out, before anything is cut
otel        entries as spans
branch      the shape of a conversation: where it splits, and where its ends are
comparison  two sessions side by side, in words and rows
number      numbers as people read them; `time` times
visible     untrusted text that can neither drive a terminal nor deceive the eye
"""
