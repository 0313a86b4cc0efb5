"""Graph algorithms by name, over DataFrames of edges with the columns ``src`` and ``dst``.

>>> ra.graph.connected_components(edges).groupBy("component").count().show()              # doctest: +SKIP
>>> ra.graph.pagerank(g.edges, g.vertices)             # a GraphFrame's DataFrames        # doctest: +SKIP

Each algorithm is a recursion over ``recursive`` or ``recursive_agg`` and a good example of them. Results have a column
``id`` and one named after the value. Arguments have the names of networkx and GraphFrames.
``docs/guide/from-graphframes.md`` compares both with these functions. A module a family:

    edges        the arguments of all: edges, vertices, ids
    paths        shortest_paths, bfs, widest_paths
    reach        reachability, closure
    components   connected_components, strongly_connected_components
    ranks        pagerank, hits
    communities  label_propagation
    triangles    triangle_count, clustering
    cores        k_core
    order        topological_order, bill_of_materials, roll_up

pyspark is not imported before an algorithm is called.
"""

from __future__ import annotations

from pyspark_paralagg.graph.communities import label_propagation
from pyspark_paralagg.graph.components import connected_components, strongly_connected_components
from pyspark_paralagg.graph.cores import k_core
from pyspark_paralagg.graph.order import bill_of_materials, roll_up, topological_order
from pyspark_paralagg.graph.paths import bfs, shortest_paths, widest_paths
from pyspark_paralagg.graph.ranks import hits, pagerank
from pyspark_paralagg.graph.reach import closure, reachability
from pyspark_paralagg.graph.triangles import clustering, triangle_count

__all__ = [
    "bfs",
    "bill_of_materials",
    "closure",
    "clustering",
    "connected_components",
    "hits",
    "k_core",
    "label_propagation",
    "pagerank",
    "reachability",
    "roll_up",
    "shortest_paths",
    "strongly_connected_components",
    "topological_order",
    "triangle_count",
    "widest_paths",
]
