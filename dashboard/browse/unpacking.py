"""What is compressed, unpacked within bounds, whatever it claims to become."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.utils.translation import gettext as _

from dashboard.browse import bodies

MOST_BYTES = bodies.SHOWN_BYTES
"""What comes out of one step at most; what is shown of a body, too."""

MOST_FILES = 16
"""Files that are unpacked where some follow each other: each costs a look at all that is left, also an empty one."""

_AT_ONCE_BYTES = 16 * 1024
_LZMA_MEMORY_BYTES = 80 * 1024 * 1024
"""A file of `xz -9` needs 65 MiB."""
_SNAPPY_GAIN = 22
"""A copy of 64 bytes takes three: what claims to become more times as many is no Snappy."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What a step makes of another; ``whole`` is False for a beginning, ``name`` is what the step turned out to be."""

    data: bytes
    whole: bool
    name: str = ""


def inflated(wbits: int) -> Callable[[Piece], Piece]:
    """A step by zlib, which goes on with the file that follows; ``wbits`` says in which of its formats."""

    def step(held: Piece) -> Piece:
        data, made, files = held.data, b"", 0
        ends = False
        while data and len(made) <= MOST_BYTES and files < MOST_FILES:
            files += 1
            unpacking = zlib.decompressobj(wbits)
            try:
                made += unpacking.decompress(data, MOST_BYTES + 1 - len(made))
            except zlib.error as error:
                raise ValueError(str(error).rpartition(": ")[2]) from None
            ends = unpacking.eof
            data = unpacking.unused_data  # gzip files may follow each other
        is_all = len(made) <= MOST_BYTES and not (ends and data)
        if held.whole and not ends and is_all:
            raise ValueError(_("it ends too early") if held.data else _("it is empty"))
        return Piece(made[:MOST_BYTES], held.whole and is_all)

    return step


def streamed(codec: str) -> Callable[[Piece], Piece]:
    """A step by a codec that Arrow has."""

    def step(held: Piece) -> Piece:
        import pyarrow  # 44 MB: only where such a body comes

        stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(held.data), codec)
        made = bytearray()
        try:
            while len(made) <= MOST_BYTES and (part := stream.read(_AT_ONCE_BYTES)):
                made += part
        except (OSError, pyarrow.ArrowException) as error:
            if held.whole or not made:
                raise ValueError(str(error).partition(". ")[0]) from None
        if not made:
            raise ValueError(_("it is empty"))
        return Piece(bytes(made[:MOST_BYTES]), held.whole and len(made) <= MOST_BYTES)

    return step


def unpacked(
    decompressor: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
) -> Callable[[Piece], Piece]:
    """A step by a decompressor of Python's own, which ends with the first file."""

    def step(held: Piece) -> Piece:
        unpacking = decompressor()
        try:
            made = unpacking.decompress(held.data, MOST_BYTES + 1)
        except (OSError, lzma.LZMAError) as error:
            raise ValueError(str(error)) from None
        is_all = len(made) <= MOST_BYTES and not unpacking.unused_data
        if held.whole and is_all and not unpacking.eof:
            raise ValueError(_("it ends too early") if held.data else _("it is empty"))
        return Piece(made[:MOST_BYTES], held.whole and is_all)

    return step


def snappy(held: Piece) -> Piece:
    """Snappy without frames: how long it becomes, and then at once all of it."""
    import pyarrow

    size = shift = 0
    for byte in held.data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if not size or size > _SNAPPY_GAIN * len(held.data):
        raise ValueError(_("it does not begin with its length") if held.data else _("it is empty"))
    if not held.whole:
        raise ValueError(_("it is too long"))
    try:
        made: bytes = pyarrow.decompress(held.data, size, "snappy", asbytes=True)
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(str(error).rstrip(".")) from None
    return Piece(made[:MOST_BYTES], size <= MOST_BYTES)


STEPS: dict[str, Callable[[Piece], Piece]] = {
    "gzip": inflated(31),
    "zlib": inflated(15),
    "deflate": inflated(-15),
    "zstd": streamed("zstd"),
    "lz4": streamed("lz4"),
    "snappy": snappy,
    "brotli": streamed("brotli"),
    "bzip2": unpacked(bz2.BZ2Decompressor),
    "xz": unpacked(partial(lzma.LZMADecompressor, memlimit=_LZMA_MEMORY_BYTES)),
}
