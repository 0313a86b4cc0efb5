"""Twelve everyday questions, each answered in ten to twenty lines: ``answer(spark)`` returns the rows of ``ROWS``.

``python -m examples.tasks word_ladder`` runs one of them; README.md lists them.
"""
