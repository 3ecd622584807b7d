// Rail-aware all-to-all through the neighbour's NIC, as NCCL's PXN does it. Local rank j of every
// machine forms rail j; traffic between machines never changes rails, so that it stays below one
// switch of a rail-optimised fabric and is sent in messages g times as large.
//   step 0, inside the machine: local i hands to local j all that it has for rail j, n/g bytes
//   step 1, across: local j sends to each machine what all g locals have for its local j, n/N bytes
//   T = α_in + n/(g·b_in) + α_out + n/(N·b_out)
// with b the rate of each message while all of its step move: with ports of rate P,
// b_in = P_in/(g-1) and b_out = P_out/(N-1).
// Positions are rail by rail: local·N + machine. Scratch chunk 2p + i·N + B at (A, j) is the block
// of (A, i) for (B, j).
#include "collectives/algorithms/algorithm_rows.h"

namespace rehearse {
namespace {

void PxnSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t machines = input.extents[0];
  const uint32_t locals = input.extents[1];
  const uint32_t p = machines * locals;
  const uint32_t machine = position % machines;
  const uint32_t local = position / machines;
  const auto inside = [&](uint32_t from, uint32_t to) {
    const Chunks read{.base = to * machines, .cycle = machines, .first = 0, .count = machines};
    const Chunks write{
        .base = 2 * p + from * machines, .cycle = machines, .first = 0, .count = machines};
    legs->push_back(
        {0, 1, from * machines + machine, to * machines + machine, Combine::kCopy, read, write});
  };
  const auto across = [&](uint32_t from, uint32_t to) {
    const auto of_all_locals = [&](uint32_t base, uint32_t first) {
      return Chunks{.base = base,
                    .cycle = p,
                    .first = first,
                    .count = locals,
                    .stride = 0,
                    .spacing = static_cast<int32_t>(machines)};
    };
    legs->push_back({1, 1, local * machines + from, local * machines + to, Combine::kCopy,
                     of_all_locals(2 * p, to), of_all_locals(p, from)});
  };
  for (uint32_t distance = 0; distance < locals; ++distance) {
    inside(local, (local + distance) % locals);
    if (distance > 0) inside((local + locals - distance) % locals, local);
  }
  for (uint32_t distance = 0; distance < machines; ++distance) {
    across(machine, (machine + distance) % machines);
    if (distance > 0) across((machine + machines - distance) % machines, machine);
  }
}

Block PxnBlockOfChunk(const StepInput& input, uint32_t position, uint32_t chunk) {
  const uint32_t machines = input.extents[0];
  const uint32_t p = input.ranks();
  if (chunk < p) return {position, chunk};
  if (chunk < 2 * p) return {chunk - p, position};
  const uint32_t scratch = chunk - 2 * p;
  const uint32_t origin = scratch / machines * machines + position % machines;
  const uint32_t goal = position / machines * machines + scratch % machines;
  return {origin, goal};
}

std::vector<Part> ArrangePxn(const GroupOnMachine& group) {
  const auto machines = MembersByEqualMachine(group, "pxn");
  Part part = AsTheyAre(group);
  const uint32_t locals = static_cast<uint32_t>(machines.front().size());
  part.input.extents = {static_cast<uint32_t>(machines.size()), locals};
  part.order.clear();
  for (uint32_t local = 0; local < locals; ++local) {
    for (const auto& machine : machines) part.order.push_back(machine[local]);
  }
  return {part};
}

Seconds PxnClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t machines = input.extents[0];
  const uint32_t locals = input.extents[1];
  Seconds time;
  uint32_t round = 0;
  if (locals > 1) time += RoundTime(PaceOf(paces, round++), 1, bytes / locals);
  if (machines > 1) time += RoundTime(PaceOf(paces, round++), 1, bytes / machines);
  return time;
}

}  // namespace

Algorithm PxnRow() {
  return {AlgorithmId::kPxn,
          "rail by rail, through the neighbour's NIC",
          {CollectiveKind::kAllToAll},
          {},
          ArrangePxn,
          [](const StepInput& input) { return 3 * input.ranks(); },
          PxnBlockOfChunk,
          PxnSteps,
          NoSwitches,
          PxnClosedForm};
}

}  // namespace rehearse
