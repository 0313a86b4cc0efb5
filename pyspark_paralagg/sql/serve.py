"""Run the loop of the compiler's process: read a line of JSON, write a line of JSON, until the input ends.

An error in a program is an ordinary answer. A bug ends the process with its traceback on standard error, which the JVM
shows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem, ParalaggError
from pyspark_paralagg.sql.answer import HeadError, answer, located
from pyspark_paralagg.version import VERSION

if TYPE_CHECKING:
    from typing import TextIO


def serve(questions: TextIO, answers: TextIO) -> None:
    """Answer each line of ``questions`` by one line of ``answers``, with the question's ``id`` if it has one."""
    for line in questions:
        question = json.loads(line)
        number = {"id": question.pop("id")} if "id" in question else {}
        answers.write(json.dumps({**_answer_or_error(question), **number}) + "\n")
        answers.flush()


def _answer_or_error(question: dict[str, Any]) -> dict[str, Any]:
    try:
        if question["version"] != VERSION:
            raise EnvironmentProblem(
                "PARALAGG_SHIM_MISMATCH",
                f"the JVM has the shim of pyspark-paralagg {question['version']}, but this Python has {VERSION}",
                value=VERSION,
                hint="set spark.paralagg.python to the Python that started the session",
            )
        return answer(question)
    except HeadError as problem:
        return _error(problem.cause, {"relation": problem.relation or question["name"], "column": problem.column})
    except ParalaggError as problem:
        return _error(problem, located(problem, question))


def _error(problem: ParalaggError, place: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": problem.code, "message": problem.message, "hint": problem.hint, **place}}
