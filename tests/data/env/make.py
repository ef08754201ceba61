#!/usr/bin/env python3
"""Writes config.gz: a gzip member whose DEFLATE stream has blocks of all three types and
unpacks to more than the 32 KiB window. The text is that of `plain()` in
src/command/env/gzip.rs."""

import gzip
import pathlib
import struct
import zlib

lines = (
    f"CONFIG_OPTION_{i}=y\n" if i * i % 7 == 1 else f"# CONFIG_OPTION_{i} is not set\n"
    for i in range(1500)
)
text = "".join(lines).encode()


def blocks(part, level, strategy, mode):
    deflater = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    return deflater.compress(part) + deflater.flush(mode)


stored, fixed = text[:300], text[300:900]
packed = b"".join([
    b"\x1f\x8b\x08\0\0\0\0\0\x02\x03",
    blocks(stored, 0, zlib.Z_DEFAULT_STRATEGY, zlib.Z_SYNC_FLUSH),
    blocks(fixed, 9, zlib.Z_FIXED, zlib.Z_SYNC_FLUSH),
    blocks(text[900:], 9, zlib.Z_DEFAULT_STRATEGY, zlib.Z_FINISH),
    struct.pack("<II", zlib.crc32(text), len(text)),
])
assert gzip.decompress(packed) == text
pathlib.Path(__file__).with_name("config.gz").write_bytes(packed)
