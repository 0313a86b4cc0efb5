"""Codes for the command ``paralagg run``: its program, its directives, facts and outputs."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

FILES = (
    ErrorCode(
        "PARALAGG_NO_PROGRAM",
        "UsageError",
        cause="The file of the program cannot be read, or is not UTF-8.",
        remedy="Correct the path, or save the file as UTF-8.",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_NO_OUTPUT",
        "UsageError",
        cause="The program has no `.output` and no `.printsize`, so the command has nothing to do.",
        remedy="Add `.output` and the name of a relation.",
        tested_by="tests/test_cli.py",
    ),
    ErrorCode(
        "PARALAGG_BAD_DIRECTIVE",
        "DatalogError",
        cause="A parameter of `.input` or `.output` is unknown or has a wrong value. "
        "A file that is a folder or no Delta table is the same error.",
        remedy="Correct the parameter; the hint lists what is known.",
        tested_by="tests/test_facts.py",
    ),
    ErrorCode(
        "PARALAGG_BAD_FACT",
        "DatalogError",
        cause="A value does not fit the type of its column: in a fact of the text, or in a line of a file of facts. "
        "For a file the class is `UsageError`.",
        remedy="Correct the value, or declare the column by another type. "
        'If the first line of a file has names, write `headers="true"`.',
        example="""
            .decl edge(x: number, y: number)
            edge(1, 2.5).
        """,
    ),
    ErrorCode(
        "PARALAGG_INPUT_MISSING",
        "DatalogError",
        cause="The folder of `--facts`, or the file of an `.input` in it, does not exist.",
        remedy='Correct `--facts`, or name the file: `.input edge(filename="edges.csv")`.',
        tested_by="tests/test_facts.py, tests/test_cli.py",
    ),
    ErrorCode(
        "PARALAGG_INPUT_UNDECLARED",
        "DatalogError",
        cause="A text file has no types, and the program does not declare the relation that it belongs to.",
        remedy="Declare the relation: `.decl edge(x: number, y: number)`.",
        tested_by="tests/test_facts.py",
    ),
    ErrorCode(
        "PARALAGG_INPUT_UNREADABLE",
        "UsageError",
        cause="A file of an `.input` is not in the format that its name or its directive says.",
        remedy='Correct the file, or say its format: `IO="file"`, `IO="parquet"` or `IO="delta"`.',
        tested_by="tests/test_cli_standalone.py",
    ),
    ErrorCode(
        "PARALAGG_BAD_OUTPUT",
        "UsageError",
        cause="The command cannot write an output: the target is a folder, no plain file, no Delta table or not "
        "writable, or two outputs go to one file.",
        remedy="Correct `--out` or the `filename` of the `.output`.",
        tested_by="tests/test_cli.py",
    ),
)
