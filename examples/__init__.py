"""Examples on real or realistic data: `python -m examples.roads`, `make example NAME=lineage`; README.md lists them.

Each is one file that reads from top to bottom: the data, the recursion (about ten lines), what is printed, a picture.
`stage` gives the session, `data` fetches and caches, `plots` and what stands on it draws; none of them knows of
recursion.
"""
