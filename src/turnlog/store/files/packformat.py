"""The format of packs: content-addressed, compressed, deduplicated, and never changed once they have their name.

    pack    := "TURNPACK1\\n" (object | block)* index footer        a block is many small objects: see packblock
    object  := "OBJ1" codec:u8 length:u64 stored:u64 sha256:32 bytes stored-bytes
    index   := (sha256:32 offset:u64)*          offset of the object, or of its block
    footer  := index-offset:u64 count:u64 crc32-of-index:u32 "TURNEND1"

Numbers are little-endian; codec 0 is raw, 1 is zstandard, 2 is zstandard without its length in front. A pack is
named by the SHA-256 of its sorted digests, so the pack of a single blob is found without an index, and the objects
describe themselves should the index be lost.
"""

from __future__ import annotations

import struct

from turnlog.log.digest import sha256

MAGIC = b"TURNPACK1\n"
END = b"TURNEND1"
NEWER = frozenset(b"TURNEND%d" % number for number in range(2, 10))
"""The ends of packs of newer versions, which this version cannot read. They are not damaged."""
OBJECT = struct.Struct("<4sBQQ32s")
ROW = struct.Struct("<32sQ")
FOOTER = struct.Struct("<QQI8s")
RAW, ZSTD, STREAM = 0, 1, 2
PIECE = 1 << 20
SUFFIX = ".pack"
LEVEL = 3


def pack_name(keys: list[bytes]) -> str:
    """Return the file name of the pack that holds exactly these blobs."""
    return sha256(b"".join(sorted(keys))).hexdigest() + SUFFIX
