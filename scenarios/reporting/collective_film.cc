#include "scenarios/reporting/collective_film.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/lowering/lower.h"
#include "collectives/lowering/plan_load.h"
#include "collectives/lowering/transfers.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/reporting/cluster_drawing.h"
#include "scenarios/reporting/page_columns.h"
#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/known_names.h"
#include "sim/base/version.h"
#include "sim/base/visible_text.h"
#include "sim/engine/simulate.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<int64_t>;

constexpr size_t kMostRanks = 128;
constexpr size_t kMostRanksTogether = 32;  // of several groups of a step
constexpr size_t kMostMoves = 60'000;

struct FilmMove {
  Time begin;
  Time end;
  uint32_t from = 0;  // places
  uint32_t to = 0;
  uint32_t part = 0;
  bool adds = false;
  double bytes = 0;
  std::vector<std::pair<uint32_t, uint32_t>> chunks;  // read, written
  std::vector<uint32_t> ways;
};

bool IsSummed(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kReduce;
}

// What is watched: a collective of some groups, which each of their ranks does at a position.
struct Watched {
  Collective collective;
  std::vector<std::vector<uint32_t>> groups;
  std::map<uint32_t, uint32_t> position_of_rank;
  std::string title;
};

SimulationOptions AllTasks() {
  SimulationOptions options;
  options.record_tasks = true;
  options.jump = false;
  return options;
}

class Filming {
 public:
  Filming(std::shared_ptr<const Cluster> cluster, const FabricRouting& routing,
          const LowerOptions& lowering)
      : cluster_(std::move(cluster)),
        lowering_(lowering),
        router_(*cluster_, routing),
        finder_(router_) {
    lowering_.fidelity = Fidelity::kStep;
    lowering_.fold = false;
    lowering_.note_flows = true;
    if (cluster_->measured_collectives())
      throw Error("--watch: this calibration measured whole collectives, which have no steps");
  }

  // A collective that is alone on the cluster.
  std::string Run(const Trial& trial, Bytes bytes) {
    const Schedule schedule = TrialSchedule(trial, {bytes}, cluster_->device_count());
    Watched watched;
    watched.collective = std::get<Collective>(schedule.roles.front().ops.front().work);
    watched.groups = trial.groups;
    for (const auto& group : trial.groups)
      for (const uint32_t rank : group) watched.position_of_rank[rank] = 0;
    watched.title = fmt::format("{} on {}", Name(trial.kind), cluster_->name());
    Take(std::move(watched));
    lowered_ = Lower(schedule, router_, lowering_);
    simulation_ = Simulate(lowered_.program, schedule.ranks(), AllTasks());
    FilmAll(schedule);
    return Written({}, simulation_.timeline.step);
  }

  // One of a step, with all else that happens meanwhile.
  std::string Run(const Scenario& scenario, const std::string& op, ProgressObserver& observer) {
    Scenario own = scenario;
    own.lowering = lowering_;
    SimulationOptions options = AllTasks();
    options.observer = &observer;
    std::vector<Job> jobs = Prepare(own, observer);
    // What is not there is said before anything is played.
    if (jobs.size() == 1 && jobs.front().schedule.ranks() == cluster_->device_count())
      FindOp(jobs.front().schedule, op, scenario.name);
    PlayedScenario played =
        PlayJobs(own, std::move(jobs), options, nullptr, CopiedSpans::kAllArePlayed);
    Take(FindOp(played.schedule(), op, scenario.name));
    lowered_ = std::move(played.lowered);
    simulation_ = std::move(played.simulation);
    FilmAll(played.schedule());
    Time begin = moves_.empty() ? Time() : moves_.front().begin;
    Time end;
    for (const FilmMove& move : moves_) {
      if (move.end > move.begin) begin = std::min(begin, move.begin);
      end = std::max(end, move.end);
    }
    return Written(begin, end);
  }

 private:
  void Take(Watched watched) {
    watched_ = std::move(watched);
    size_t ranks = 0;
    for (const auto& group : watched_.groups) ranks += group.size();
    if (watched_.groups.front().size() < 2)
      throw Error("--watch: found a group of one rank, expected at least two");
    if (ranks > kMostRanks)
      throw Error(fmt::format("--watch: found {} ranks, expected at most {}; --ranks takes fewer",
                              ranks, kMostRanks));
    if (watched_.collective.kind == CollectiveKind::kBarrier)
      throw Error("--watch: a barrier moves no data");
  }

  // `op` is a name, or a name and "#3" for its third time.
  static Watched FindOp(const Schedule& schedule, const std::string& op, const std::string& title) {
    std::string name = op;
    uint32_t times = 1;
    const size_t mark = op.rfind('#');
    if (mark != std::string::npos && mark + 1 < op.size() && op.size() - mark < 8 &&
        op.find_first_not_of("0123456789", mark + 1) == std::string::npos) {
      name = op.substr(0, mark);
      times = static_cast<uint32_t>(std::stoul(op.substr(mark + 1)));
    }
    std::vector<std::optional<uint32_t>> position_in(schedule.roles.size());
    for (size_t number = 0; number < schedule.roles.size(); ++number) {
      const Role& role = schedule.roles[number];
      uint32_t left = times;
      const DoneOps ops(role);
      for (const DoneOp& done : ops) {
        const Op& one = role.ops[done.place];
        if (one.name != name || !std::holds_alternative<Collective>(one.work) || --left > 0)
          continue;
        position_in[number] = done.position;
        break;
      }
    }
    const auto position_on = [&](uint32_t rank) {
      return position_in[schedule.role_of_rank[rank]];
    };
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      const std::optional<uint32_t> position = position_on(rank);
      if (!position) continue;
      Watched watched;
      watched.collective =
          std::get<Collective>(schedule.roles[schedule.role_of_rank[rank]].At(*position).work);
      const Communicator& communicator =
          schedule.communicators[watched.collective.communicator.index()];
      // The rank's own group first; others as long as all can be seen.
      const uint32_t first = communicator.PositionOf(rank)->group;
      for (uint32_t i = 0; i < communicator.group_count(); ++i) {
        const uint32_t group = (first + i) % communicator.group_count();
        if (i > 0 && (watched.groups.size() + 1) * communicator.size() > kMostRanksTogether) break;
        std::vector<uint32_t> ranks;
        std::map<uint32_t, uint32_t> positions;
        for (uint32_t member = 0; member < communicator.size(); ++member) {
          ranks.push_back(communicator.Rank(group, member));
          const std::optional<uint32_t> own = position_on(ranks.back());
          if (own) positions[ranks.back()] = *own;
        }
        if (positions.size() < ranks.size()) continue;
        watched.groups.push_back(std::move(ranks));
        watched.position_of_rank.merge(positions);
      }
      watched.title = fmt::format("{} of {}", op, title);
      return watched;
    }
    std::vector<std::string> known;
    for (const Role& role : schedule.roles)
      for (const Op& one : role.ops)
        if (std::holds_alternative<Collective>(one.work) &&
            std::find(known.begin(), known.end(), one.name) == known.end())
          known.push_back(one.name);
    if (known.empty()) throw Error("--watch: the step has no collective to watch");
    if (std::find(known.begin(), known.end(), name) != known.end())
      throw Error(fmt::format("--watch: no rank does \"{}\" {} times", VisibleText(name), times));
    throw Error(fmt::format("--watch: found \"{}\"{}", VisibleText(op), KnownNames(name, known)));
  }

  void FilmAll(const Schedule& schedule) {
    table_ = MakeTransfers(schedule, router_, Fidelity::kStep, lowering_.channels, lowering_.nccl);
    const Program& program = lowered_.program;
    task_of_flow_.resize(program.flows.size());
    for (uint32_t task = 0; task < program.tasks.size(); ++task)
      if (program.tasks[task].kind == TaskKind::kFlow)
        task_of_flow_[program.tasks[task].payload] = task;
    way_of_link_.assign(program.links.size(), kNotDrawn);
    for (uint32_t way = 0; way < lowered_.links.size(); ++way)
      if (way_of_link_[lowered_.links[way]] == kNotDrawn) way_of_link_[lowered_.links[way]] = way;
    for (size_t group = 0; group < watched_.groups.size(); ++group) Film(schedule, group);
  }

  void Film(const Schedule& schedule, size_t group) {
    const std::vector<uint32_t>& ranks = watched_.groups[group];
    const Collective& collective = watched_.collective;
    Tuner tuner(router_, lowering_.nccl);
    const Choice choice = tuner.Choose({collective, ranks, lowering_.channels});
    const GroupPlan plan =
        ArrangePlan(choice, collective.kind, collective.root, ranks, router_, finder_);
    choice_ = choice;
    const auto noted = std::find_if(
        lowered_.flows_of_ops.begin(), lowered_.flows_of_ops.end(), [&](const FlowsOfOp& one) {
          return std::find(ranks.begin(), ranks.end(), one.rank) != ranks.end() &&
                 watched_.position_of_rank.at(one.rank) == one.position;
        });
    if (noted == lowered_.flows_of_ops.end()) throw Error("--watch: nothing travels");
    const uint32_t role = schedule.role_of_rank[noted->rank];
    const uint32_t slot = table_.slot_of_op[role][schedule.roles[role].PlaceAt(noted->position)];
    const Site& site = table_.sites[table_.SiteOf(noted->rank, slot)];
    for (const uint32_t rank : ranks) {
      place_of_rank_[rank] = static_cast<uint32_t>(places_.size());
      places_.push_back({rank, cluster_->DeviceName(rank), group});
    }
    first_part_ = static_cast<uint32_t>(parts_.size());
    const uint32_t transfers = site.transfer_end - site.transfer_begin;
    const uint32_t flows = noted->end - noted->begin;
    const GroupPlan* lowered = table_.PlanOf(site);
    const bool is_ring = lowered == nullptr || lowered->parts.empty();
    if (is_ring)
      FilmRings(plan, ranks, *noted, flows);
    else
      FilmMessages(plan, ranks, site, *noted, transfers, flows);
  }

  // A flow for each edge of each ring, with all its steps. A step waits for the one before on the
  // edge upstream, so that the whole ring moves at the pace of its slowest edge: in equal steps.
  void FilmRings(const GroupPlan& plan, const std::vector<uint32_t>& ranks, const FlowsOfOp& noted,
                 uint32_t flows) {
    const auto size = static_cast<uint32_t>(ranks.size());
    CHECK_EQ(flows, size * plan.parts.size());
    for (uint32_t part = 0; part < plan.parts.size(); ++part) {
      AddPart(plan, plan.parts[part].input, part, ranks);
      const uint32_t first = noted.begin + part * size;
      const TaskTime one = simulation_.tasks[task_of_flow_[first]];
      Time begin = one.start;
      Time end = one.end;
      for (uint32_t flow = first; flow < first + size; ++flow) {
        begin = std::min(begin, simulation_.tasks[task_of_flow_[flow]].start);
        end = std::max(end, simulation_.tasks[task_of_flow_[flow]].end);
      }
      const int64_t all = (end - begin).picoseconds();
      for (uint32_t position = 0; position < size; ++position) {
        const uint32_t flow = first + position;
        const int64_t steps = lowered_.program.flows[flow].steps;
        for (const Leg& leg :
             MessagesOf(*plan.choice.algorithm, plan.parts[part].input, position)) {
          if (leg.from != position) continue;
          FilmMove move;
          move.begin = begin + Time(all * leg.step / steps);
          move.end = begin + Time(all * (leg.step + 1) / steps);
          move.bytes = lowered_.program.flows[flow].bytes;
          AddMove(move, plan, ranks, part, leg, flow);
        }
      }
    }
  }

  // A flow for each step of each message.
  void FilmMessages(const GroupPlan& plan, const std::vector<uint32_t>& ranks, const Site& site,
                    const FlowsOfOp& noted, uint32_t transfers, uint32_t flows) {
    uint32_t transfer = 0;
    uint32_t flow = noted.begin;
    for (uint32_t part = 0; part < plan.parts.size(); ++part) {
      const std::vector<PartMessage> messages = MessagesOfPart(plan, part);
      CHECK_LE(transfer + messages.size(), transfers);
      StepInput input = plan.parts[part].input;
      // Of a pipeline each transfer has a flow for each piece.
      if (plan.IsPipeline()) input.pieces = flows / transfers;
      AddPart(plan, input, part, ranks);
      std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<Leg>> legs;
      for (uint32_t from = 0; from < input.ranks() + SwitchesOf(plan, input); ++from)
        for (const Leg& leg : MessagesOf(*plan.choice.algorithm, input, from))
          if (leg.from == from && leg.from != leg.to)
            legs[{leg.from, leg.to, leg.step}].push_back(leg);
      for (const PartMessage& message : messages) {
        const Transfer& own = table_.transfers[site.transfer_begin + transfer++];
        const uint32_t steps = plan.IsPipeline() ? input.pieces : own.steps;
        for (uint32_t i = 0; i < steps; ++i, ++flow) {
          const TaskTime time = simulation_.tasks[task_of_flow_[flow]];
          const auto found = legs.find({message.from, message.to, message.step + i});
          if (found == legs.end()) continue;
          for (const uint32_t end : {message.from, message.to})
            done_.push_back({end, message.step + i, time.end});
          for (const Leg& leg : found->second) {
            FilmMove move;
            move.begin = time.start;
            move.end = time.end;
            move.bytes =
                lowered_.program.flows[flow].bytes / static_cast<double>(found->second.size());
            AddMove(move, plan, ranks, part, leg, flow);
          }
        }
      }
      AddCopies(plan, ranks, part, input);
    }
    CHECK_EQ(transfer, transfers);
    CHECK_EQ(flow, noted.end);
  }

  // What members copy within their own memory, once their earlier messages are done.
  void AddCopies(const GroupPlan& plan, const std::vector<uint32_t>& ranks, uint32_t part,
                 const StepInput& input) {
    for (uint32_t position = 0; position < input.ranks(); ++position) {
      for (const Leg& leg : MessagesOf(*plan.choice.algorithm, input, position)) {
        if (leg.from != leg.to) continue;
        FilmMove move;
        for (const DoneMessage& message : done_)
          if (message.position == position && message.step < leg.step)
            move.begin = std::max(move.begin, message.end);
        move.end = move.begin;
        AddMove(move, plan, ranks, part, leg, kNoFlow);
      }
    }
    done_.clear();
  }

  static uint32_t SwitchesOf(const GroupPlan& plan, const StepInput& input) {
    return plan.choice.algorithm->switches != nullptr ? plan.choice.algorithm->switches(input) : 0;
  }

  uint32_t PlaceOf(const GroupPlan& plan, const std::vector<uint32_t>& ranks, uint32_t part,
                   uint32_t position) {
    const Part& own = plan.parts[part];
    if (position < own.order.size()) return place_of_rank_.at(ranks[own.order[position]]);
    const auto [place, is_new] = place_of_switch_.emplace(std::tuple(ranks.front(), part, position),
                                                          kMostPlaces + switches_);
    if (is_new) ++switches_;
    return place->second;
  }

  void AddPart(const GroupPlan& plan, const StepInput& input, uint32_t part,
               const std::vector<uint32_t>& ranks) {
    const Algorithm& algorithm = *plan.choice.algorithm;
    const uint32_t chunks = ChunkCount(algorithm, input);
    const uint32_t number = first_part_ + part;
    parts_.push_back({{"chunks", chunks}, {"share", plan.parts[part].share}});
    const uint32_t size = input.ranks();
    for (uint32_t position = 0; position < size; ++position) {
      const uint32_t place = PlaceOf(plan, ranks, part, position);
      for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
        bool has = false;
        bool wants = false;
        uint32_t hue = chunk;
        switch (input.kind) {
          case CollectiveKind::kAllReduce:
            has = wants = true;
            break;
          case CollectiveKind::kReduce:
            has = true;
            wants = position == input.root;
            break;
          case CollectiveKind::kBroadcast:
            has = position == input.root;
            wants = true;
            break;
          case CollectiveKind::kReduceScatter:
            has = true;
            hue = BlockOf(algorithm, input, position, chunk).from;
            wants = hue == position;
            break;
          case CollectiveKind::kAllGather:
            hue = BlockOf(algorithm, input, position, chunk).from;
            has = hue == position;
            wants = true;
            break;
          case CollectiveKind::kAllToAll:
            has = chunk < size;
            wants = chunk >= size && chunk < 2 * size;
            hue = position;
            break;
          default:
            has = chunk == 0;
            wants = chunk == 1;
            hue = position;
        }
        if (has) holds_.push_back({place, number, chunk, hue});
        if (wants) wants_.push_back({place, number, chunk});
      }
    }
  }

  void AddMove(FilmMove move, const GroupPlan& plan, const std::vector<uint32_t>& ranks,
               uint32_t part, const Leg& leg, uint32_t flow) {
    if (moves_.size() == kMostMoves)
      throw Error(fmt::format(
          "--watch: more than {} messages; --ranks, --channels or --algorithm make them fewer",
          kMostMoves));
    move.from = PlaceOf(plan, ranks, part, leg.from);
    move.to = PlaceOf(plan, ranks, part, leg.to);
    move.part = first_part_ + part;
    move.adds = leg.combine == Combine::kAdd;
    for (uint32_t k = 0; k < leg.read.count; ++k)
      move.chunks.emplace_back(leg.read.At(0, k), leg.write.At(0, k));
    if (flow == kNoFlow) {
      moves_.push_back(std::move(move));
      return;
    }
    const Program& program = lowered_.program;
    const uint32_t set = program.flows[flow].use_set;
    std::vector<uint32_t> ways;
    for (uint32_t use = program.use_set_begin[set]; use < program.use_set_begin[set + 1]; ++use) {
      const uint32_t way = way_of_link_[program.uses[use].link.index()];
      if (way != kNotDrawn) ways.push_back(way);
    }
    move.ways = InOrder(ways, leg.from < plan.parts[part].order.size()
                                  ? cluster_->DeviceName(ranks[plan.parts[part].order[leg.from]])
                                  : "");
    moves_.push_back(std::move(move));
  }

  std::string SourceName(uint32_t way) const {
    const uint32_t link = cluster_->IsTrunk(way) ? cluster_->CablesOf(way).front() : way;
    return cluster_->VertexAt(cluster_->SourceOf(link)).name;
  }
  std::string TargetName(uint32_t way) const {
    const uint32_t link = cluster_->IsTrunk(way) ? cluster_->CablesOf(way).front() : way;
    return cluster_->VertexAt(cluster_->TargetOf(link)).name;
  }

  // One after the other from the sender on; of several equal ways the first.
  std::vector<uint32_t> InOrder(const std::vector<uint32_t>& ways, std::string at) const {
    std::vector<uint32_t> ordered;
    std::vector<bool> used(ways.size());
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t i = 0; i < ways.size(); ++i) {
        if (used[i] || (!at.empty() && SourceName(ways[i]) != at)) continue;
        used[i] = true;
        ordered.push_back(ways[i]);
        at = TargetName(ways[i]);
        goes_on = true;
        break;
      }
    }
    return ordered;
  }

  // Times count from `first` on.
  std::string Written(Time first, Time last) {
    const Time end = last - first;
    std::stable_sort(moves_.begin(), moves_.end(),
                     [](const FilmMove& a, const FilmMove& b) { return a.begin < b.begin; });
    PageColumns columns;
    Numbers adds, begin, bytes, chunk_count, chunks, crossed, crossed_count, from, part, to, took;
    std::map<uint32_t, uint32_t> numbers;  // of ways
    std::vector<uint32_t> ways;
    const auto place = [&](uint32_t one) -> int64_t {
      return one < kMostPlaces ? one : places_.size() + (one - kMostPlaces);
    };
    for (const FilmMove& move : moves_) {
      begin.push_back(std::max(move.begin - first, Time()).picoseconds());
      took.push_back((move.end - move.begin).picoseconds());
      from.push_back(place(move.from));
      to.push_back(place(move.to));
      part.push_back(move.part);
      adds.push_back(move.adds ? 1 : 0);
      bytes.push_back(std::llround(move.bytes));
      chunk_count.push_back(static_cast<int64_t>(move.chunks.size()));
      for (const auto& [read, written] : move.chunks) {
        chunks.push_back(read);
        chunks.push_back(written);
      }
      crossed_count.push_back(static_cast<int64_t>(move.ways.size()));
      for (const uint32_t way : move.ways) {
        const auto [number, is_new] = numbers.emplace(way, static_cast<uint32_t>(ways.size()));
        if (is_new) ways.push_back(way);
        crossed.push_back(number->second);
      }
    }
    std::vector<uint32_t> record_of_way(cluster_->way_count(), kNotDrawn);
    for (uint32_t i = 0; i < ways.size(); ++i) record_of_way[ways[i]] = i;
    Json json;
    json["schema"] = "rehearse.film.v1";
    json["made_by"] = fmt::format("rehearse {}", Version());
    json["title"] = watched_.title;
    json["kind"] = Name(watched_.collective.kind);
    json["algorithm"] = choice_.algorithm->name();
    json["protocol"] = Name(choice_.protocol);
    json["bytes"] = watched_.collective.bytes.value();
    json["seconds"] = ToSeconds(end).value();
    json["end"] = end.picoseconds();
    json["groups"] = watched_.groups.size();
    json["ranks"] = Json::array();
    for (const PlaceOfFilm& one : places_) json["ranks"].push_back({one.rank, one.name, one.group});
    json["switches"] = switches_;
    json["parts"] = parts_;
    json["full"] = IsSummed(watched_.collective.kind) ? watched_.groups.front().size() : 1;
    json["holds"] = columns.Add(Flat(holds_));
    json["wants"] = columns.Add(Flat(wants_));
    json["ways"] = Json::array();
    for (const uint32_t way : ways)
      json["ways"].push_back({SourceName(way), TargetName(way),
                              lowered_.program.links[lowered_.links[way]].capacity.value()});
    json["cluster"] = ClusterDrawing(cluster_).With(record_of_way);
    json["moves"] = {{"adds", columns.Add(adds)},
                     {"begin", columns.AddRising(begin)},
                     {"bytes", columns.Add(bytes)},
                     {"chunk_count", columns.Add(chunk_count)},
                     {"chunks", columns.Add(chunks)},
                     {"crossed", columns.Add(crossed)},
                     {"crossed_count", columns.Add(crossed_count)},
                     {"from", columns.Add(from)},
                     {"part", columns.Add(part)},
                     {"to", columns.Add(to)},
                     {"took", columns.Add(took)}};
    return Base64(Gzip(columns.Finish(std::move(json))));
  }

  static Numbers Flat(const std::vector<std::vector<uint32_t>>& rows) {
    Numbers flat;
    for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
    return flat;
  }

  static constexpr uint32_t kNoFlow = 0xffffffffu;
  static constexpr uint32_t kMostPlaces = 1u << 20;  // switches come after

  struct DoneMessage {
    uint32_t position = 0;
    uint32_t step = 0;
    Time end;
  };
  struct PlaceOfFilm {
    uint32_t rank = 0;
    std::string name;
    size_t group = 0;
  };

  const std::shared_ptr<const Cluster> cluster_;
  LowerOptions lowering_;
  Router router_;
  ChannelFinder finder_;
  Watched watched_;
  Lowered lowered_;
  Simulation simulation_;
  TransferTable table_;
  Choice choice_;
  std::vector<uint32_t> task_of_flow_;
  std::vector<uint32_t> way_of_link_;  // of the program's links
  std::vector<PlaceOfFilm> places_;
  std::map<uint32_t, uint32_t> place_of_rank_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> place_of_switch_;
  uint32_t switches_ = 0;
  uint32_t first_part_ = 0;  // of the group
  Json parts_ = Json::array();
  std::vector<std::vector<uint32_t>> holds_;
  std::vector<std::vector<uint32_t>> wants_;
  std::vector<FilmMove> moves_;
  std::vector<DoneMessage> done_;  // of the part
};

}  // namespace

std::string FilmData(const Trial& trial, Bytes bytes, std::shared_ptr<const Cluster> cluster) {
  LowerOptions lowering;
  lowering.channels = trial.channels;
  lowering.nccl = trial.nccl;
  return Filming(std::move(cluster), trial.routing, lowering).Run(trial, bytes);
}

std::string FilmDataOfOp(const Scenario& scenario, const std::string& op,
                         ProgressObserver& observer) {
  return Filming(scenario.cluster, scenario.routing, scenario.lowering).Run(scenario, op, observer);
}

}  // namespace rehearse
