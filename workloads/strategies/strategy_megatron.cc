#include "workloads/strategies/strategy_megatron.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint64_t kMillion = 1'000'000;

}  // namespace

// Layouts in the order tensor, data.
Strategy MakeMegatron(const MegatronOptions& options, const Network& network) {
  Strategy strategy{
      .name =
          fmt::format("Megatron-LM, tensor {}{}, data {}", options.tensor,
                      options.sequence_parallel ? " with sequence parallelism" : "", options.data),
      .mesh = DeviceMesh({{"tensor", options.tensor}, {"data", options.data}}),
      .asynchronous_input_gradient = options.overlap_all_reduce,
      .asynchronous_data_gradient = options.overlap_gradients,
      .bucket_elements = options.bucket_elements == 0
                             ? 0
                             : std::max(options.bucket_elements, kMillion * options.data),
      .gathers_beside_forward = options.overlap_parameter_gathers && options.distributed_optimizer,
      .gathers_inputs_again = options.sequence_parallel};
  const Layout whole = {B(), S(0)};
  const Layout columns = {S(1), S(0)};
  const Layout hidden = options.sequence_parallel ? Nested({S(0), S(0)}) : whole;
  RoleLayouts layouts;
  layouts.first = {.x = whole, .w = {S(1), B()}, .rest = columns};
  layouts.second = {.x = columns, .w = {S(0), B()}, .rest = hidden};
  layouts.qkv = layouts.first;
  layouts.table = layouts.second;
  layouts.head = layouts.first;
  strategy.products = LayoutsByRole(network, layouts);
  if (options.distributed_optimizer && options.data > 1) {
    strategy.shard = ShardPolicy{.axes = {kMegatronDataAxis}, .stage = 1};
  }
  return strategy;
}

}  // namespace rehearse
