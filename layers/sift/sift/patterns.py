"""Search patterns in RE2's syntax: read the same way where a job is submitted and where it runs."""

from __future__ import annotations

from typing import Any

#: A pattern's size in bytes of UTF-8; RE2 compiles and searches in time linear to it.
MAX_PATTERN_BYTES = 1024
#: What RE2 may use for one pattern, in bytes. A pattern that compiles to more is refused when it is submitted.
_RE2_BYTES = 8 * 1024 * 1024
#: Set before every pattern; a caller has not written it, and does not see it.
_LINES = "(?m)"


def compile_pattern(pattern: str) -> Any:
    """A compiled pattern that searches bytes line by line: `^` and `$` are a line's ends, and no match crosses one.

    Raises ValueError that says what is wrong with it.
    """
    import re2  # type: ignore[import-untyped]

    if not pattern:
        raise ValueError("it is empty")
    if len(pattern.encode("utf-8", "replace")) > MAX_PATTERN_BYTES:
        raise ValueError(f"it is longer than {MAX_PATTERN_BYTES} bytes")
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.max_mem = _RE2_BYTES
    try:
        return re2.compile((_LINES + pattern).encode(), options)
    except re2.error as error:
        # A text may be bytes in the library's exception.
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text.replace(_LINES + pattern, pattern)) from None
    except UnicodeEncodeError:
        raise ValueError("it is not Unicode text") from None
    finally:
        re2.purge()  # the library's own cache would keep 128 of them, each with its memory
