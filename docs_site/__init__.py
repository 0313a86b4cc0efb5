"""What the documentation's site adds to the pages of ``docs/``: the reference, made from the code when it is built.

``mkdocs`` calls ``hooks``, which asks each ``*_page`` module for its Markdown and ``notebook_pages`` for the examples'
notebooks; ``docstrings`` is mkdocstrings' way to ours. Nothing here is installed with the package.
"""
