"""Maintain a stored recursion after inserts and deletes in its sources, whatever stores it: ``ra.maintain``.

program       base and step, analysed once over references to the sources, and what blocks their maintenance
net           inserted and deleted rows of a source, reduced to their difference
over_delete   the stored rows that may have lost their support
continuation  delete, derive again, go on from the rows that stay
maintain      the API over DataFrames; ``delta`` calls the same continuation with change feeds
rows          rows that several queries read
"""
