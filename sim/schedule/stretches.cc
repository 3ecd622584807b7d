#include "sim/schedule/stretches.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "sim/base/error.h"

namespace rehearse {
namespace {

bool IsSameWork(const Compute& a, const Compute& b) {
  return a.kind == b.kind && a.kernel == b.kernel && a.dtype == b.dtype && a.gemm.m == b.gemm.m &&
         a.gemm.n == b.gemm.n && a.gemm.k == b.gemm.k && a.gemm.mode == b.gemm.mode &&
         a.gemm.batch == b.gemm.batch && a.tuned == b.tuned && a.row_parts == b.row_parts &&
         a.column_parts == b.column_parts && a.attention == b.attention &&
         a.duration == b.duration && a.flops == b.flops && a.bytes == b.bytes &&
         a.kernels == b.kernels && a.strided == b.strided && a.strided_bytes == b.strided_bytes;
}

bool IsSameWork(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.communicator == b.communicator && a.bytes == b.bytes &&
         a.dtype == b.dtype && a.algorithm == b.algorithm && a.protocol == b.protocol &&
         a.root == b.root && a.pair_bytes == b.pair_bytes && a.rank_share == b.rank_share &&
         a.machine_share == b.machine_share && a.copied == b.copied;
}

// Messages to another stage.
bool IsSameWork(const Send& /*a*/, const Send& /*b*/) { return false; }
bool IsSameWork(const Receive& /*a*/, const Receive& /*b*/) { return false; }

// Whether op `i` does what the one `size` places before it does, for the next layer.
bool Continues(const Role& role, uint32_t i, uint32_t size, int32_t layers_on) {
  const Op& op = role.ops[i];
  const Op& before = role.ops[i - size];
  return op.tag.layer - before.tag.layer == layers_on && op.tag.layer >= 0 &&
         before.tag.layer >= 0 && op.tag.phase == before.tag.phase &&
         op.tag.micro_batch == before.tag.micro_batch && op.stream == before.stream &&
         op.name == before.name && op.reads.size() == before.reads.size() &&
         op.writes.size() == before.writes.size() && op.work.index() == before.work.index() &&
         std::visit(
             [&](const auto& work) {
               return IsSameWork(work, std::get<std::decay_t<decltype(work)>>(before.work));
             },
             op.work);
}

}  // namespace

std::optional<std::vector<Stretch>> FindStretches(const Role& role, int32_t layer) {
  if (!role.repeats.empty()) return std::nullopt;
  const auto count = static_cast<uint32_t>(role.ops.size());
  // Where an op was met last, by phase, micro-batch and name: its place and layer.
  using Key = std::tuple<Phase, int32_t, std::string_view>;
  std::map<Key, std::pair<uint32_t, int32_t>> met;
  std::vector<Stretch> stretches;
  const auto ops_of_layer = static_cast<uint32_t>(std::count_if(
      role.ops.begin(), role.ops.end(), [&](const Op& op) { return op.tag.layer == layer; }));
  uint32_t after = 0;  // the last stretch
  for (uint32_t i = 0; i < count; ++i) {
    const Op& op = role.ops[i];
    const auto [last, is_new] =
        met.try_emplace({op.tag.phase, op.tag.micro_batch, op.name}, std::pair(i, op.tag.layer));
    if (is_new) continue;
    const auto [place, layer_before] = std::exchange(last->second, {i, op.tag.layer});
    const int32_t layers_on = op.tag.layer - layer_before;
    if (i < after || (layers_on != 1 && layers_on != -1) || place < after) continue;
    const uint32_t size = i - place;
    uint32_t end = i;
    while (end < count && Continues(role, end, size, layers_on)) ++end;
    const uint32_t bodies = (end - place) / size;
    if (bodies < 3) continue;
    stretches.push_back({place, size, bodies});
    after = place + bodies * size;
    i = after - size - 1;  // the last body has the same ops as those before it
  }
  uint32_t ops = 0;
  for (const Stretch& stretch : stretches) ops += stretch.size;
  if (stretches.empty() || ops != ops_of_layer) return std::nullopt;
  return stretches;
}

std::optional<MemoryUse> MemoryOfLonger(const Role& role, const std::vector<Stretch>& stretches,
                                        uint32_t more) {
  const MemoryChanges changes = MemoryChangesOf(role);
  CHECK(changes.kept.host == Bytes(0));  // few layers do not show what is offloaded
  // What lives before each op, as the role is.
  std::vector<MemoryChange> before(role.ops.size() + 1);
  for (size_t op = 0; op < role.ops.size(); ++op) {
    before[op + 1].activations =
        before[op].activations + changes.gained[op].activations - changes.lost[op].activations;
    before[op + 1].buffers =
        before[op].buffers + changes.gained[op].buffers - changes.lost[op].buffers;
  }
  const auto gain = [&](uint32_t from, uint32_t to) {
    MemoryChange change;
    change.activations = before[to].activations - before[from].activations;
    change.buffers = before[to].buffers - before[from].buffers;
    return change;
  };
  MemoryUse use = changes.kept;
  MemoryChange in_addition;
  auto stretch = stretches.begin();
  for (uint32_t op = 0; op < role.ops.size(); ++op) {
    if (stretch != stretches.end() && op == stretch->BeginOf(stretch->bodies / 2 + 1)) {
      const MemoryChange own = gain(op - stretch->size, op);
      for (const MemoryChange& other :
           {gain(op - 2 * stretch->size, op - stretch->size), gain(op, op + stretch->size)})
        if (other.activations != own.activations || other.buffers != own.buffers)
          return std::nullopt;
      in_addition.activations += static_cast<double>(more) * own.activations;
      in_addition.buffers += static_cast<double>(more) * own.buffers;
      ++stretch;
    }
    const Bytes activations =
        before[op].activations + changes.gained[op].activations + in_addition.activations;
    const Bytes buffers = before[op].buffers + changes.gained[op].buffers + in_addition.buffers;
    if (activations + buffers > use.activations + use.buffers) {
      use.activations = activations;
      use.buffers = buffers;
    }
  }
  if (stretch != stretches.end() || in_addition.activations != Bytes(0) ||
      in_addition.buffers != Bytes(0))
    return std::nullopt;
  return use;
}

}  // namespace rehearse
