"""Codes for Datalog texts. Most of them come with line, column and the line itself."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

DATALOG = (
    ErrorCode(
        "PARALAGG_DATALOG_SYNTAX",
        "DatalogError",
        cause="The text is not well formed. The message says what is expected at the marked place.",
        remedy="Follow the hint.",
        example="""
            .decl p(x: number)
            p(1)
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_UNSUPPORTED",
        "DatalogError",
        cause="The text uses a feature of Soufflé that this package does not support, such as counters or annotations.",
        remedy="Use the alternative that the message names.",
        example="""
            p($, x) :- q(x).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_COMPONENT",
        "DatalogError",
        cause="A component does not exist, has the wrong number of parameters, or contains or inherits itself. "
        "Or it overrides a relation that no base declares as `overridable`.",
        remedy="Follow the hint.",
        example="""
            .comp Graph<N> { .decl edge(x: N, y: N) }
            .init g = Graph
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_STRUCTURE",
        "DatalogError",
        cause="The type of a record or of a branch is unknown, or the number of its fields is wrong. "
        "Or a field of a value is `_`.",
        remedy="Use the structure as an argument of a declared relation, or name its type: `as([1, nil], List)`.",
        example="""
            .type List = [head: number, tail: List]
            .decl p(x: List)
            p([1]).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_KEPT_ROWS",
        "DatalogError",
        cause="A subsumption compares rows of two relations, or a `choice-domain` names an unknown column. "
        "Or a relation that keeps some of its rows is an input.",
        remedy="Compare rows of one relation; give the input another name and derive the relation from it.",
        example="""
            .decl p(x: number, y: number) choice-domain z
            p(1, 2).
        """,
    ),
    ErrorCode(
        "PARALAGG_UNKNOWN_RELATION",
        "DatalogError",
        cause="A text reads a relation that has no rule, no declaration and no input. "
        "Looking up an unknown name in the result of `ra.datalog` raises the same error.",
        remedy="Correct the name, declare the relation, or pass its DataFrame to `ra.datalog`.",
        example="""
            .decl edge(x: number, y: number)
            p(x) :- egde(x, _).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_INPUT",
        "UsageError",
        cause="The DataFrames passed to `ra.datalog`, or the files of `paralagg run`, do not match the text. "
        "One is missing, the text does not mention it, or its columns differ in number or type.",
        remedy="Pass one DataFrame for each `.input`; select and cast its columns to those of the declaration.",
        example="""
            text = ".decl edge(x: number, y: number)\\n.input edge\\np(x) :- edge(x, _)."
            ra.datalog(spark, text, edge=spark.sql("SELECT 'a' AS x, 'b' AS y"))
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_ARITY",
        "DatalogError",
        cause="An atom, a functor, an aggregate or `range` has the wrong number of arguments.",
        remedy="Write every argument, and `_` for an unused value.",
        example="""
            .decl edge(x: number, y: number)
            p(x) :- edge(x).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_DECLARED_TWICE",
        "DatalogError",
        cause="The text declares a relation twice, or a declaration has two columns of one name.",
        remedy="Remove or rename one of them.",
        example="""
            .decl edge(x: number, y: number)
            .decl edge(x: number)
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_TYPE",
        "DatalogError",
        cause="Types do not match: two uses of a column or both sides of an operation differ, a type is unknown, "
        "or nothing determines the type of a column.",
        remedy="Declare the relation with `.decl`, or convert with `to_number`, `to_string` or `to_float`.",
        example="""
            .decl edge(x: number, y: number)
            p(x) :- edge(x, y), y = "a".
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_NUMBER",
        "DatalogError",
        cause="A number in the text does not fit into 64 bits with a sign.",
        remedy="Use a smaller number, or a float.",
        example="""
            .decl edge(x: number, y: number)
            p(x) :- edge(x, _), x < 9223372036854775808.
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_UNSIGNED",
        "DatalogError",
        cause="A value of type `unsigned` is negative or above 2^63-1, in the text or at run time. "
        "A text that adds or multiplies unsigned numbers needs ANSI mode.",
        remedy="Use `number` or `float`. Set `spark.sql.ansi.enabled=true` if the message asks for it.",
        example="""
            .decl edge(x: unsigned, y: unsigned)
            p(x) :- edge(x, _), x > -1u.
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_UNBOUND",
        "DatalogError",
        cause="A rule uses a variable that no positive atom and no equation of its body binds. "
        "The variable of a body aggregate has no value outside of the aggregate.",
        remedy="Add an atom with the variable, or an equation that defines it.",
        example="""
            .decl edge(x: number, y: number)
            p(x, z) :- edge(x, _).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_UNSAFE_NEGATION",
        "DatalogError",
        cause="A variable occurs in a negated atom, but no positive atom binds it.",
        remedy="Write `_` if any value may match, or add an atom that binds the variable.",
        example="""
            .decl edge(x: number, y: number)
            p(x) :- edge(x, _), !edge(y, x).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_AGGREGATE",
        "DatalogError",
        cause="Rules of one relation aggregate a column by different aggregates, or one gives a column of `$MIN_BY` "
        "without its order. `$MIN(x)` in a body raises the same error.",
        remedy="Use one aggregate for a column in all rules. In a body write `v = min x : { ... }`.",
        example="""
            .decl edge(x: number, y: number)
            p(x, $MIN(y)) :- edge(x, y).
            p(x, $MAX(y)) :- edge(x, y).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_FUNCTOR",
        "DatalogError",
        cause="A term calls a functor that does not exist, or a functor `@f` that the text does not declare.",
        remedy="Correct the name; docs/datalog.md lists all functors. "
        "Declare your own: `.functor f(x: number): number`.",
        example="""
            .decl edge(x: number, y: number)
            p(sqare(x)) :- edge(x, _).
        """,
    ),
    ErrorCode(
        "PARALAGG_FUNCTOR_MISSING",
        "DatalogError",
        cause="A declared functor has no Python function, or a function has no declaration in the text.",
        remedy="Pass a function for each `.functor`: `functors={...}` of `ra.datalog`, `--functors` of `paralagg run`.",
        example="""
            .functor f(x: number): number
            p(@f(1)).
        """,
    ),
    ErrorCode(
        "PARALAGG_FUNCTOR_FILE",
        "UsageError",
        cause="The file of `--functors` does not exist, is no Python file, or raises an error when it is loaded.",
        remedy="Correct the path or the file. Names that are no functors of the program do no harm there.",
        tested_by="tests/test_functors.py::test_wrong_files_of_functors",
    ),
    ErrorCode(
        "PARALAGG_FUNCTOR_FAILED",
        "FixpointError",
        cause="The Python function of a functor raised an error. The message has the arguments of such a row.",
        remedy="Make the function accept every value of its types. It may be called for rows that a rule drops later.",
        example="""
            text = ".functor f(x: number): number p(@f(0))."
            ra.datalog(spark, text, functors={"f": lambda x: [7 // n for n in x.tolist()]})["p"].collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_FUNCTOR_RESULT",
        "FixpointError",
        cause="The Python function of a functor returned another number of values, a value of another type, or None.",
        remedy="Return one value of the declared type for each row, as an array or a list.",
        example="""
            text = ".functor f(x: number): number p(@f(0))."
            ra.datalog(spark, text, functors={"f": lambda x: ["zero"]})["p"].collect()
        """,
    ),
    ErrorCode(
        "PARALAGG_FUNCTOR_BACKEND",
        "UnsupportedError",
        cause="The requested executor cannot call the Python function of a functor on rows of a recursion.",
        remedy="Use `auto` or `dataframe`, or `paralagg run` with `local` or `mpi`. "
        "Or call the functor in a rule that does not recurse.",
        example="""
            text = ".functor f(x: number): number p(1). p(@f(x)) :- p(x), x < 9."
            ra.datalog(spark, text, backend="spark", functors={"f": lambda x: x + 1})["p"]
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_INDEX",
        "DatalogError",
        cause="A rule uses the iteration index of an indexed relation. "
        "Such a relation keeps the rows of its last iteration only.",
        remedy="Replace the index by a variable that occurs nowhere else in the rule.",
        example="""
            .decl edge(x: number, y: number)
            r(0, x, 1) :- edge(x, _).
            r(i + 1, x, $SUM(v)) :- r(i, x, v).
            p(i) :- r(i, _, _).
        """,
    ),
    ErrorCode(
        "PARALAGG_DATALOG_PATTERN",
        "DatalogError",
        cause="The first argument of `match` is not a valid regular expression. If the program computes the pattern, "
        "the run raises `FixpointError` with this code.",
        remedy="Close each bracket, and write a backslash before each special character.",
        example="""
            .decl name(s: symbol)
            p(s) :- name(s), match("a(", s).
        """,
    ),
)
