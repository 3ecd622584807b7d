#include "tools/foreign/traces/astra_sim/dimension_collectives.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr size_t kMostDimensionOps = 4'000'000;
constexpr double kFastDelay = 10;    // ns, at the ends of groups that are no dimension
constexpr double kPassesOfASum = 3;  // two arrays are read, one is written
constexpr Seconds kLongestWait(86400);
constexpr size_t kNoDimension = ~size_t{0};
constexpr size_t kAllNpus = kNoDimension - 1;

struct DimensionPhase {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AstraImplementation by;
  size_t dimension = kNoDimension;  // kNoDimension: the collective's own group
  uint32_t size = 1;                // NPUs in it
  Bytes bytes;                      // as our own collectives count them
};

uint64_t StepsOf(const DimensionPhase& phase) {
  const uint64_t p = phase.size;
  const bool is_both = phase.kind == CollectiveKind::kAllReduce;
  switch (phase.by.algorithm) {
    case AstraAlgorithm::kRing:
      if (phase.kind == CollectiveKind::kAllToAll) return p * (p - 1) / 2;
      return (is_both ? 2 : 1) * (p - 1);
    case AstraAlgorithm::kDirect:
      return is_both ? 2 : 1;
    case AstraAlgorithm::kHalvingDoubling:
    case AstraAlgorithm::kDoubleBinaryTree:
      break;
  }
  uint64_t rounds = 0;
  while ((uint64_t{1} << rounds) < p) ++rounds;
  return (is_both ? 2 : 1) * rounds;
}

// The bytes that pass through local memory one after the other because they are added.
Bytes AddedBytes(const DimensionPhase& phase) {
  if (phase.kind != CollectiveKind::kAllReduce && phase.kind != CollectiveKind::kReduceScatter)
    return Bytes(0);
  const double p = phase.size;
  switch (phase.by.algorithm) {
    case AstraAlgorithm::kDirect:
      return phase.bytes / p;
    case AstraAlgorithm::kDoubleBinaryTree:
      return phase.bytes;
    case AstraAlgorithm::kRing:
    case AstraAlgorithm::kHalvingDoubling:
      break;
  }
  return phase.bytes * ((p - 1) / p);
}

AlgorithmId AlgorithmOf(const DimensionPhase& phase) {
  switch (phase.by.algorithm) {
    case AstraAlgorithm::kRing:
      return phase.kind == CollectiveKind::kAllToAll ? AlgorithmId::kDirect : AlgorithmId::kRing;
    case AstraAlgorithm::kDirect:
      return AlgorithmId::kDirect;
    case AstraAlgorithm::kHalvingDoubling:
      return phase.kind == CollectiveKind::kAllToAll ? AlgorithmId::kDirect
                                                     : AlgorithmId::kHalvingDoubling;
    case AstraAlgorithm::kDoubleBinaryTree:
      break;
  }
  return AlgorithmId::kTree;
}

class DimensionPlayer {
 public:
  DimensionPlayer(const std::vector<AstraDimension>& dimensions, const AstraSystem& system,
                  Schedule* schedule, std::vector<std::string>* remarks)
      : dimensions_(dimensions), system_(system), schedule_(*schedule), remarks_(*remarks) {}

  void Play() {
    uint64_t npus = 1;
    for (const AstraDimension& dimension : dimensions_) npus *= dimension.size;
    if (npus != schedule_.ranks()) {
      throw Error(fmt::format("the workload has {} ranks, the dimensions of the network {} NPUs",
                              schedule_.ranks(), npus));
    }
    for (Role& role : schedule_.roles) PlayRole(&role);
    for (const auto& [what, count] : counts_) remarks_.push_back(fmt::format("{} {}", count, what));
  }

 private:
  void Count(const char* what) { ++counts_[what]; }

  // ---- Phases ----

  AstraImplementation By(CollectiveKind kind, size_t dimension) {
    const auto of_kind = system_.implementations.find(kind);
    if (of_kind == system_.implementations.end()) {
      Count("collectives of a kind without an implementation go around rings");
      return {};
    }
    const std::vector<AstraImplementation>& all = of_kind->second;
    if (all.front().is_of_all) return all.front();
    if (all.size() != dimensions_.size()) {
      throw Error(fmt::format("{} names {} algorithms for {} dimensions; expected one each",
                              Name(kind), all.size(), dimensions_.size()));
    }
    AstraImplementation by = all[dimension];
    if (by.algorithm == AstraAlgorithm::kDoubleBinaryTree && kind != CollectiveKind::kAllReduce) {
      Count("phases by a tree that is none of an all-reduce's go around rings");
      by = {};
    }
    return by;
  }

  void AddPhase(CollectiveKind kind, CollectiveKind of, size_t dimension, Bytes bytes,
                std::vector<DimensionPhase>* phases) {
    DimensionPhase phase;
    phase.kind = kind;
    phase.by = By(of, dimension);
    phase.dimension = dimension;
    phase.size = dimensions_[dimension].size;
    phase.bytes = bytes;
    if (phase.by.algorithm == AstraAlgorithm::kDoubleBinaryTree &&
        kind != CollectiveKind::kAllReduce) {
      Count("phases by a tree that is none of an all-reduce's go around rings");
      phase.by = {};
    }
    if (phase.by.algorithm == AstraAlgorithm::kDoubleBinaryTree)
      Count("all-reduces by double trees are pipelined here");
    if (phase.by.window > 0 && phase.by.window + 1 < phase.size)
      Count("direct phases send to all peers at once, whatever their window");
    if (phase.size > 1) phases->push_back(phase);
  }

  // Of one chunk.
  std::vector<DimensionPhase> PhasesOf(const Collective& collective, Bytes bytes) {
    std::vector<DimensionPhase> phases;
    const CollectiveKind kind = collective.kind;
    const Communicator& own = schedule_.communicators[collective.communicator.index()];
    const auto given = system_.implementations.find(kind);
    if (own.size() != schedule_.ranks()) {
      const bool is_only = given != system_.implementations.end() && given->second.size() == 1;
      DimensionPhase phase;
      phase.kind = kind;
      if (is_only) phase.by = given->second.front();
      phase.size = own.size();
      phase.bytes = bytes;
      if (phase.by.algorithm == AstraAlgorithm::kDoubleBinaryTree &&
          kind != CollectiveKind::kAllReduce)
        phase.by = {};
      if (phase.size > 1) phases.push_back(phase);
      return phases;
    }
    if (given != system_.implementations.end() && given->second.front().is_of_all) {
      DimensionPhase phase;
      phase.kind = kind;
      phase.by = given->second.front();
      phase.dimension = kAllNpus;
      phase.size = own.size();
      phase.bytes = bytes;
      if (phase.size > 1) phases.push_back(phase);
      return phases;
    }
    const size_t count = dimensions_.size();
    switch (kind) {
      case CollectiveKind::kAllToAll:
        for (size_t d = 0; d < count; ++d) AddPhase(kind, kind, d, bytes, &phases);
        break;
      case CollectiveKind::kReduceScatter:
        for (size_t d = 0; d < count; bytes = bytes / dimensions_[d++].size)
          AddPhase(kind, kind, d, bytes, &phases);
        break;
      case CollectiveKind::kAllGather:
        bytes = bytes / own.size();
        for (size_t d = count; d-- > 0;) {
          bytes = bytes * static_cast<double>(dimensions_[d].size);
          AddPhase(kind, kind, d, bytes, &phases);
        }
        break;
      default:
        AddAllReduce(bytes, &phases);
    }
    return phases;
  }

  void AddAllReduce(Bytes bytes, std::vector<DimensionPhase>* phases) {
    using enum CollectiveKind;
    if (!system_.scatters_first) {
      for (size_t d = 0; d < dimensions_.size(); ++d)
        AddPhase(kAllReduce, kAllReduce, d, bytes, phases);
      return;
    }
    size_t last = dimensions_.size() - 1;
    while (last > 0 && dimensions_[last].size == 1) --last;
    std::vector<Bytes> sizes;
    for (size_t d = 0; d <= last; ++d) {
      sizes.push_back(bytes);
      AddPhase(d == last ? kAllReduce : kReduceScatter, kAllReduce, d, bytes, phases);
      bytes = bytes / dimensions_[d].size;
    }
    for (size_t d = last; d-- > 0;) AddPhase(kAllGather, kAllReduce, d, sizes[d], phases);
  }

  double HopsOf(const DimensionPhase& phase) const {
    if (phase.dimension >= dimensions_.size()) return 1;
    return dimensions_[phase.dimension].shape == AstraShape::kSwitch ? 2 : 1;
  }
  Seconds LatencyOf(const DimensionPhase& phase) const {
    if (phase.dimension >= dimensions_.size()) return Seconds(0);
    return dimensions_[phase.dimension].latency * HopsOf(phase);
  }
  // What follows a phase at its ends.
  Seconds AtTheEnds(const DimensionPhase& phase) const {
    const double delay = phase.dimension == kNoDimension ? kFastDelay : system_.endpoint_delay;
    double seconds = static_cast<double>(StepsOf(phase) + 1) * delay * 1e-9;
    if (system_.memory_bandwidth > 0)
      seconds += kPassesOfASum * AddedBytes(phase).value() / system_.memory_bandwidth;
    return Seconds(seconds);
  }
  // By the closed form: in which order chunks come to a dimension.
  Seconds Expected(const DimensionPhase& phase) const {
    Seconds time = static_cast<double>(StepsOf(phase)) * LatencyOf(phase) + AtTheEnds(phase);
    if (phase.dimension >= dimensions_.size()) return time;
    double sent = phase.bytes.value() * static_cast<double>(StepsOf(phase)) / phase.size;
    if (phase.by.algorithm == AstraAlgorithm::kHalvingDoubling)
      sent = AddedBytes(phase).value() * (phase.kind == CollectiveKind::kAllReduce ? 2 : 1);
    return time + Bytes(sent) / dimensions_[phase.dimension].bandwidth;
  }

  // ---- Ops ----

  struct RolePlan {
    Role* role = nullptr;
    std::vector<Op> ops;
    std::vector<std::vector<OpId>> ends;  // of each op as it was
    std::map<std::string, StreamId> streams;
    std::map<uint32_t, std::vector<OpId>> last_on_stream;  // of those that are kept
    std::map<std::pair<size_t, uint32_t>, OpId> last_in_queue;
  };

  void PlayRole(Role* role) {
    if (!role->repeats.empty()) {
      throw Error(
          "the schedule keeps what it repeats only once; expected a workload of ASTRA-sim, Chakra "
          "or SimAI");
    }
    RolePlan plan;
    plan.role = role;
    for (Op& op : role->ops) {
      std::vector<OpId> after;
      for (const OpId before : op.after) {
        const std::vector<OpId>& ends = plan.ends[before.index()];
        after.insert(after.end(), ends.begin(), ends.end());
      }
      const Collective* collective = std::get_if<Collective>(&op.work);
      std::vector<OpId>& last = plan.last_on_stream[static_cast<uint32_t>(op.stream.index())];
      if (collective != nullptr && GoesByPhases(*collective)) {
        const bool is_of_all =
            schedule_.communicators[collective->communicator.index()].size() == schedule_.ranks();
        // What all do takes turns in the dimensions' queues, what others do on its stream.
        if (!is_of_all) after.insert(after.end(), last.begin(), last.end());
        std::vector<OpId> ends = PlayCollective(op, *collective, Unique(after), &plan);
        if (!is_of_all) last = ends;
        plan.ends.push_back(std::move(ends));
        continue;
      }
      if (collective != nullptr) {
        Count("collectives of kinds that ASTRA-sim does not have stay as they are");
        after.insert(after.end(), last.begin(), last.end());
      }
      op.after = Unique(after);
      plan.ops.push_back(std::move(op));
      plan.ends.push_back({OpId(static_cast<uint32_t>(plan.ops.size() - 1))});
    }
    role->ops = std::move(plan.ops);
  }

  static std::vector<OpId> Unique(std::vector<OpId> ids) {
    std::sort(ids.begin(), ids.end(), [](OpId a, OpId b) { return a.index() < b.index(); });
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  static bool GoesByPhases(const Collective& collective) {
    using enum CollectiveKind;
    return collective.pair_bytes.empty() &&
           (collective.kind == kAllReduce || collective.kind == kAllGather ||
            collective.kind == kReduceScatter || collective.kind == kAllToAll);
  }

  std::vector<OpId> PlayCollective(const Op& op, const Collective& collective,
                                   const std::vector<OpId>& after, RolePlan* plan) {
    double bytes = collective.bytes.value();
    // Smaller ones are made larger there.
    if (collective.kind != CollectiveKind::kAllGather)
      bytes = std::max(bytes, static_cast<double>(schedule_.ranks()) * system_.splits);
    const std::vector<DimensionPhase> phases = PhasesOf(collective, Bytes(bytes / system_.splits));
    if (phases.empty()) return after;
    // Chunks come to a dimension one after the other; each takes the place that is free first.
    struct Arrival {
      Seconds at;
      uint64_t number = 0;
      uint32_t chunk = 0;
      size_t phase = 0;
      bool operator>(const Arrival& other) const {
        return at != other.at ? at > other.at : number > other.number;
      }
    };
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
    uint64_t number = 0;
    for (uint32_t chunk = 0; chunk < system_.splits; ++chunk)
      arrivals.push({Seconds(0), number++, chunk, 0});
    std::map<size_t, std::vector<Seconds>> free_at;
    std::vector<std::vector<OpId>> before(system_.splits, after);
    std::vector<OpId> ends;
    while (!arrivals.empty()) {
      const Arrival arrival = arrivals.top();
      arrivals.pop();
      const DimensionPhase& phase = phases[arrival.phase];
      const bool is_own = phase.dimension == kNoDimension;
      std::vector<Seconds>& places =
          free_at.try_emplace(phase.dimension, is_own ? 1 : system_.active).first->second;
      const auto place = std::min_element(places.begin(), places.end());
      *place = std::max(*place, arrival.at) + Expected(phase);
      const OpId end =
          PlayPhase(op, collective, phase, static_cast<uint32_t>(place - places.begin()),
                    before[arrival.chunk], plan);
      before[arrival.chunk] = {end};
      if (arrival.phase + 1 < phases.size())
        arrivals.push({*place, number++, arrival.chunk, arrival.phase + 1});
      else
        ends.push_back(end);
    }
    return ends;
  }

  OpId PlayPhase(const Op& op, const Collective& collective, const DimensionPhase& phase,
                 uint32_t place, const std::vector<OpId>& before, RolePlan* plan) {
    const bool passes_around =
        phase.kind == CollectiveKind::kAllToAll && phase.by.algorithm == AstraAlgorithm::kRing;
    Collective part = collective;
    part.kind = passes_around ? CollectiveKind::kSendReceive : phase.kind;
    part.algorithm = AlgorithmOf(phase);
    part.protocol = Protocol::kNone;
    part.bytes = phase.bytes;
    part.communicator = CommunicatorOf(collective, phase, place);
    Seconds ends = AtTheEnds(phase);
    if (passes_around) {
      part.bytes = phase.bytes / phase.size * static_cast<double>(StepsOf(phase));
      ends += static_cast<double>(StepsOf(phase) - 1) * LatencyOf(phase);
    }
    const std::string& group = schedule_.communicators[part.communicator.index()].name();
    std::vector<OpId> after = before;
    const std::pair<size_t, uint32_t> queue = {part.communicator.index(), 0};
    const auto last = plan->last_in_queue.find(queue);
    if (last != plan->last_in_queue.end()) after.push_back(last->second);
    const std::string name = fmt::format("{}: {}", op.name, Name(part.kind));
    OpId id = Add({name,
                   StreamOf(group, StreamKind::kCommunication, plan),
                   op.tag,
                   std::move(part),
                   Unique(std::move(after)),
                   {},
                   {}},
                  plan);
    if (ends > kLongestWait) {
      throw Error(
          fmt::format("{} takes more than {} at its ends; expected a shorter "
                      "endpoint-delay or a faster local-mem-bw",
                      VisibleText(op.name), Print(kLongestWait)));
    }
    if (ends > Seconds(0)) {
      Compute wait;
      wait.kind = ComputeKind::kFixed;
      wait.duration = ends;
      wait.kernels = 0;
      id = Add({op.name + ": at the ends",
                StreamOf("ends of " + group, StreamKind::kCompute, plan),
                op.tag,
                std::move(wait),
                {id},
                {},
                {}},
               plan);
    }
    plan->last_in_queue[queue] = id;
    return id;
  }

  OpId Add(Op op, RolePlan* plan) {
    plan->ops.push_back(std::move(op));
    if (++ops_ > kMostDimensionOps) {
      throw Error(
          fmt::format("the collectives have more than {} phases in all, the most that are "
                      "played; expected fewer preferred-dataset-splits",
                      kMostDimensionOps));
    }
    return OpId(static_cast<uint32_t>(plan->ops.size() - 1));
  }

  StreamId StreamOf(const std::string& name, StreamKind kind, RolePlan* plan) {
    const auto [at, is_new] = plan->streams.try_emplace(name);
    if (is_new) {
      at->second = StreamId(static_cast<uint32_t>(plan->role->streams.size()));
      plan->role->streams.push_back({name, kind});
    }
    return at->second;
  }

  CommunicatorId CommunicatorOf(const Collective& collective, const DimensionPhase& phase,
                                uint32_t place) {
    if (phase.dimension == kNoDimension) return collective.communicator;
    const auto [at, is_new] = communicators_.try_emplace({phase.dimension, place});
    if (!is_new) return at->second;
    at->second = CommunicatorId(static_cast<uint32_t>(schedule_.communicators.size()));
    std::string name =
        phase.dimension == kAllNpus ? "all NPUs" : fmt::format("dimension {}", phase.dimension + 1);
    if (place > 0) name += fmt::format(", place {}", place + 1);
    std::vector<StridedAxis> members;
    std::vector<StridedAxis> groups;
    uint32_t stride = 1;
    for (size_t d = 0; d < dimensions_.size(); ++d) {
      const bool is_in = phase.dimension == kAllNpus || phase.dimension == d;
      (is_in ? members : groups).push_back({dimensions_[d].size, stride});
      stride *= dimensions_[d].size;
    }
    schedule_.communicators.push_back(Communicator::Strided(name, members, groups));
    return at->second;
  }

  const std::vector<AstraDimension>& dimensions_;
  const AstraSystem& system_;
  Schedule& schedule_;
  std::vector<std::string>& remarks_;
  std::map<std::pair<size_t, uint32_t>, CommunicatorId> communicators_;
  std::map<std::string, size_t> counts_;
  size_t ops_ = 0;
};

}  // namespace

void GoByDimension(const std::vector<AstraDimension>& dimensions, const AstraSystem& system,
                   Schedule* schedule, std::vector<std::string>* remarks) {
  DimensionPlayer(dimensions, system, schedule, remarks).Play();
}

}  // namespace rehearse
