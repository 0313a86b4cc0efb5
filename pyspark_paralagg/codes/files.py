"""Codes for the command ``paralagg run``: its program, its directives, facts and outputs."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

FILES = (
    ErrorCode(
        "PARALAGG_NO_PROGRAM",
        "UsageError",
        cause="The program file cannot be read, or is not UTF-8.",
        remedy="Correct the path, or save the file as UTF-8.",
        tested_by="tests/test_error_codes.py",
    ),
    ErrorCode(
        "PARALAGG_NO_OUTPUT",
        "UsageError",
        cause="The program has no `.output` and no `.printsize`, so the command has no result to write.",
        remedy="Add `.output` and the name of a relation.",
        tested_by="tests/test_cli.py",
    ),
    ErrorCode(
        "PARALAGG_BAD_DIRECTIVE",
        "DatalogError",
        cause="A parameter of `.input` or `.output` is unknown or has a wrong value. "
        "A path that is a folder or not a Delta table raises the same error.",
        remedy="Correct the parameter; the hint lists the valid ones.",
        tested_by="tests/test_facts.py",
    ),
    ErrorCode(
        "PARALAGG_BAD_FACT",
        "DatalogError",
        cause="A value does not match the type of its column: in a fact of the text, or in a line of a facts file. For "
        "a file the class is `UsageError`.",
        remedy="Correct the value, or declare another type for the column. "
        'If the first line of a file has column names, write `headers="true"`.',
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
        cause="A text file has no types, and the program does not declare its relation.",
        remedy="Declare the relation: `.decl edge(x: number, y: number)`.",
        tested_by="tests/test_facts.py",
    ),
    ErrorCode(
        "PARALAGG_INPUT_UNREADABLE",
        "UsageError",
        cause="A file of an `.input` does not have the format of its suffix or directive. "
        "A SQLite database without the table, or whose table has other columns, raises the same error.",
        remedy="Correct the file, or set its format: "
        '`IO="file"`, `IO="parquet"`, `IO="delta"`, `IO="sqlite"` or `IO="jsonfile"`.',
        tested_by="tests/test_cli_standalone.py",
    ),
    ErrorCode(
        "PARALAGG_BAD_OUTPUT",
        "UsageError",
        cause="The command cannot write an output: the target is a folder, not a plain file, not a Delta table, not a "
        "SQLite database or not writable. Two outputs with one target, and a table in the place of a view of SQLite, "
        "raise the same error.",
        remedy="Correct `--out` or the `filename` of the `.output`.",
        tested_by="tests/test_cli.py",
    ),
)
