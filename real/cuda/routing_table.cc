#include "real/cuda/routing_table.h"

#include <optional>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/expert_routing.h"

namespace rehearse {
namespace {

// Says which operand has a row for each token.
std::optional<size_t> TokensOf(Kernel kernel, size_t reads) {
  switch (kernel) {
    case Kernel::kRoute:
    case Kernel::kRouteBackward:
    case Kernel::kPermuteBackward:
    case Kernel::kCombine:
      return reads;  // the first write
    case Kernel::kPermute:
    case Kernel::kCombineBackward:
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<double> RoutingTable(const Compute& compute, std::span<const GpuOperand> operands,
                                 size_t reads) {
  const std::optional<size_t> tokens_at = TokensOf(compute.kernel, reads);
  if (!tokens_at) return {};
  const GpuOperand& tokens = operands[*tokens_at];
  const ExpertRouting routing = MakeRouting(compute.attributes);
  for (uint64_t i = 0; i < tokens.rows; ++i) {
    if (tokens.rows % routing.period == 0 && tokens.RowOf(i) % routing.period == i % routing.period)
      continue;
    throw Error(
        fmt::format("a {} of {} tokens that are not whole runs of {} tokens, as GPU kernels need "
                    "them; expected \"--backend cpu\"",
                    Name(compute.kernel), tokens.rows, routing.period));
  }
  std::vector<double> table = {static_cast<double>(routing.period)};
  uint64_t before = 0;
  for (const uint64_t load : routing.loads) {
    table.push_back(static_cast<double>(before));
    before += load;
  }
  table.push_back(static_cast<double>(before));
  std::vector<uint64_t> asked(routing.experts);
  for (const int32_t expert : routing.asked) ++asked[static_cast<size_t>(expert)];
  for (const uint64_t count : asked)
    table.push_back(static_cast<double>(count) / static_cast<double>(routing.asked.size()));
  std::vector<uint64_t> next(routing.experts);
  for (size_t i = 0; i < routing.asked.size(); ++i) {
    const auto expert = static_cast<size_t>(routing.asked[i]);
    const bool is_dropped = routing.choices[i] == ExpertRouting::kDropped;
    table.push_back(static_cast<double>(expert));
    table.push_back(is_dropped ? -1 : static_cast<double>(next[expert]++));
  }
  return table;
}

}  // namespace rehearse
