"""Session stores for agent frameworks: each module is the store that one of them asks for, over a home of ours.

A module begins with `import_framework("their.package", "the-extra")`, so that a missing framework says what to install;
then it imports from it. The class keeps an `AdapterSessions` as `self.sessions`, given the caller's `home` and the
framework's name, inherits `ClosableAdapter`, and does everything in plain methods: `sessions.find(id)` for a session
with what others wrote since, `sessions.create(id, labels=…, drafts=…)` for a new one with its first entries,
`sessions.locked(id)` around several steps, `sessions.purge(id)` for delete. Async methods are one line,
`await self.sessions.run(self._plain_method, …)`: nothing that may wait for a disk runs on the loop.

What the framework hands in becomes entries: a `Message` with real blocks for what was said, its `meta` being
`{"<framework>": squeeze(item, blocks)}`; a `Custom` of kind `<framework>.<what>` for the rest. `expand` gives the item
back; both are in `log/item.py`, where an export finds them as well. Reading goes through
`session.context(repair=False)`: a message with that `meta` is expanded (`edited=` where its `seq` is in
`context.edited`; a `Mismatch` means that it is made from its blocks), any other one is made from its blocks. An id of
one part is the session's id, several go through `join_parts`; labels name the parts.

Several processes may write at once. Where their order does not matter, `append(…, rebase=True)` takes any; where it
does, `after=` or `alone=True` raises `Conflict`, and the adapter reads again and retries in a loop. Moves of the
framework are `rewind`, `append(to=)`, `fork`, `spawn`; only delete erases.
"""
