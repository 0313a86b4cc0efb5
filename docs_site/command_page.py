"""``reference/command-line.md``: what ``paralagg --help`` says, command by command."""

from __future__ import annotations

import argparse
import os
from unittest import mock

from pyspark_paralagg.command.cli import argument_parser

_HEAD = """\
# Command line

`paralagg`, or `python -m pyspark_paralagg`. [Datalog](../datalog.md) describes the language of programs,
[errors](errors.md) lists their errors.
"""
_WIDTH = "96"


def markdown() -> str:
    """The help of the command itself, then of each of its commands."""
    parser = argument_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 - no other way
    sections = [_HEAD, _shown(parser)]
    sections += [f"## {name}\n\n{_shown(command)}" for name, command in commands.choices.items()]
    return "\n".join(sections)


def _shown(parser: argparse.ArgumentParser) -> str:
    with mock.patch.dict(os.environ, {"COLUMNS": _WIDTH}):  # argparse asks the terminal otherwise
        return f"```text\n{parser.format_help().rstrip()}\n```\n"
