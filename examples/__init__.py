"""Demos on real data: `python -m examples.roads`, `python -m examples.taxonomy`.

Each demo is one file that reads from top to bottom: read the data, the recursion (about ten lines), tables, a picture.
`data` fetches and caches the data, `plots` draws; neither knows of recursion.
"""
