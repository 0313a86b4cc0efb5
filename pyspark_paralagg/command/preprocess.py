"""Prepare a program's source as Soufflé does: `.include` and `.once` lines, then the C preprocessor if requested.

The result is one text, so places in messages count the lines of that text if it differs from the file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_INCLUDE = re.compile(
    r'^[ \t]*\.(?P<word>include|once)\b[ \t]*(?:"(?P<file>[^"\n]*)")?[ \t]*(?://[^\n]*)?$', re.MULTILINE
)
_MAX_DEPTH = 100
_COMMAND = ("cpp", "-P", "-undef", "-nostdinc", "-w", "-DRAM_DOMAIN_SIZE=64")  # Soufflé defines the size of a number


def source_of(program: Path, *, uses_cpp: bool) -> str:
    """Return the source of ``program`` with included files; with ``uses_cpp`` after `cpp` has run over it.

    Raise ``UsageError`` ``PARALAGG_NO_PROGRAM`` if a file cannot be read, or if `cpp` fails or is not installed.
    """
    source = _preprocessed(program) if uses_cpp else _read(program)
    return _with_includes(source, program, set(), 0)


def _read(program: Path) -> str:
    try:
        return program.read_text(encoding="utf-8")
    except OSError as problem:
        message = f"cannot read {program}: {problem.strerror}"
        raise UsageError("PARALAGG_NO_PROGRAM", message, value=str(program)) from None
    except UnicodeDecodeError as problem:
        message = f"{program} is not UTF-8, at byte {problem.start}"
        raise UsageError("PARALAGG_NO_PROGRAM", message, value=str(program)) from None


def _with_includes(source: str, program: Path, once: set[Path], depth: int) -> str:
    """Return ``source`` with the text of each included file, whose name is relative to the folder of ``program``."""
    if _INCLUDE.search(source) is None:
        return source
    if depth == _MAX_DEPTH:
        message = f"{program} includes itself"
        hint = "remove one `.include` of the cycle, or write `.once` in the file"
        raise UsageError("PARALAGG_NO_PROGRAM", message, value=str(program), hint=hint)

    def include(match: re.Match[str]) -> str:
        if match["word"] == "once":
            once.add(program.resolve())
            return ""
        if match["file"] is None:
            hint = 'write .include "other.dl"'
            raise UsageError("PARALAGG_NO_PROGRAM", f"an .include of {program} names no file", hint=hint)
        file = program.parent / match["file"]
        return "" if file.resolve() in once else _with_includes(_read(file), file, once, depth + 1)

    return _INCLUDE.sub(include, source)


def _preprocessed(program: Path) -> str:
    _read(program)  # the errors of an unreadable file are the same without cpp
    if shutil.which(_COMMAND[0]) is None:
        hint = "install it, for example with the package cpp or gcc"
        raise UsageError("PARALAGG_NO_PROGRAM", "the C preprocessor `cpp` is not installed", place="--cpp", hint=hint)
    done = subprocess.run([*_COMMAND, str(program)], capture_output=True, text=True, check=False)  # noqa: S603 - the user's own program
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UsageError("PARALAGG_NO_PROGRAM", f"cpp fails: {lines[0]}", value=str(program))
    return done.stdout
