// Which collectives cost rank 0 the most time while it computes nothing, from the spans themselves.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/rehearse.h>

int main(int count, char** values) {
  if (count != 2) {
    std::fprintf(stderr, "usage: exposed SCENARIO\n");
    return 1;
  }
  try {
    const auto run = rehearse::Simulate(rehearse::Scenario::FromFile(values[1]));
    // Rank 0's kernels, merged; the part of a transfer outside them is exposed.
    std::vector<std::pair<int64_t, int64_t>> busy;
    for (const rehearse::Span& span : run.spans())
      if (span.rank == 0 && run.ops()[span.op].axis.empty()) busy.push_back({span.begin, span.end});
    std::sort(busy.begin(), busy.end());
    std::map<std::string, int64_t> exposed;
    for (const rehearse::Span& span : run.spans()) {
      const rehearse::Op& op = run.ops()[span.op];
      if (span.rank != 0 || op.axis.empty()) continue;
      int64_t from = span.begin;
      int64_t alone = 0;
      for (const auto& [begin, end] : busy) {
        if (end <= from) continue;
        if (begin >= span.end) break;
        alone += std::max<int64_t>(begin - from, 0);
        from = std::max(from, end);
      }
      exposed[op.axis + " " + op.name] += alone + std::max<int64_t>(span.end - from, 0);
    }
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [name, time] : exposed) order.push_back({-time, name});
    std::sort(order.begin(), order.end());
    for (const auto& [time, name] : order)
      std::printf("%9.3f ms  %s\n", static_cast<double>(-time) / 1e9, name.c_str());
  } catch (const rehearse::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
