// All-to-all of experts as DeepEP does it: across machines first, then on inside. Local rank j of
// every machine sends each other machine what any rank there wants, once, to the local rank j
// there, which passes it on over NVLink while more is arriving:
//   step 0, across: (A, j) sends (B, j) its blocks for all of B
//   step 1, inside: (B, j) sends (B, l) what every (A, j) has for it
// Blocks hold a token once for every expert that it goes to. Of n bytes per rank, s_m cross to
// machines and s_r go to ranks (Collective::machine_share and rank_share, 1 if nothing is left
// out): tokens that several experts of one rank or machine want go there once.
//   T = α + α_in + max(s_m·n·(N-1)/N / B, s_r·n·(g-1)/g / B_in)
// with g ranks in each of N machines. The combine takes the same ways back, each machine's sums
// once: the same loads, if links are equally fast in both directions.
// Source: deepseek-ai/DeepEP, normal kernels (csrc/kernels/internode.cu, README.md).
// Positions are machine by machine: machine·g + local. Scratch chunk 2p + A·g + l at (B, j) is the
// block of (A, j) for (B, l).
#include <algorithm>

#include "collectives/algorithms/algorithm_rows.h"

namespace rehearse {
namespace {

void DeepepSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t locals = input.extents[0];
  const uint32_t machines = input.extents[1];
  const uint32_t p = machines * locals;
  const uint32_t local = position % locals;
  const uint32_t machine = position / locals;
  const auto across = [&](uint32_t from, uint32_t to) {
    const Chunks read{.base = 0, .cycle = p, .first = to * locals, .count = locals};
    const Chunks write{.base = 2 * p, .cycle = p, .first = from * locals, .count = locals};
    legs->push_back(
        {0, 1, from * locals + local, to * locals + local, Combine::kCopy, read, write});
  };
  const auto inside = [&](uint32_t from, uint32_t to) {
    const auto of_all_machines = [&](uint32_t base, uint32_t first) {
      return Chunks{.base = base,
                    .cycle = p,
                    .first = first,
                    .count = machines,
                    .stride = 0,
                    .spacing = static_cast<int32_t>(locals)};
    };
    legs->push_back({1, 1, machine * locals + from, machine * locals + to, Combine::kCopy,
                     of_all_machines(2 * p, to), of_all_machines(p, from)});
  };
  for (uint32_t distance = 0; distance < machines; ++distance) {
    across(machine, (machine + distance) % machines);
    if (distance > 0) across((machine + machines - distance) % machines, machine);
  }
  for (uint32_t distance = 0; distance < locals; ++distance) {
    inside(local, (local + distance) % locals);
    if (distance > 0) inside((local + locals - distance) % locals, local);
  }
}

Block DeepepBlockOfChunk(const StepInput& input, uint32_t position, uint32_t chunk) {
  const uint32_t locals = input.extents[0];
  const uint32_t p = input.ranks();
  if (chunk < p) return {position, chunk};
  if (chunk < 2 * p) return {chunk - p, position};
  const uint32_t scratch = chunk - 2 * p;
  return {scratch / locals * locals + position % locals,
          position / locals * locals + scratch % locals};
}

std::vector<Part> ArrangeDeepep(const GroupOnMachine& group) {
  const auto machines = MembersByEqualMachine(group, "deepep");
  Part part = AsTheyAre(group);
  part.input.extents = {static_cast<uint32_t>(machines.front().size()),
                        static_cast<uint32_t>(machines.size())};
  part.order.clear();
  for (const auto& machine : machines)
    part.order.insert(part.order.end(), machine.begin(), machine.end());
  return {part};
}

// The shares of the bytes are missing here, because lowering applies them
// (collectives/lowering/rounds.h).
Seconds DeepepClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const uint32_t locals = input.extents[0];
  const uint32_t machines = input.extents[1];
  Seconds latency;
  Seconds moving;
  uint32_t round = 0;
  const auto add = [&](uint32_t members) {
    if (members == 1) return;
    const Pace& pace = PaceOf(paces, round++);
    latency += pace.latency;
    moving = std::max(moving, bytes / members / pace.rate);
  };
  add(machines);
  add(locals);
  return latency + moving;
}

}  // namespace

Algorithm DeepEpRow() {
  return {AlgorithmId::kDeepEp,
          "tokens once to each machine, then on inside, like DeepEP",
          {CollectiveKind::kAllToAll},
          {},
          ArrangeDeepep,
          [](const StepInput& input) { return 3 * input.ranks(); },
          DeepepBlockOfChunk,
          DeepepSteps,
          NoSwitches,
          DeepepClosedForm,
          true};
}

}  // namespace rehearse
