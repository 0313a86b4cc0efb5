"""A thrift server and JDBC clients in one JVM: prints what each statement of a client gives, as JSON.

``python thrift_session.py URL_PART STATEMENT ...``: one client connects with URL_PART behind the address, as if to send
confs; the statements are another client's. The first entry is the error of the former, if it has one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ports import free_port
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import pyspark_paralagg as ra


def main(url_part: str, statements: list[str]) -> None:
    port = free_port()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
    }.items():
        builder.config(key, value)
    spark = ra.configure(builder).getOrCreate()
    jvm = spark._jvm
    server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    server.startWithSparkSession(spark._jsparkSession, False)  # noqa: FBT003 - py4j knows no names of parameters
    url = f"jdbc:hive2://127.0.0.1:{port}/default"
    told = []
    try:
        jvm.java.sql.DriverManager.getConnection(url + url_part, "guest", "").close()
    except Py4JJavaError as problem:
        told.append({"error": str(problem.java_exception.getMessage())})
    line = jvm.java.sql.DriverManager.getConnection(url, "guest", "")
    told += [answer(line, statement) for statement in statements]
    sys.stdout.write("\nTOLD " + json.dumps(told) + "\n")
    line.close()
    spark.stop()


def answer(line: Any, statement: str) -> dict[str, Any]:  # noqa: ANN401 - a py4j object
    """The rows of a statement, or its error."""
    asked = line.createStatement()
    try:
        asked.execute(statement)
        rows, found = asked.getResultSet(), []
        while rows.next():
            found.append([rows.getString(n + 1) for n in range(rows.getMetaData().getColumnCount())])
    except Py4JJavaError as problem:
        return {"error": str(problem.java_exception.getMessage())}
    finally:
        asked.close()
    return {"rows": found}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
