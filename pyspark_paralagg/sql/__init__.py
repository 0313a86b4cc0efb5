"""Compile recursive queries in SQL: the JVM sends requests to this package while Spark analyses a ``WITH RECURSIVE``.

    jvm_shim  sql/RecursionParser   removes from the text what Spark's own parser does not support
              sql/ResolveRecursion  resolves names and types during Spark's analysis
              sql/PythonCompiler    sends each question as a line of JSON to one long-lived process
    sql       serve                 the loop of that process
              answer                question -> answer: the types of a relation, or the Plan of a recursion

``docs/guide/sql.md`` describes it for users.
"""
