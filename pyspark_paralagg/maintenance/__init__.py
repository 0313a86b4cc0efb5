"""Maintain a stored recursion after inserts and deletes in its sources, whatever stores it: ``ra.maintain``.

recursion     the user's arguments: relations, base and step over references to the sources
template      a plan over references, and what it derives from changed rows of one of its reads
program       base and step, analysed once, and what blocks their maintenance
net           inserted and deleted rows of a source, reduced to their difference
over_delete   the stored rows that may have lost their support
continuation  delete, derive again, go on from the rows that stay
maintain      the API over DataFrames; ``delta`` calls the same continuation with change feeds
rows          rows that several queries read
"""
