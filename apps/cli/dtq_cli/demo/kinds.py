"""What kind of content a file has: by its first bytes, never by its name."""

from __future__ import annotations

EMPTY = "empty"
TEXT = "text (UTF-8)"
BINARY = "other binary"

HEAD_BYTES = 512
"""How much of a file :func:`kind_of` wants to see."""

_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "PNG image"),
    (0, b"\xff\xd8\xff", "JPEG image"),
    (0, b"GIF8", "GIF image"),
    (8, b"WEBP", "WebP image"),
    (0, b"\x00\x00\x01\x00", "icon"),
    (0, b"wOFF", "web font"),
    (0, b"wOF2", "web font"),
    (0, b"OggS", "Ogg media"),
    (0, b"ID3", "MP3 audio"),
    (4, b"ftyp", "MP4 media"),
    (0, b"PK\x03\x04", "ZIP archive"),
    (0, b"\x1f\x8b", "gzip archive"),
    (0, b"BZh", "bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "Zstd archive"),
    (257, b"ustar", "tar archive"),
    (0, b"\x7fELF", "ELF program"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (0, b"MZ", "Windows program"),
    (0, b"\x00asm", "WebAssembly"),
    (0, b"SQLite format 3\x00", "SQLite database"),
)
_TEXTS = ((b"#!", "script"), (b"<?xml", "XML text"), (b"<svg", "SVG image"))


def kind_of(head: bytes, *, is_text: bool) -> str:
    """Return the kind of a file.

    Args:
        head: its first ``HEAD_BYTES``, or all of it.
        is_text: whether all of it is UTF-8 without NUL.
    """
    if not head:
        return EMPTY
    if head.startswith(b"%PDF-"):
        return "PDF document"
    if is_text:
        return next((kind for start, kind in _TEXTS if head.startswith(start)), TEXT)
    found = (kind for offset, magic, kind in _SIGNATURES if head.startswith(magic, offset))
    return next(found, BINARY)
