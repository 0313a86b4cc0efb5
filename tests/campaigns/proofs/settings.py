"""Types, their values, and the settings of the session under which expressions are evaluated."""
# ruff: noqa: E501  (tables of values and functions)

from __future__ import annotations

SETTINGS = (
    (True, "UTC"),
    (False, "UTC"),
    (True, "America/New_York"),
    (False, "America/New_York"),
    (True, "America/St_Johns"),
    (True, "+05:30"),
)

# As SQL, in Spark's order; NULL comes first by itself.
_INTEGERS = {
    "tinyint": (-128, -7, -1, 0, 1, 2, 100, 127),
    "smallint": (-32768, -300, -1, 0, 1, 3, 200, 32767),
    "int": (-2147483648, -50000, -2, -1, 0, 1, 2, 5, 40000, 2147483647),
    "bigint": ("-9223372036854775807 - 1", -3000000000, -2, -1, 0, 1, 2, 7, 3000000000, 9223372036854775807),
}
_FLOATS = (
    "'-Infinity'", "'-1.7e38'", -2.5, -1, "'-1e-40'", 0, "'1e-40'", 0.5, 1, 2.5, 16777217, "'1.7e38'", "'Infinity'",
    "'NaN'",
)  # fmt: skip
_DOUBLES = (
    "'-Infinity'", "'-1.7976931348623157e308'", -2.5, -1, -0.5, "'-4.9e-324'", 0, "'4.9e-324'", 0.5, 1, 2.5, "'1e17'",
    "'1.7976931348623157e308'", "'Infinity'", "'NaN'",
)  # fmt: skip

GRID: dict[str, tuple[str, ...]] = {
    **{t: tuple(f"cast({v} as {t})" for v in vs) for t, vs in _INTEGERS.items()},
    "float": tuple(f"cast({v} as float)" for v in _FLOATS),
    "double": tuple(f"cast({v} as double)" for v in _DOUBLES),
    "decimal(10,2)": tuple(
        f"cast({v} as decimal(10,2))" for v in (-99999999.99, -2.5, -0.01, 0, 0.01, 0.5, 1, 3.33, 99999999.99)
    ),
    "decimal(18,6)": tuple(
        f"cast('{v}' as decimal(18,6))" for v in ("-999999999999.999999", -1, "-0.000001", 0, "0.000001", 1, "999999999999.999999")
    ),
    "string": tuple(f"'{v}'" for v in ("", "A", "a", "a b", "ab", "b", "é", "éa", "日")),
    "date": tuple(
        f"date'{v}'" for v in (
            "0001-01-01", "1969-12-31", "1970-01-01", "1999-12-31", "2000-01-01", "2024-01-30", "2024-01-31", "2024-02-29",
            "2024-03-31", "2024-11-03", "9999-12-31",
        )
    ),
    "timestamp": tuple(
        f"timestamp'{v}Z'"
        for v in (
            "0001-01-02 00:00:00", "1970-01-01 00:00:00", "2006-10-29 02:30:30", "2006-10-29 02:31:30",
            "2024-01-30 18:00:00", "2024-01-31 06:00:00", "2024-03-10 06:59:59.999999", "2024-03-10 07:00:00", "2024-11-03 05:30:00", "2024-11-03 05:59:59", "2024-11-03 06:00:00", "2024-11-03 06:30:00", "9999-12-30 00:00:00",
        )
    ),
    "timestamp_ntz": tuple(
        f"timestamp_ntz'{v}'"
        for v in (
            "0001-01-02 00:00:00", "1970-01-01 00:00:00", "2024-03-10 01:59:59", "2024-03-10 02:30:00", "2024-03-10 03:00:00",
            "2024-11-03 01:30:00", "2024-11-03 02:00:00", "9999-12-30 00:00:00",
        )
    ),
    "interval day to second": tuple(
        f"interval '{v}' day to second" for v in ("-400 00:00:00", "-1 00:00:00", "-0 01:00:00", "0 00:00:00", "0 12:00:00", "1 00:00:00", "31 05:00:00")
    ),
    "boolean": ("false", "true"),
}  # fmt: skip

TYPES = tuple(GRID)


def column(kind: str, type_: str) -> str:
    """The column of a type: ``v_double``, ``w_decimal_10_2``."""
    return f"{kind}_{''.join(c if c.isalnum() else '_' for c in type_).strip('_')}"
