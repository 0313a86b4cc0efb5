"""SQL's side of the compiler: what the JVM asks Python while Spark analyses a ``WITH RECURSIVE``.

    jvm_shim  sql/RecursionParser   the text, with what Spark itself cannot do taken out of it
              sql/ResolveRecursion  names and types, in step with Spark's analysis
              sql/PythonCompiler    one line of JSON a question, to a process that is kept
    here      serve                 the loop of that process
              answer                question -> answer: the types of a relation, or the Plan of a recursion

``docs/guide/sql.md`` is the page for users.
"""
