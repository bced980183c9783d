"""Session stores for agent frameworks: each module is the store that one of them asks for, over a home of ours.

How one is built. Its module begins with `framework("their.package", "the-extra")` from `_shelf`, so that a missing
framework says what to install; then it imports from it. The class keeps a `Shelf` (`self.shelf`, given the caller's
`home` and the framework's name), inherits `Closing`, and does everything in plain methods: `shelf.find(id)` for a
session with what others wrote since, `shelf.make(id, labels=…, drafts=…)` for a new one with its first entries,
`shelf.locked(id)` around several steps, `shelf.purge(id)` for delete. Async methods are one line,
`await self.shelf.run(self._plain_method, …)`: nothing that may wait for a disk runs on the loop.

What the framework hands in becomes entries: a `Message` with real blocks for what was said, its `meta` being
`{"<framework>": squeeze(item, blocks)}`; a `Custom` of kind `<framework>.<what>` for the rest. `expand` gives the item
back; both are in `log/item.py`, where an export finds them as well. Reading goes through
`session.context(repair=False)`: a message with that `meta` is expanded (`edited=` where its `seq` is in
`context.edited`; a `Mismatch` means that it is made from its blocks), any other one is made from its blocks. An id of
one part is the session's id, several are `joined`; labels name the parts.

Two writers: `append(…, rebase=True)` where order does not matter, `after=` or `alone=True` and a loop on `Conflict`
where it does. Moves of the framework are `rewind`, `append(to=)`, `fork`, `spawn`; only delete erases.
"""
