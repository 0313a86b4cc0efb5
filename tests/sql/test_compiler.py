"""The process that compiles: what it answers, that it starts once and is not asked twice, and how it may fail."""

# ruff: noqa: S603, S608 - the tests' own queries and processes

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from rows import rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.sql.serve import serve
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DECLARE: dict[str, Any] = {
    "op": "declare",
    "version": VERSION,
    "conf": {},
    "name": "t",
    "columns": [["n", "int"], ["d", "int"], ["c", "bigint"], ["p", "string"]],
    "aggs": {
        "p": {"function": "min_by", "argument": "d"},
        "d": {"function": "min"},
        "c": {"function": "count"},
    },
}


def asked(*questions: dict[str, Any]) -> list[dict[str, Any]]:
    answers = io.StringIO()
    serve(io.StringIO("".join(json.dumps(q) + "\n" for q in questions)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_a_line_is_answered_by_a_line_until_the_input_ends() -> None:
    wider = {**DECLARE, "aggs": {"d": {"function": "sum"}}, "columns": [["n", "int"], ["d", "int"]]}
    assert asked(DECLARE, wider) == [{"types": ["int", "int", "bigint", "string"]}, {"types": ["int", "bigint"]}]


def test_an_answer_has_the_number_of_its_question() -> None:
    assert [a["id"] for a in asked({**DECLARE, "id": 7}, {**DECLARE, "id": 9, "version": "0.0.0"})] == [7, 9]


def test_an_error_names_the_column_of_the_head() -> None:
    (wrong,) = asked({**DECLARE, "aggs": {**DECLARE["aggs"], "c": {"function": "sum", "argument": "n"}}})
    assert wrong["error"]["code"] == "PARALAGG_SQL_HEAD_ARGUMENT"
    assert (wrong["error"]["relation"], wrong["error"]["column"]) == ("t", "c")


def test_a_jvm_with_another_shim_is_told() -> None:
    (wrong,) = asked({**DECLARE, "version": "0.0.0"})
    assert wrong["error"]["code"] == "PARALAGG_SHIM_MISMATCH"
    assert "spark.paralagg.python" in wrong["error"]["hint"]


def counted(spark: SparkSession) -> tuple[int, int]:
    """How many processes were started, and questions asked of them."""
    counters = spark._jvm.org.apache.spark.sql.paralagg.sql.CompilerProcess  # type: ignore[union-attr]
    return counters.started(), counters.asked()


def test_one_process_serves_the_session_and_no_plan_is_asked_for_twice(spark: SparkSession) -> None:
    text = "WITH RECURSIVE t(n, max() AS d) AS (SELECT 1, 1 UNION SELECT n + 1, d FROM t WHERE n < 14) SELECT {} FROM t"
    assert spark.sql(text.format("*")).count() == 14
    started, questions = counted(spark)
    assert started >= 1
    for columns in ("*", "n", "max(d), count(n)"):
        spark.sql(text.format(columns)).collect()
    assert counted(spark) == (started, questions)
    spark.sql(text.replace("14", "15").format("*")).collect()
    assert counted(spark) == (started, questions + 1)


def test_several_queries_at_once(spark: SparkSession) -> None:
    found: dict[int, int] = {}

    def query(n: int) -> None:
        text = f"WITH RECURSIVE t(x) AS (SELECT 1 UNION SELECT x + 1 FROM t WHERE x < {n}) SELECT * FROM t"
        found[n] = len(rows_of(spark.sql(text)))

    threads = [threading.Thread(target=query, args=(n,)) for n in range(20, 26)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n for n in range(20, 26)}


@pytest.fixture
def python(spark: SparkSession, tmp_path: Path) -> Any:  # noqa: ANN401 - a function
    """Makes a script the session's Python."""
    before = spark.conf.get("spark.paralagg.python")

    def use(script: str) -> None:
        file = tmp_path / "python"
        file.write_text("#!/bin/sh\n" + script)
        file.chmod(0o755)
        ra.attach(spark, {"spark.paralagg.python": str(file)})

    yield use
    ra.attach(spark, {"spark.paralagg.python": str(before)})


def new_query(spark: SparkSession, n: int) -> list[Any]:
    """One that nobody has asked for before."""
    return rows_of(
        spark.sql(f"WITH RECURSIVE t(k{n}) AS (SELECT 1 UNION SELECT k{n} + 1 FROM t WHERE k{n} < 3) TABLE t")
    )


def test_a_python_that_is_not_there(spark: SparkSession) -> None:
    before = spark.conf.get("spark.paralagg.python")
    ra.attach(spark, {"spark.paralagg.python": "/nowhere/python"})
    try:
        with pytest.raises(PySparkException, match=r"PARALAGG_SQL_COMPILER.*does not start") as caught:
            new_query(spark, 1)
    finally:
        ra.attach(spark, {"spark.paralagg.python": str(before)})
    assert "spark.paralagg.python set to a Python that has pyspark-paralagg" in str(caught.value)


def test_a_python_that_dies_is_quoted_and_the_next_query_starts_another(
    spark: SparkSession,
    python: Any,  # noqa: ANN401 - a function
    tmp_path: Path,
) -> None:
    once = tmp_path / "once"
    python(
        f"if [ ! -e {once} ]; then touch {once}; echo 'no module: nothing' >&2; exit 3; fi\nexec {sys.executable} $*"
    )
    with pytest.raises(PySparkException, match="PARALAGG_SQL_COMPILER") as caught:
        new_query(spark, 2)
    assert "has ended; its output:\nno module: nothing" in str(caught.value)
    assert len(new_query(spark, 2)) == 3


@pytest.mark.parametrize(
    ("stray", "reason"),
    [
        ("welcome", "has sent a line that is not JSON (welcome)"),
        ('{"types": ["int"]}', 'has answered another request ({"types": ["int"]})'),
    ],
)
def test_a_stray_line_is_no_answer(
    spark: SparkSession,
    python: Any,  # noqa: ANN401 - a function
    tmp_path: Path,
    stray: str,
    reason: str,
) -> None:
    once = tmp_path / "once"
    python(f"if [ ! -e {once} ]; then touch {once}; echo '{stray}'; fi\nexec {sys.executable} $*")
    with pytest.raises(PySparkException, match="PARALAGG_SQL_COMPILER") as caught:
        new_query(spark, len(stray))
    assert reason in str(caught.value)
    assert len(new_query(spark, len(stray))) == 3


def test_a_cancelled_query_leaves_neither_its_answer_nor_its_python_behind(
    spark: SparkSession,
    python: Any,  # noqa: ANN401 - a function
    tmp_path: Path,
) -> None:
    """The first waits for an answer, the second for the first; each ends when its thread is interrupted."""
    once = tmp_path / "once"
    python(f"if [ ! -e {once} ]; then touch {once}; exec sleep 100; fi\nexec {sys.executable} $*")
    ended: dict[int, str] = {}

    def query(n: int) -> None:
        try:
            new_query(spark, n)
        except Exception as problem:  # noqa: BLE001 - whatever it is called
            ended[n] = str(problem)

    def waiting(what: str) -> Any:  # noqa: ANN401 - a Java object
        """The thread of the JVM that waits in this method of the compiler's process."""
        jvm: Any = spark._jvm
        for _ in range(200):
            for thread in jvm.Thread.getAllStackTraces().keySet():
                stack = " ".join(frame.toString() for frame in thread.getStackTrace()[:16])
                if "CompilerProcess.answer" in stack and what in stack:
                    return thread
            time.sleep(0.1)
        pytest.fail(f"nobody waits in {what}")

    first, second = (threading.Thread(target=query, args=(n,), daemon=True) for n in (31, 32))
    first.start()
    asking = waiting("CompletableFuture")
    second.start()
    waiting("ReentrantLock").interrupt()
    second.join(10)
    assert list(ended) == [32]
    asking.interrupt()
    first.join(10)
    assert sorted(ended) == [31, 32]
    assert all("InterruptedException" in said for said in ended.values())
    assert len(new_query(spark, 31)) == 3


def test_what_one_python_has_answered_another_is_asked(spark: SparkSession) -> None:
    before = spark.conf.get("spark.paralagg.python")
    assert len(new_query(spark, 3)) == 3
    ra.attach(spark, {"spark.paralagg.python": "/nowhere/python"})
    try:
        with pytest.raises(PySparkException, match="PARALAGG_SQL_COMPILER"):
            new_query(spark, 3)
    finally:
        ra.attach(spark, {"spark.paralagg.python": str(before)})


def test_a_python_of_another_version_is_asked_no_more(
    spark: SparkSession,
    python: Any,  # noqa: ANN401 - a function
    tmp_path: Path,
) -> None:
    once = tmp_path / "once"
    other = "import runpy; from pyspark_paralagg import version; version.VERSION = '0.0.0'; "
    other += "runpy.run_module('pyspark_paralagg.sql', run_name='__main__')"
    python(f'if [ ! -e {once} ]; then touch {once}; exec {sys.executable} -c "{other}"; fi\nexec {sys.executable} $*')
    with pytest.raises(PySparkException, match="PARALAGG_SHIM_MISMATCH"):
        new_query(spark, 4)
    assert len(new_query(spark, 4)) == 3


def test_the_compiler_ends_with_its_input() -> None:
    """Nothing of it stays behind when the JVM goes."""
    process = subprocess.run(
        [sys.executable, "-m", "pyspark_paralagg.sql"],
        input=json.dumps(DECLARE) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(process.stdout) == {"types": ["int", "int", "bigint", "string"]}
    assert process.stderr == ""


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_names_are_utf_8_whatever_the_locale_says() -> None:
    question = {
        **DECLARE,
        "columns": [["n", "int"], ["größe", "int"]],
        "aggs": {"größe": {"function": "sum", "argument": "n"}},
    }
    process = subprocess.run(
        [sys.executable, "-m", "pyspark_paralagg.sql"],
        input=(json.dumps(question, ensure_ascii=False) + "\n").encode(),
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, **C_LOCALE},
    )
    error = json.loads(process.stdout.decode())["error"]
    assert (error["code"], error["column"]) == ("PARALAGG_SQL_HEAD_ARGUMENT", "größe")


def test_columns_of_a_query_are_utf_8_whatever_the_locale_says(spark: SparkSession, python: Any) -> None:  # noqa: ANN401 - a function
    python(f"export {' '.join(f'{k}={v}' for k, v in C_LOCALE.items())}\nexec {sys.executable} $*")
    found = spark.sql(
        "WITH RECURSIVE t(`größe`) AS (SELECT 1 UNION SELECT `größe` + 1 FROM t WHERE `größe` < 3) TABLE t"
    )
    assert found.columns == ["größe"]
    assert sorted(rows_of(found)) == [(1,), (2,), (3,)]


def test_only_answers_go_to_standard_output() -> None:
    """Neither what is printed meanwhile, nor what a process that was started writes."""
    code = """
import os, runpy
import pyspark_paralagg.sql.serve as s
compiled = s.answer
def answer(question):
    print("printed")
    os.system("echo started")
    return compiled(question)
s.answer = answer
runpy.run_module("pyspark_paralagg.sql", run_name="__main__")
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({**DECLARE, "id": 1}) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (line,) = process.stdout.splitlines()
    assert json.loads(line) == {"types": ["int", "int", "bigint", "string"], "id": 1}
    assert sorted(process.stderr.split()) == ["printed", "started"]


def test_the_compiler_needs_neither_pyspark_nor_z3_to_start() -> None:
    code = (
        "import sys, pyspark_paralagg.sql.serve; print({'pyspark', 'z3', 'pandas', 'numpy', 'lark'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
