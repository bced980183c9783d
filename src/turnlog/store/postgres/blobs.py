"""Blobs as rows: in compressed pieces, so that neither side ever holds a whole big blob in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from types import TracebackType
from typing import Any, LiteralString

import psycopg

from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.log.payload import digest as digest_of
from turnlog.log.payload import digest_key, digest_of_key
from turnlog.log.zstd import compressor, unpacked
from turnlog.store import Freed, OpenFile
from turnlog.store.postgres.leasename import WATCHES
from turnlog.store.postgres.pool import Connection, Pool
from turnlog.store.postgres.problem import as_error
from turnlog.store.postgres.sharing import BlobLease

_PIECE = 1 << 20
_PENDING_BYTES = 4 << 20
_PENDING_BLOBS = 1000
_PAGE = 10_000
_RAW, _ZSTD = b"\0", b"\1"

_HAVE = "select digest from turnlog.blob where tenant = %s and digest = any(%b::bytea[])"
_NUMBERS = "select nextval('turnlog.number') from generate_series(1, %s)"
_ADD_PIECES = """
insert into turnlog.piece (num, part, tenant, data)
select new.num, new.part, %s, new.data
from unnest(%s::bigint[], %s::int[], %b::bytea[]) as new (num, part, data)
"""
# Two writers that add the same blobs at once cannot deadlock, because both insert in the order of the digests.
_ADD_BLOBS = """
insert into turnlog.blob (tenant, digest, num, size, stored)
select %s, new.* from unnest(%b::bytea[], %s::bigint[], %s::bigint[], %s::bigint[]) as new (digest, num, size, stored)
order by new.digest on conflict do nothing returning num
"""
_DROP_PIECES = "select turnlog.drop_pieces(%s::bigint[])"
_DROP_BLOBS = "select turnlog.drop_blobs(%b::bytea[])"
_DROP_UNWATCHED: LiteralString = f"""
select turnlog.drop_leases(array(select name from turnlog.lease
    where tenant = %s and {WATCHES} and until < clock_timestamp() - interval '1 day'))
"""
_GET = "select num, size from turnlog.blob where tenant = %s and digest = %b"
_PIECES = "select data from turnlog.piece where tenant = %s and num = %s and part >= %s order by part limit %s"
_LIST = """
select digest, num, stored from turnlog.blob where tenant = %s and digest > %b order by digest limit %s
"""


class BlobWriter:
    """Adds blobs inside the caller's transaction: its commit adds all of them."""

    def __init__(self, connection: Connection, tenant: int) -> None:
        self._connection = connection
        self._tenant = tenant
        self._compress = compressor(3).compress
        self._pending: dict[bytes, bytes] = {}
        self._pending_bytes = 0
        self._new: dict[bytes, tuple[int, int, int]] = {}
        self._there: set[bytes] = set()
        self.stored = 0

    def has(self, key: bytes) -> bool:
        """Whether the blob is stored, or will be when the transaction commits."""
        if key in self._new or key in self._there or key in self._pending:
            return True
        return key in self._have([key])

    def add(self, key: bytes, data: bytes) -> None:
        """Add a blob. Several small ones are sent together."""
        if key in self._new or key in self._there or key in self._pending:
            return
        self._pending[key] = data
        self._pending_bytes += len(data)
        if self._pending_bytes > _PENDING_BYTES or len(self._pending) > _PENDING_BLOBS:
            self.flush()

    def add_file(self, file: OpenFile) -> bytes:
        """Add the bytes of an open file, piece by piece. Returns the key."""
        self.flush()
        [num] = self._numbers(1)
        whole = hashlib.sha256()
        length = stored = part = 0
        try:
            for data in file.pieces(_PIECE):
                whole.update(data)
                piece = self._packed(data)
                self._connection.execute(_ADD_PIECES, (self._tenant, [num], [part], [piece]))
                length, stored, part = length + len(data), stored + len(piece), part + 1
        except OSError:  # the file cannot be read: the caller may leave it out and continue
            self._connection.execute(_DROP_PIECES, ([num],))
            raise
        key = whole.digest()
        if self.has(key):
            self._connection.execute(_DROP_PIECES, ([num],))
            self._there.add(key)
        else:
            self._new[key] = (num, length, stored)
            self.stored += stored
        return key

    def flush(self) -> None:
        """Send the waiting blobs that are not stored yet."""
        pending, self._pending, self._pending_bytes = self._pending, {}, 0
        if not pending:
            return
        have = self._have(list(pending))
        self._there.update(have)
        new = [(key, data) for key, data in pending.items() if key not in have]
        blobs: list[int] = []
        parts: list[int] = []
        pieces: list[bytes] = []
        for num, (key, data) in zip(self._numbers(len(new)), new, strict=True):
            packed = [self._packed(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)]
            blobs.extend([num] * len(packed))
            parts.extend(range(len(packed)))
            pieces.extend(packed)
            self._new[key] = (num, len(data), sum(map(len, packed)))
            self.stored += self._new[key][2]
        if pieces:
            self._connection.execute(_ADD_PIECES, (self._tenant, blobs, parts, pieces))

    def finish(self) -> None:
        """Register the blobs. If another writer added one meanwhile, our pieces of it are removed."""
        self.flush()
        if not self._new:
            return
        keys = sorted(self._new)
        nums, sizes, stored = ([self._new[key][at] for key in keys] for at in range(3))
        added = self._connection.execute(_ADD_BLOBS, (self._tenant, keys, nums, sizes, stored)).fetchall()
        late = set(nums) - {num for (num,) in added}
        if late:
            self._connection.execute(_DROP_PIECES, (sorted(late),))

    def _have(self, keys: list[bytes]) -> set[bytes]:
        rows = self._connection.execute(_HAVE, (self._tenant, keys), binary=True).fetchall()
        return {bytes(key) for (key,) in rows}

    def _numbers(self, count: int) -> list[int]:
        return [num for (num,) in self._connection.execute(_NUMBERS, (count,)).fetchall()] if count else []

    def _packed(self, data: bytes) -> bytes:
        packed = self._compress(data)
        return _ZSTD + packed if len(packed) < len(data) else _RAW + data


class BlobBatch:
    """See `Blobs.add`. One transaction on a connection of its own."""

    def __init__(self, pool: Pool, tenant: int, progress: Callable[[int], None] | None) -> None:
        self._pool = pool
        self._tenant = tenant
        self._progress = progress
        self._connection: Connection | None = None
        self._writer: BlobWriter | None = None

    def __enter__(self) -> BlobBatch:
        self._connection, _ = self._pool.own("adding blobs", lambda connection: connection.begin())
        self._writer = BlobWriter(self._connection, self._tenant)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        assert connection is not None
        assert self._writer is not None
        try:
            if kind is None:
                self._writer.finish()
                connection.execute("commit")
                connection.await_standby()
            elif not connection.closed:
                connection.execute("rollback")
        except psycopg.Error as problem:
            connection.close()
            if kind is None:
                # If only the answer was lost, the blobs are stored, and a retry adds nothing.
                raise as_error(problem, "adding blobs", self._pool.server) from problem
        finally:
            self._pool.give(connection)

    def __call__(self, content: bytes | OpenFile) -> str:
        """Add one blob."""
        assert self._writer is not None, "use it in a `with` block"
        try:
            if isinstance(content, OpenFile) and content.size > _PIECE:
                key = self._writer.add_file(content)
            else:
                data = b"".join(content.pieces()) if isinstance(content, OpenFile) else content
                key = hashlib.sha256(data).digest()
                self._writer.add(key, data)
            if self._progress is not None:
                self._writer.flush()
                self._progress(self._writer.stored)
        except psycopg.Error as error:
            raise as_error(error, "adding blobs", self._pool.server) from error
        return digest_of_key(key)


class PostgresBlobs:
    """The blobs of one tenant: see `Blobs`."""

    def __init__(self, pool: Pool, tenant: int, lock: BlobLease) -> None:
        self._pool = pool
        self._tenant = tenant
        self._lock = lock
        self.keeping, self.exclusive = lock.shared, lock.exclusive

    def add(self, *, progress: Callable[[int], None] | None = None) -> BlobBatch:
        return BlobBatch(self._pool, self._tenant, progress)

    def put(self, blobs: dict[str, bytes]) -> None:
        for name, data in blobs.items():
            digest_key(name)
            if digest_of(data) != name:
                raise Invalid(f"the content of blob {name} is not what its digest says")

        def job(connection: Connection, again: bool) -> None:
            del again
            with connection.transaction():
                writer = BlobWriter(connection, self._tenant)
                for name, data in blobs.items():
                    writer.add(digest_key(name), data)
                writer.finish()

        if blobs:
            self._pool.run("adding blobs", job)

    def has(self, digest: str) -> bool:
        return bool(self._pool.rows("searching for blobs", _GET, (self._tenant, digest_key(digest))))

    def lacking(self, digests: Iterable[str]) -> set[str]:
        wanted = {digest_key(name): name for name in digests}
        keys = list(wanted)
        for at in range(0, len(keys), _PAGE):
            for (key,) in self._pool.rows("searching for blobs", _HAVE, (self._tenant, keys[at : at + _PAGE])):
                del wanted[bytes(key)]
        return set(wanted.values())

    def get(self, digest: str) -> bytes:
        return b"".join(self.stream(digest))

    def stream(self, digest: str) -> Iterator[bytes]:
        doing = f"reading blob {digest}"
        rows = self._pool.rows(doing, _GET, (self._tenant, digest_key(digest)))
        if not rows:
            raise NotFound(f"no blob {digest}")
        num, size = rows[0]
        whole = hashlib.sha256()
        part, length = 0, 0
        while length < size:
            pieces = self._pool.rows(doing, _PIECES, (self._tenant, num, part, 4))
            if not pieces:
                break
            for (packed,) in pieces:
                data = _unpacked(bytes(packed), digest)
                whole.update(data)
                length += len(data)
                yield data
            part += len(pieces)
        if whole.digest() != digest_key(digest):
            raise Corrupt(f"blob {digest} is damaged")

    def packs(self) -> frozenset[str]:
        """See `IndexBlobs.packs`. There are no packs: the name is the number of collections so far."""
        query = "select collections from turnlog.tenant where num = %s"
        rows = self._pool.rows("listing blobs", query, (self._tenant,))
        return frozenset({f"collected {rows[0][0] if rows else 0} times"})

    def size(self) -> int:
        """Return the size of all blobs in bytes."""
        query = "select coalesce(sum(stored), 0)::bigint from turnlog.blob where tenant = %s"
        return self._pool.rows("listing blobs", query, (self._tenant,))[0][0]

    def unneeded(self, needed: Container[str]) -> Freed:
        count = size = 0
        for page in self._pages():
            gone = [stored for digest, _, stored in page if digest_of_key(digest) not in needed]
            count, size = count + len(gone), size + sum(gone)
        return Freed(count, size)

    def _remove(self, rows: list[tuple[Any, ...]]) -> None:
        """Remove blobs if the exclusive lock is still ours; raise otherwise."""

        def job(connection: Connection, again: bool) -> None:
            del again
            with connection.transaction():
                self._lock.renew_exclusive_in(connection)
                # In the same transaction, so that a changed count always goes with removed blobs.
                connection.execute(
                    "update turnlog.tenant set collections = collections + 1 where num = %s", (self._tenant,)
                )
                connection.execute(_DROP_PIECES, ([row[1] for row in rows],))
                connection.execute(_DROP_BLOBS, ([bytes(row[0]) for row in rows],))

        if rows:
            self._pool.run("removing blobs", job)

    def collect(
        self, find: Callable[[], Container[str]], *, expected: Container[str] | None = None, strictly: bool = False
    ) -> Freed:
        """See `Blobs.collect`. Rows are removed one page at a time, all that are not needed."""
        del expected, strictly
        count = size = 0
        with self.exclusive():
            needed = find()
            for page in self._pages():
                gone = [row for row in page if digest_of_key(row[0]) not in needed]
                for at in range(0, len(gone), _PENDING_BLOBS):
                    self._remove(gone[at : at + _PENDING_BLOBS])
                count, size = count + len(gone), size + sum(stored for _, _, stored in gone)
            self._pool.rows("collecting blobs", _DROP_UNWATCHED, (self._tenant,))
        return Freed(count, size)

    def _pages(self) -> Iterator[list[tuple[Any, ...]]]:
        last = b""
        while page := self._pool.rows("listing blobs", _LIST, (self._tenant, last, _PAGE)):
            yield page
            last = bytes(page[-1][0])


def _unpacked(packed: bytes, digest: str) -> bytes:
    if packed[:1] == _RAW:
        return packed[1:]
    content = unpacked(packed[1:], _PIECE)
    if content is None:
        raise Corrupt(f"blob {digest} is damaged")
    return content
