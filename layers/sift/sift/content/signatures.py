"""The bytes that files of a kind begin with, and the media types they stand for."""

from __future__ import annotations

from sift.content.archives import ZIP

# Leading bytes that settle it (WHATWG MIME Sniffing, and libmagic's rows for what the web serves).
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"8BPS\x00", "image/vnd.adobe.photoshop"),
    (b"\xff\x0a", "image/jxl"),
    (b"\x00\x00\x00\x0cJXL ", "image/jxl"),
    (b"\x00\x00\x00\x0cjP  ", "image/jp2"),
    (b"AT&TFORM", "image/vnd.djvu"),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"!<arch>\n", "application/x-archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"fLaC", "audio/flac"),
    (b"MThd\x00", "audio/midi"),
    (b"OggS", "application/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-asf"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO\x00", "font/otf"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"\x7fELF", "application/x-elf"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
)
# Two letters that a text may well start with: they count only before bytes that are no text.
_WEAK_SIGNATURES = ((b"MZ", "application/vnd.microsoft.portable-executable"), (b"BM", "image/bmp"))
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_FTYP = {
    b"avif": "image/avif",
    b"heic": "image/heic",
    b"mif1": "image/heic",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}


def find_signature(start: bytes) -> str | None:
    """The media type that a document's first bytes (262 at least) stand for, or None."""
    for magic, media_type in _SIGNATURES:
        if start.startswith(magic):
            return media_type
    if start.startswith(b"RIFF"):
        return _RIFF.get(start[8:12])
    if start[4:8] == b"ftyp":
        return _FTYP.get(start[8:12], "video/mp4")
    if start[257:262] == b"ustar":
        return "application/x-tar"
    if start.startswith(b"FORM") and start[8:12] in (b"AIFF", b"AIFC"):
        return "audio/aiff"
    return None


def find_weak_signature(start: bytes) -> str | None:
    """The media type of bytes that are known to be no text, by a beginning that a text could have too."""
    return next((name for magic, name in _WEAK_SIGNATURES if start.startswith(magic)), None)
