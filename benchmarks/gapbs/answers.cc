// GAPBS's own functions with a main that prints what the benchmarks compare: seconds, then the checksum.
// Compiled beside GAPBS's sources with -DSSSP or -DCC; GAPBS itself is not part of this project.

#include <cstdlib>
#include <fstream>

#define main gapbs_main
#ifdef SSSP
#include "sssp.cc"
#else
#include "cc.cc"
#endif
#undef main

int main(int argc, char* argv[]) {
  Timer timer;
  long rows = 0, sum = 0;
#ifdef SSSP
  CLDelta<WeightT> cli(argc, argv, "sssp");
  if (!cli.ParseArgs()) return 1;
  WeightedBuilder builder(cli);
  WGraph graph = builder.MakeGraph();
  timer.Start();
  pvector<WeightT> found = DeltaStep(graph, cli.start_vertex(), cli.delta());
  timer.Stop();
  for (WeightT distance : found) {
    if (distance == kDistInf) continue;
    ++rows;
    sum += distance;
  }
#else
  CLApp cli(argc, argv, "components");
  if (!cli.ParseArgs()) return 1;
  Builder builder(cli);
  Graph graph = builder.MakeGraph();
  timer.Start();
  pvector<NodeID> found = Afforest(graph);
  timer.Stop();
  // Vertices are numbered in the order of their ids: the first of a component names it. Its number goes into a file.
  std::vector<long> least(graph.num_nodes(), -1), labels;
  for (NodeID v = 0; v < graph.num_nodes(); ++v) {
    if (least[found[v]] < 0) least[found[v]] = v;
    labels.push_back(least[found[v]]);
  }
  std::ofstream file(std::getenv("LABELS"), std::ios::binary);
  file.write(reinterpret_cast<const char*>(labels.data()), labels.size() * sizeof(long));
#endif
  std::cout << "answer " << timer.Seconds() << ' ' << rows << ' ' << sum << std::endl;
  return 0;
}
