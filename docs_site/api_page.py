"""``reference/api.md``: the public names of ``pyspark_paralagg/__init__.py``, each with its docstring."""

from __future__ import annotations

import inspect

import pyspark_paralagg as ra
from docs_site.docstrings import as_markdown
from docs_site.public_names import NAMES, identifier

_HEAD = """\
# API

```python
import pyspark_paralagg as ra
```

`ra.configure` and `ra.attach` add the method `recursive_agg` to Spark's DataFrames. So does the import under
`spark-submit`, or if pyspark is imported already. `df.recursive_agg(keys, aggs, step=...)` is
`ra.recursive_agg(df, keys, aggs, step=...)`.
"""


def markdown() -> str:
    """A list of all names, then one section a kind of name: mkdocstrings fills in signature and docstring."""
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Modules": [], "Errors": []}
    for name in NAMES:
        kinds[_kind(getattr(ra, name))].append(name)
    kinds["Errors"].sort(key=lambda name: len(getattr(ra, name).__mro__))  # the base class first
    rows = [f"| [`{name}`][{identifier(name)}] | {_summary(name)} |" for names in kinds.values() for name in names]
    sections = [_HEAD, "| name | what it is |\n|---|---|\n" + "\n".join(rows) + "\n"]
    for kind, names in kinds.items():
        if names:
            sections += [f"## {kind}\n", *(f"::: {identifier(name)}\n" for name in names)]
    return "\n".join(sections)


def _kind(value: object) -> str:
    if inspect.ismodule(value):
        return "Modules"
    if not inspect.isclass(value):
        return "Functions"
    return "Errors" if issubclass(value, Exception) else "Classes"


def _summary(name: str) -> str:
    """The first paragraph of the docstring, on one line."""
    text = inspect.getdoc(getattr(ra, name)) or ""
    return " ".join(as_markdown(text.partition("\n\n")[0]).split()).replace("|", "\\|")
