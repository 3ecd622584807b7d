#include "real/backends/initial_state.h"

#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "real/kernels/numbers.h"
#include "real/kernels/parallel_for.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kPoison = std::numeric_limits<double>::quiet_NaN();

// Activations that are read but never written, with the micro-batch that reads them first.
std::map<uint32_t, int32_t> InputsOf(const Role& role) {
  std::vector<bool> is_written(role.buffers.size());
  const auto memory_of = [&](BufferId id) {
    while (role.buffers[id.index()].view) id = role.buffers[id.index()].view->of;
    return id.index();
  };
  for (const Op& op : role.ops) {
    for (const BufferId id : op.writes) is_written[memory_of(id)] = true;
  }
  std::map<uint32_t, int32_t> inputs;
  for (const Op& op : role.ops) {
    for (const BufferId id : op.reads) {
      const uint32_t buffer = memory_of(id);
      if (is_written[buffer] || role.buffers[buffer].kind != BufferKind::kActivation) continue;
      inputs.emplace(buffer, op.tag.micro_batch);
    }
  }
  return inputs;
}

// Calls value(row, column) for every element's position in the global array; padding is zero.
template <typename Value>
void WriteByPosition(const RankPlan& plan, BufferId id, Backend& backend, Value value) {
  const BufferPlan& buffer = plan.buffers[id.index()];
  const Buffer& named = plan.role->buffers[id.index()];
  if (!buffer.place) {
    throw Error(fmt::format(
        "buffer \"{}\" of role \"{}\" has no region, which would say what part of the array it is",
        named.name, plan.role->name));
  }
  if (!buffer.place->flat && buffer.place->count != buffer.elements()) {
    throw Error(fmt::format("buffer \"{}\" of role \"{}\" is {} x {}, but its region has {} x {}",
                            named.name, plan.role->name, buffer.rows, buffer.columns,
                            buffer.place->rows, buffer.place->columns));
  }
  std::vector<double> values(buffer.elements());
  ParallelFor(values.size(), [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto position = buffer.place->PositionOf(i);
      if (position) values[i] = value(position->row, position->column);
    }
  });
  backend.Write(id, values);
}

void WriteParameter(const RankPlan& plan, uint64_t seed, BufferId id, Backend& backend) {
  CHECK(plan.buffers[id.index()].place.has_value());
  const ArrayPiece& place = *plan.buffers[id.index()].place;
  const InitialValues initial(seed, ArrayName(plan, id), place.global_rows, place.global_columns);
  WriteByPosition(plan, id, backend,
                  [&](uint64_t row, uint64_t column) { return initial.At(row, column); });
}

// Master weights begin as the parameters and moments as zero (kAdam in sim/schedule/kernel.h), and
// so do parameters on the host that have no name of their own.
void WriteOptimizerStates(const RankPlan& plan, uint64_t seed, bool poison, Backend& backend) {
  const std::vector<BufferId> homes = HomesOf(*plan.role);
  for (const uint32_t index : OptimizerOps(*plan.role)) {
    const Op& op = plan.role->ops[index];
    const size_t arrays = op.reads.size() - 1;  // all but the norm
    const BufferId moments = op.writes.back();
    const BufferPlan& state = plan.buffers[moments.index()];
    const bool are_apart = op.writes.size() == arrays + 2;
    std::vector<double> values;
    const uint64_t without_masters = MomentsOf(std::get<Compute>(op.work).kernel);
    for (size_t i = 0; i < arrays; ++i) {
      const BufferId own = op.writes[i];
      if (homes[own.index()] != own && !IsNamedArray(plan, own))
        backend.Write(own, backend.Read(homes[own.index()]));
    }
    if (are_apart || state.rows > without_masters) {
      values.reserve(state.columns);
      for (size_t i = 0; i < arrays; ++i) {
        const BufferId parameter = op.writes[i];
        const BufferKind kind = plan.role->buffers[parameter.index()].kind;
        // This is the shard of a parameter that Adam writes before it is gathered (ZeRO-1, -2).
        if (kind != BufferKind::kParameter) WriteParameter(plan, seed, parameter, backend);
        const std::vector<double> own = backend.Read(parameter);
        values.insert(values.end(), own.begin(), own.end());
      }
    }
    if (are_apart) backend.Write(op.writes[arrays], std::exchange(values, {}));
    if (poison) values.resize(state.elements());  // otherwise the rest is already zero
    backend.Write(moments, values);
  }
}

bool HasMemory(const RankPlan& plan, uint32_t id) {
  return !plan.role->buffers[id].view && plan.buffers[id].elements() > 0;
}

}  // namespace

void WriteInitialState(const RankPlan& plan, uint64_t seed, bool poison, Backend& backend) {
  const std::vector<Buffer>& buffers = plan.role->buffers;
  for (uint32_t id = 0; id < buffers.size(); ++id) {
    if (HasMemory(plan, id)) backend.Fill(BufferId(id), poison ? kPoison : 0);
  }
  for (uint32_t id = 0; id < buffers.size(); ++id) {
    if (buffers[id].kind == BufferKind::kParameter && IsNamedArray(plan, BufferId(id))) {
      WriteParameter(plan, seed, BufferId(id), backend);
    }
  }
  WriteOptimizerStates(plan, seed, poison, backend);
  for (const auto& [id, micro_batch] : InputsOf(*plan.role)) {
    const BufferPlan& buffer = plan.buffers[id];
    const uint64_t rows = buffer.place ? buffer.place->global_rows : 0;
    const uint64_t first = static_cast<uint64_t>(micro_batch) * rows;
    WriteByPosition(plan, BufferId(id), backend, [&](uint64_t row, uint64_t column) {
      return InputAt(seed, first + row, column);
    });
  }
}

void PrepareStep(const RankPlan& plan, bool poison, Backend& backend) {
  const std::map<uint32_t, int32_t> inputs = InputsOf(*plan.role);
  for (uint32_t id = 0; id < plan.role->buffers.size(); ++id) {
    if (!HasMemory(plan, id)) continue;
    const BufferKind kind = plan.role->buffers[id].kind;
    const bool is_left_over =
        (kind == BufferKind::kActivation || kind == BufferKind::kBuffer) && inputs.count(id) == 0;
    if (kind == BufferKind::kGradient) backend.Fill(BufferId(id), 0);
    if (poison && is_left_over) backend.Fill(BufferId(id), kPoison);
  }
}

}  // namespace rehearse
