"""Benchmarks: the same recursive queries on the same Parquet files, by several systems, results compared.

Read in this order: `generators` (edge arrays) -> `datasets` (named graphs, written once) -> `queries` (what is asked
and what counts as the same answer) -> `systems` (how each system is asked) -> `worker` (one system in its own process)
-> `runner` (takes turns, watches time and memory) -> `table` (Markdown). `python -m benchmarks --help` says how to run
it, README.md what is counted.
"""
