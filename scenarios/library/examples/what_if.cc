// What would twice as many NICs bring? Simulates the scenario as it is, and with changed values.
//
//   c++ -std=c++17 what_if.cc $(pkg-config --cflags --libs rehearse) -o what_if
//   ./what_if scenarios/llama-70b-fat-tree.json cluster.node.nics=8
#include <cstdio>
#include <string>
#include <vector>

#include <rehearse/rehearse.h>

int main(int count, char** values) {
  if (count < 2) {
    std::fprintf(stderr, "usage: what_if SCENARIO [PATH=VALUE...]\n");
    return 1;
  }
  try {
    const auto before = rehearse::Scenario::FromFile(values[1]);
    const auto after = before.With(std::vector<std::string>(values + 2, values + count));
    const rehearse::Simulation first = rehearse::Simulate(before);
    const rehearse::Simulation second = rehearse::Simulate(after);
    std::printf("before %s %.6f s\n", first.hash().c_str(), first.step_seconds());
    std::printf("after  %s %.6f s\n", second.hash().c_str(), second.step_seconds());
  } catch (const rehearse::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
