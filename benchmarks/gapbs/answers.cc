// GAPBS's own functions with a main that prints what the benchmarks compare: seconds, then the checksum.
// Compiled beside GAPBS's sources with -DSSSP, -DCC or -DPR; GAPBS itself is not part of this project.

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>

#define main gapbs_main
#if defined(SSSP)
#include "sssp.cc"
#elif defined(CC)
#include "cc.cc"
#else
#include "pr_double.cc"  // pr_spmv.cc in doubles: systems/gapbs.py writes it
#endif
#undef main

int main(int argc, char* argv[]) {
  Timer timer;
  double seconds = 0;
  std::ostringstream checksum;
#if defined(SSSP)
  CLDelta<WeightT> cli(argc, argv, "sssp");
  if (!cli.ParseArgs()) return 1;
  WeightedBuilder builder(cli);
  WGraph graph = builder.MakeGraph();
  std::istringstream sources(std::getenv("SOURCES"));
  long rows = 0, sum = 0;
  for (NodeID source; sources >> source;) {
    timer.Start();
    pvector<WeightT> found = DeltaStep(graph, source, cli.delta());
    timer.Stop();
    seconds += timer.Seconds();
    for (WeightT distance : found) {
      if (distance == kDistInf) continue;
      ++rows;
      sum += distance;
    }
  }
  checksum << rows << ' ' << sum;
#elif defined(CC)
  CLApp cli(argc, argv, "components");
  if (!cli.ParseArgs()) return 1;
  Builder builder(cli);
  Graph graph = builder.MakeGraph();
  timer.Start();
  pvector<NodeID> found = Afforest(graph);
  timer.Stop();
  seconds = timer.Seconds();
  // Vertices are numbered in the order of their ids: the first of a component names it. Its number goes into a file.
  std::vector<long> least(graph.num_nodes(), -1), labels;
  for (NodeID v = 0; v < graph.num_nodes(); ++v) {
    if (least[found[v]] < 0) least[found[v]] = v;
    labels.push_back(least[found[v]]);
  }
  std::ofstream file(std::getenv("LABELS"), std::ios::binary);
  file.write(reinterpret_cast<const char*>(labels.data()), labels.size() * sizeof(long));
#else
  CLPageRank cli(argc, argv, "pagerank", 0, 0);
  if (!cli.ParseArgs()) return 1;
  Builder builder(cli);
  Graph graph = builder.MakeGraph();
  timer.Start();
  pvector<ScoreT> found = PageRankPull(graph, cli.max_iters(), cli.tolerance());
  timer.Stop();
  seconds = timer.Seconds();
  // GAPBS starts at 1/n and adds 0.15/n: all its ranks are ours divided by n.
  double sum = 0, squares = 0;
  for (ScoreT score : found) {
    const double rank = score * graph.num_nodes();
    sum += rank;
    squares += rank * rank;
  }
  checksum << std::setprecision(17) << graph.num_nodes() << ' ' << sum << ' ' << squares;
#endif
  std::cout << "answer " << seconds << ' ' << checksum.str() << std::endl;
  return 0;
}
