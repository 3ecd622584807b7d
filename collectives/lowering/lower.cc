#include "collectives/lowering/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "collectives/algorithms/ring.h"
#include "collectives/lowering/folding.h"
#include "collectives/lowering/kernel_runs.h"
#include "collectives/lowering/kernel_times.h"
#include "collectives/lowering/packet_ways.h"
#include "collectives/lowering/plan_flows.h"
#include "sim/base/error.h"
#include "sim/base/machine_memory.h"
#include "sim/base/units.h"
#include "sim/schedule/done_ops.h"
#include "topology/devices/measured_costs.h"

namespace rehearse {
namespace {

// A class of ranks' last ops, while it is lowered.
struct Ends {
  TaskId first;  // where predecessors lead to
  TaskId begin;
  TaskId last;  // where successors start from
  bool meets = false;
};

// What a kernel of a role is on one kind of device, whichever rank runs it.
struct KnownKernel {
  static constexpr Time kNotKnown = Time(-1);

  Time time = kNotKnown;
  double slowdown = 0;  // by what communicates beside it
  // A series that begins with it, whichever rank it was made for, once there is one.
  uint32_t series = 0xffffffffu;
};

// A rank that is lowered.
struct OwnRank {
  uint32_t rank = 0;
  const Role& role;
  uint32_t spec = 0;
  const DeviceSpec& device;
  KnownKernel* kernels = nullptr;  // of its role on its device, by place
};

// Which tasks and flows the copies of a rank's repeat become.
class PiecesOfRank {
 public:
  PiecesOfRank(const Role& role, const ProgramBuilder& builder)
      : builder_(builder), begin_(Here()) {
    if (role.repeats.size() == 1) repeat_ = role.repeats.front();
    next_ = repeat_.begin;
  }

  // The op at this position is lowered next.
  void ComeTo(uint32_t position) {
    if (repeat_.size() == 0 || position != next_ || marks_.size() > repeat_.times + 1) return;
    marks_.push_back(Here());
    next_ += repeat_.size();
  }

  // Whether they are as many for each copy. Called after the last op, like the next.
  bool AreEqual() {
    if (marks_.size() == repeat_.times + 1) marks_.push_back(Here());  // nothing comes after them
    if (repeat_.size() == 0 || marks_.size() != repeat_.times + 2) return false;
    const Counts size = SizeOfPiece();
    for (size_t i = 1; i < marks_.size(); ++i) {
      if (marks_[i].tasks - marks_[i - 1].tasks != size.tasks ||
          marks_[i].flows - marks_[i - 1].flows != size.flows)
        return false;
    }
    return size.tasks > 0;
  }
  CopiedTasks Copies() const {
    const Counts end = Here();
    const Counts size = SizeOfPiece();
    return {.tasks = {begin_.tasks, marks_[0].tasks, size.tasks, end.tasks},
            .flows = {begin_.flows, marks_[0].flows, size.flows, end.flows},
            .count = repeat_.times + 1};
  }

 private:
  struct Counts {
    uint32_t tasks = 0;
    uint32_t flows = 0;
  };
  Counts Here() const { return {builder_.task_count(), builder_.flow_count()}; }
  Counts SizeOfPiece() const {
    return {marks_[1].tasks - marks_[0].tasks, marks_[1].flows - marks_[0].flows};
  }

  const ProgramBuilder& builder_;
  Repeat repeat_;
  uint32_t next_ = 0;          // position at which the next piece begins
  std::vector<Counts> marks_;  // where pieces begin, and the last one ends
  Counts begin_;
};

LowerOptions WithTrunks(LowerOptions options, const Cluster& cluster) {
  options.perturbation = WithTrunkEvents(options.perturbation, cluster);
  return options;
}

// What a process grows by from here to its result, by task and by flow, edges, use sets, events and
// spans included: read off Llama 3 405B on 512 and 1,024 GPUs under ECMP, 1.28 and 2.31 GB with 3.9
// and 7.4 million tasks and 0.56 and 0.98 million flows.
constexpr double kBytesOfTask = 240;
constexpr double kBytesOfFlow = 400;

class Lowering {
 public:
  Lowering(const Schedule& schedule, Router& router, const LowerOptions& options,
           GroupMemory* memory)
      : schedule_(schedule),
        cluster_(router.cluster()),
        options_(WithTrunks(options, cluster_)),
        table_(MakeTransfers(schedule, router, options.fidelity, options.channels, options.nccl,
                             memory)),
        folding_(options.fold && options.fidelity != Fidelity::kPacket
                     ? Fold(schedule, table_, cluster_, options_.perturbation)
                     : NoFolding(table_, cluster_, schedule.ranks())),
        uses_(FoldedUses(table_, folding_, Way::kOwn)),
        use_sets_(uses_.size(), kUnset),
        is_noted_(table_.sites.size(), false),
        meetings_(folding_.sites.size()),
        is_one_class_(folding_.sites.size()),
        classes_at_(folding_.sites.size()),
        parties_at_(folding_.sites.size(), kUnset) {
    const Perturbation& perturbation = options_.perturbation;
    for (const LinkEvent& event : perturbation.events) may_detour_ |= event.factor == 0;
    if (may_detour_) {
      detours_ = FoldedUses(table_, folding_, Way::kDetour);
      detour_sets_.assign(detours_.size(), kUnset);
    }
    CHECK_EQ(options.fidelity == Fidelity::kPacket, options.packets.has_value());
    if (options.packets) {
      packet_ways_.emplace(cluster_, table_, schedule.ranks(), *options.packets);
      CheckLanes(options.packets->lanes);
    }
    CHECK(options.fidelity != Fidelity::kFormula ||
          (perturbation.link_jitter == 0 && perturbation.events.empty()));
  }

  void CheckLanes(const std::vector<std::string>& lanes) const {
    std::vector<std::string> names;
    for (const Communicator& communicator : schedule_.communicators)
      names.push_back(communicator.name());
    for (const std::string& lane : lanes)
      if (std::find(names.begin(), names.end(), lane) == names.end())
        throw Error(fmt::format(
            "network: a lane is for \"{}\", which is no axis of the step; its axes are {}", lane,
            fmt::join(names, ", ")));
  }

  Lowered Run(ProgressObserver& observer) {
    AddLinks();
    AddProcessors();
    ReserveTasks();
    observer.Begin("lowering", "ranks", folding_.ranks.size());
    uint32_t lowered_ranks = 0;
    for (const uint32_t rank : folding_.ranks.representative) {
      LowerRank(rank);
      observer.Done(++lowered_ranks);
      CheckMemory(lowered_ranks);
    }
    if (has_copies_) builder_.SetCopies(std::move(copies_));
    Lowered lowered;
    lowered.program = builder_.Build();
    lowered.flows_of_ops = std::move(flows_of_ops_);
    lowered.rank_classes = folding_.ranks.size();
    lowered.chosen.assign(chosen_.begin(), chosen_.end());
    lowered.links = folding_.links.of;
    if (packet_ways_) lowered.packets = packet_ways_->Take();
    lowered.representative.reserve(schedule_.ranks());
    for (const uint32_t rank_class : folding_.ranks.of) {
      lowered.representative.push_back(folding_.ranks.representative[rank_class]);
    }
    return lowered;
  }

 private:
  static constexpr uint32_t kUnset = 0xffffffffu;

  // Of a program, its play and its timeline.
  static double BytesToPlay(uint32_t tasks, uint32_t flows) {
    return kBytesOfTask * tasks + kBytesOfFlow * flows;
  }

  const Slowdown& SlowdownOf(const DeviceSpec& device) const {
    return options_.slowdown ? *options_.slowdown : device.slowdown;
  }

  // Throws Error if the step needs more memory than there is. What all ranks will take is told from
  // those that have been lowered, after a sixteenth of them and at each doubling. What is not much
  // is not asked about, so that small steps do not depend on the machine.
  void CheckMemory(uint32_t lowered) {
    constexpr uint32_t kFirstLook = 16;
    constexpr double kLittle = 1e9;
    const auto all = static_cast<uint32_t>(folding_.ranks.size());
    if (lowered == 1) next_look_ = all / kFirstLook;
    if (all < kFirstLook || lowered != next_look_) return;
    next_look_ *= 2;
    const double share = static_cast<double>(lowered) / all;
    const double wanted = BytesToPlay(builder_.task_count(), builder_.flow_count()) / share;
    if (lowered == all || (wanted < kLittle && !options_.free_memory)) return;
    const std::optional<uint64_t> left = options_.free_memory ? options_.free_memory : FreeMemory();
    // What is there already is part of what is wanted.
    if (!left || wanted * (1 - share) <= static_cast<double>(*left)) return;
    throw Error(fmt::format(
        "the step is too large for this machine: it needs about {} to be played, and {} are free; "
        "{} of {} ranks do not behave like others. --fidelity formula needs less, as do fewer "
        "micro-batches, and routes that are sprayed rather than hashed",
        Print(Bytes(wanted)), Print(Bytes(static_cast<double>(*left))), all, schedule_.ranks()));
  }

  // One meeting may have more flows than there is room for: looks from four million on at each
  // doubling, when the lists of what has been laid out are copied into ones twice as large.
  void CheckGrowth() {
    next_growth_ *= 2;
    const double wanted = BytesToPlay(builder_.task_count(), builder_.flow_count());
    const std::optional<uint64_t> left = options_.free_memory ? options_.free_memory : FreeMemory();
    if (!left || wanted <= static_cast<double>(*left)) return;
    throw Error(fmt::format(
        "the step is too large for this machine: it has more than {} flows, which need "
        "more than {} to be played, and {} are free. --fidelity fluid or formula needs less",
        builder_.flow_count(), Print(Bytes(wanted)), Print(Bytes(static_cast<double>(*left)))));
  }

  // A rank's op is about one task and one edge.
  void ReserveTasks() {
    for (const Role& role : schedule_.roles) {
      first_op_.push_back(op_count_);
      op_count_ += role.ops.size();
    }
    kernels_.resize(op_count_ * cluster_.device_specs().size());
    runs_.resize(schedule_.roles.size());
    size_t ops = 0;
    size_t tasks = 0;
    for (const uint32_t rank : folding_.ranks.representative) {
      const uint32_t role = schedule_.role_of_rank[rank];
      ops += schedule_.roles[role].OpCount();
      tasks += RunsOf(role).count;
    }
    if (ops > kMostOpsPlayed)
      throw Error(
          fmt::format("the step is too large to be played: found {} ops on the {} ranks that do "
                      "not behave like others, expected at most {} in all",
                      ops, folding_.ranks.size(), kMostOpsPlayed));
    builder_.Reserve(tasks + tasks / 4, tasks + tasks / 2, tasks);
  }

  void AddLinks() {
    const Perturbation& perturbation = options_.perturbation;
    for (const uint32_t i : folding_.links.representative) {
      const ClusterLink& link = cluster_.Link(i);
      // No route crosses a trunk of which all cables are down, so what it carries does not matter.
      const bool is_cut = !(link.bandwidth > BytesPerSecond(0));
      const BytesPerSecond capacity = is_cut ? BytesPerSecond(1) : link.Capacity();
      builder_.AddLink({cluster_.LinkName(i), Name(link.kind),
                        capacity * LinkFactor(perturbation, cluster_, i)});
    }
    for (const LinkEvent& event : perturbation.events) {
      const uint32_t link_class = folding_.links.of[event.link];
      if (folding_.links.representative[link_class] != event.link) continue;
      builder_.AddLinkChange({event.at, LinkId(link_class), event.factor});
    }
  }

  // One processor for each class of ranks, and their hosts, if anything interferes with anything.
  void AddProcessors() {
    bool interferes = options_.slowdown && options_.slowdown->Any();
    bool shares_hosts = false;
    for (const DeviceSpec& spec : cluster_.device_specs()) {
      if (!options_.slowdown) interferes = interferes || spec.slowdown.Any();
      shares_hosts = shares_hosts || spec.host_cores > 0;
    }
    if (!interferes && !shares_hosts) return;
    // How many ranks of each class share the host of the class's representative.
    std::vector<uint32_t> copies(folding_.ranks.size(), 0);
    if (shares_hosts) {
      for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
        const uint32_t rank_class = folding_.ranks.of[rank];
        const uint32_t representative = folding_.ranks.representative[rank_class];
        copies[rank_class] += cluster_.NodeIndexOf(rank) == cluster_.NodeIndexOf(representative);
      }
    }
    std::map<uint32_t, uint32_t> hosts;  // class of nodes -> host
    for (uint32_t i = 0; i < folding_.ranks.size(); ++i) {
      const uint32_t rank = folding_.ranks.representative[i];
      Processor processor;
      processor.slowdown = SlowdownOf(cluster_.DeviceOf(rank)).communication;
      const double cores = cluster_.DeviceOf(rank).host_cores;
      if (cores > 0) {
        const uint32_t node_class = folding_.nodes.of[cluster_.NodeIndexOf(rank)];
        const auto [host, is_new] = hosts.emplace(node_class, 0);
        if (is_new) host->second = builder_.AddHost(cores);
        processor.host = host->second;
        processor.copies = copies[i];
      }
      processors_.push_back(builder_.AddProcessor(processor));
    }
  }

  // Only where anything interferes with anything.
  DelayOwner OwnerOf(uint32_t rank, const KnownKernel& kernel) const {
    return {processors_[folding_.ranks.of[rank]], kernel.slowdown};
  }

  // Which processors its flows slow down: kUnset for none.
  uint32_t PartiesOf(const std::vector<uint32_t>& ranks) {
    if (processors_.empty() || !interferes_) return kUnset;
    std::vector<uint32_t> parties;
    for (const uint32_t rank : ranks) {  // mostly of one class
      const uint32_t party = processors_[folding_.ranks.of[rank]];
      if (parties.empty() || parties.back() != party) parties.push_back(party);
    }
    std::sort(parties.begin(), parties.end());
    parties.erase(std::unique(parties.begin(), parties.end()), parties.end());
    const auto [set, is_new] = party_sets_.emplace(parties, 0);
    if (is_new) set->second = builder_.AddPartySet(parties);
    return set->second;
  }

  uint32_t SiteClassOf(const Site& site) const {
    return folding_.sites.of[static_cast<size_t>(&site - table_.sites.data())];
  }
  // The same for all meetings there.
  uint32_t PartiesAt(const Site& site) {
    if (processors_.empty() || !interferes_) return kUnset;
    uint32_t& known = parties_at_[SiteClassOf(site)];
    if (known == kUnset) known = PartiesOf(site.ranks);
    return known;
  }
  const std::vector<uint32_t>& ClassesAtSite(const Site& site) {
    std::vector<uint32_t>& known = classes_at_[SiteClassOf(site)];
    if (known.empty()) known = ClassesAt(site, folding_);
    return known;
  }

  void LowerRank(uint32_t rank) {
    const uint32_t role_index = schedule_.role_of_rank[rank];
    const OwnRank own_rank = OwnRankOf(rank);
    const Role& role = own_rank.role;
    const std::vector<uint32_t>& slots = table_.slot_of_op[role_index];
    const KernelRuns& runs = RunsOf(role_index);
    std::vector<uint32_t> series(role.ops.size(), kUnset);  // by place of the first op
    const DoneOps ops(role);
    std::vector<TaskId> last(ops.size());  // by position; of a run's last op
    std::vector<TaskId> last_on_stream(role.streams.size());
    std::vector<uint32_t> met(table_.rank_begin[rank + 1] - table_.rank_begin[rank], 0);
    PiecesOfRank pieces(role, builder_);
    uint32_t next = 0;  // the first position behind a run
    for (const DoneOp& done : ops) {
      const uint32_t position = done.position;
      if (position < next) continue;
      const uint32_t place = done.place;
      next = position + runs.length[place];
      pieces.ComeTo(position);
      const Op& op = role.ops[place];
      const uint32_t slot = slots[place];
      Ends own;
      if (runs.length[place] > 1) {
        own = LowerSeries(own_rank, position, place, runs.length[place], &series[place]);
      } else if (slot == kNoTransfer) {
        own = LowerAlone(own_rank, position, place);
      } else {
        const uint32_t flows_before = builder_.flow_count();
        waiting_flows_ = 0;
        own = LowerMeeting(rank, op, table_.SiteOf(rank, slot), met[slot]++);
        const uint32_t first_flow = flows_before + waiting_flows_;
        if (options_.note_flows && builder_.flow_count() > first_flow)
          flows_of_ops_.push_back({rank, position, first_flow, builder_.flow_count()});
      }
      TaskId& previous = last_on_stream[op.stream.index()];
      if (previous.IsSet()) builder_.AddEdge(previous, own.first);
      if (runs.waits[place]) {
        for (const OpId before : op.after) {
          if (role.ops[before.index()].stream != op.stream)
            builder_.AddEdge(last[ops.PositionOf(before, done)], own.first);
        }
      }
      builder_.AddSpan({rank, position, own.meets ? own.first : TaskId(), own.begin, own.last});
      last[next - 1] = own.last;
      previous = own.last;
    }
    if (role.ops.empty()) return;  // a spare device
    has_copies_ = has_copies_ && pieces.AreEqual();
    if (has_copies_) copies_.push_back(pieces.Copies());
  }

  // Replicas share roles and devices.
  OwnRank OwnRankOf(uint32_t rank) {
    const uint32_t role = schedule_.role_of_rank[rank];
    const uint32_t spec = cluster_.SpecOf(rank);
    return {rank, schedule_.roles[role], spec, cluster_.DeviceOf(rank),
            kernels_.data() + spec * op_count_ + first_op_[role]};
  }

  const KernelRuns& RunsOf(uint32_t role) {
    KernelRuns& runs = runs_[role];
    if (runs.length.empty()) runs = FindRuns(schedule_.roles[role], options_.series);
    return runs;
  }

  // `place` is where the op is kept.
  Ends LowerAlone(const OwnRank& own, uint32_t position, uint32_t place) {
    const auto* compute = std::get_if<Compute>(&own.role.ops[place].work);
    if (!compute) {
      const TaskId task = builder_.AddJoin();
      return {task, task, task, false};
    }
    const KnownKernel& kernel = KernelAt(own, place);
    const TaskId task = builder_.AddDelay(ComputeDuration(own, position, place, kernel));
    if (!processors_.empty() && !IsWait(*compute))
      builder_.SetOwner(task, OwnerOf(own.rank, kernel));
    return {task, task, task, false};
  }

  // `known`: the same series of the rank, once there is one.
  Ends LowerSeries(const OwnRank& own, uint32_t position, uint32_t place, uint32_t count,
                   uint32_t* known) {
    if (*known == kUnset || options_.perturbation.compute_jitter > 0)
      *known = SeriesOf(own, position, place, count);
    const TaskId task = builder_.AddTaskOfSeries(*known);
    return {task, task, task, false};
  }

  // Unless ranks are unequally fast, those of a role on one kind of device share the delays.
  uint32_t SeriesOf(const OwnRank& own, uint32_t position, uint32_t place, uint32_t count) {
    const bool are_equal =
        options_.perturbation.straggling.empty() && options_.perturbation.compute_jitter == 0;
    uint32_t& like = own.kernels[place].series;
    if (are_equal && like != kUnset) {
      if (processors_.empty()) return like;
      return builder_.AddSeriesLike(like, processors_[folding_.ranks.of[own.rank]]);
    }
    delays_.clear();
    owners_.clear();
    for (uint32_t i = 0; i < count; ++i) {
      const KnownKernel& kernel = KernelAt(own, place + i);
      delays_.push_back(ComputeDuration(own, position + i, place + i, kernel));
      if (!processors_.empty()) owners_.push_back(OwnerOf(own.rank, kernel));
    }
    const uint32_t series = builder_.AddSeries(delays_, owners_);
    like = series;
    return series;
  }

  // Each kernel of a role is worked out once on each kind of device.
  const KnownKernel& KernelAt(const OwnRank& own, uint32_t place) {
    KnownKernel& known = own.kernels[place];
    if (known.time == KnownKernel::kNotKnown) {
      const Op& op = own.role.ops[place];
      const auto& compute = std::get<Compute>(op.work);
      known.time =
          kernel_times_.Of(own.device, own.spec, compute, op.tag.phase == Phase::kBackward);
      known.slowdown = ::rehearse::SlowdownOf(SlowdownOf(own.device), compute);
      if (options_.is_always_slowed && known.time < kBeyondTime) {
        known.time = ToTime((1 + known.slowdown) * ToSeconds(known.time));
        known.slowdown = 0;
      }
    }
    return known;
  }

  // Of the op at the position, which is kept at the place.
  Time ComputeDuration(const OwnRank& own, uint32_t position, uint32_t place,
                       const KnownKernel& kernel) const {
    const Perturbation& perturbation = options_.perturbation;
    if (perturbation.straggling.empty() && perturbation.compute_jitter == 0) return kernel.time;
    if (IsWait(std::get<Compute>(own.role.ops[place].work))) return kernel.time;
    const double factor = ComputeFactor(perturbation, own.rank, position);
    if (factor == 1 || kernel.time >= kBeyondTime) return kernel.time;
    return ToTime(factor * ToSeconds(kernel.time));
  }

  // `site` is this rank's own; the class's representative stands for it. The k-th op there makes
  // the meeting if no other class of ranks has yet.
  Ends LowerMeeting(uint32_t rank, const Op& op, uint32_t site, uint32_t k) {
    const uint32_t site_class = folding_.sites.of[site];
    std::vector<Meeting>& meetings = meetings_[site_class];
    CHECK_LE(k, meetings.size());
    if (k == meetings.size()) {
      meetings.push_back(MakeMeeting(op, folding_.sites.representative[site_class]));
    }
    const Meeting& meeting = meetings[k];
    const auto own_end = meeting.ends.find(folding_.ranks.of[rank]);
    const TaskId end = own_end == meeting.ends.end() ? meeting.end : own_end->second;
    if (IsOneClass(site_class)) return {meeting.begin, meeting.begin, end, false};
    const TaskId arrival = builder_.AddJoin();
    builder_.AddEdge(arrival, meeting.begin);
    return {arrival, meeting.begin, end, true};
  }

  // Whether all ranks of such a site arrive together, as members of one class.
  bool IsOneClass(uint32_t site_class) {
    std::optional<bool>& known = is_one_class_[site_class];
    if (!known) {
      const auto& ranks = table_.sites[folding_.sites.representative[site_class]].ranks;
      known = std::all_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
        return folding_.ranks.of[rank] == folding_.ranks.of[ranks.front()];
      });
    }
    return *known;
  }

  Meeting MakeMeeting(const Op& op, uint32_t site_index) {
    const Site& site = table_.sites[site_index];
    const GroupPlan* plan = table_.PlanOf(site);
    const Bytes bytes = CommunicationBytes(op.work);
    if (plan != nullptr) NoteChoice(std::get<Collective>(op.work), *plan, site_index);
    interferes_ = !IsCopied(op.work);
    if (packet_ways_)
      lane_ = packet_ways_->LaneOf(schedule_.communicators[CommunicatorOf(op.work).index()].name());
    Meeting meeting;
    meeting.begin = builder_.AddJoin();
    meeting.move = meeting.begin;
    if (const std::optional<Seconds> measured = MeasuredDuration(op.work, site)) {
      AddDelay(*measured, meeting);
      return meeting;
    }
    if (plan != nullptr) AddStart(site, plan->choice, meeting);
    if (plan == nullptr) {
      AddRing(site, 1, bytes.value(), meeting);
    } else if (plan->parts.empty()) {
      const uint32_t size = static_cast<uint32_t>(site.ranks.size());
      AddRing(site, RingSteps(std::get<Collective>(op.work).kind, size),
              bytes.value() / size / plan->choice.bandwidth_share, meeting);
    } else if (options_.fidelity == Fidelity::kFormula) {
      AddDelay(plan->time, meeting);
    } else if (site.fidelity == Fidelity::kFluid) {
      AddRoundFlows(site, ClassesAtSite(site), *plan, bytes, sink_, &meeting);
    } else {
      AddMessageFlows(site, *plan, bytes, sink_, &meeting);
    }
    return meeting;
  }

  // Until the first step begins. What launching takes is the host's; the library's own latency is
  // spent by kernels that are there already, and what is beside them is slowed as while bytes move
  // (closed forms slow nothing).
  void AddStart(const Site& site, const Choice& choice, Meeting& meeting) {
    const bool is_kernel = choice.latency > Seconds(0) && options_.fidelity != Fidelity::kFormula;
    const uint32_t parties = is_kernel ? PartiesAt(site) : kUnset;
    const Time all = ToTime(choice.start);
    const Time in_kernels = parties == kUnset ? Time() : ToTime(choice.latency);
    const auto add = [&](TaskId task) {
      builder_.AddEdge(meeting.move, task);
      meeting.move = task;
    };
    if (all > in_kernels) add(builder_.AddDelay(all - in_kernels));
    if (in_kernels == Time()) return;
    Flow wait;
    wait.latency = in_kernels;
    wait.use_set = NoLinks();
    add(builder_.AddFlow(wait));
    ++waiting_flows_;
    builder_.SetParties(meeting.move, parties);
    if (packet_ways_) packet_ways_->AddFlow(PacketWays::kNone);
  }

  // Whether copy engines move it.
  bool IsCopied(const Work& work) const {
    if (IsHostCopy(work)) return true;
    const auto* collective = std::get_if<Collective>(&work);
    if (collective == nullptr) return false;
    if (collective->copied) return true;
    if (options_.copy_engines.empty()) return false;
    const std::string& name = schedule_.communicators[collective->communicator.index()].name();
    return std::find(options_.copy_engines.begin(), options_.copy_engines.end(), name) !=
           options_.copy_engines.end();
  }

  void NoteChoice(const Collective& collective, const GroupPlan& plan, uint32_t site) {
    const bool is_usual = plan.choice.algorithm->id == UsualAlgorithm(collective.kind);
    if (collective.protocol == Protocol::kNone && is_usual) return;
    // All that a site is asked for is equal, except for rings on bare links.
    if (collective.protocol != Protocol::kNone && is_noted_[site]) return;
    is_noted_[site] = true;
    chosen_.insert({schedule_.communicators[collective.communicator.index()].name(),
                    Name(collective.kind), collective.bytes, plan.choice.algorithm->name(),
                    Name(plan.choice.protocol), plan.choice.nccl_channels});
  }

  // The rings of a site, or the path of a pair or of a host copy.
  void AddRing(const Site& site, uint32_t steps, double step_bytes, Meeting& meeting) {
    if (options_.fidelity == Fidelity::kFormula) {
      AddClosedForm(site, steps, step_bytes, meeting);
    } else if (site.fidelity == Fidelity::kFluid || site.is_pair || site.ranks.size() == 1) {
      AddRings(site, steps, step_bytes, meeting);
    } else {
      AddSteps(site, steps, step_bytes, meeting);
    }
  }

  // How long a calibration says that it takes, whatever the links.
  std::optional<Seconds> MeasuredDuration(const Work& work, const Site& site) const {
    if (!cluster_.measured_collectives() || IsHostCopy(work)) return std::nullopt;
    const MeasuredCollectives& costs = *cluster_.measured_collectives();
    const auto* collective = std::get_if<Collective>(&work);
    const std::optional<MeasuredTime> measured =
        collective != nullptr ? TimeOf(costs, *collective, static_cast<uint32_t>(site.ranks.size()))
                              : MessageTimeOf(costs, CommunicationBytes(work));
    if (!measured) return std::nullopt;
    return measured->time;
  }

  void AddClosedForm(const Site& site, uint32_t steps, double step_bytes, Meeting& meeting) {
    Seconds longest;
    for (uint32_t i = site.transfer_begin; i < site.transfer_end; ++i) {
      const Transfer& transfer = table_.transfers[i];
      const Bytes step(step_bytes * transfer.share);
      longest = std::max(longest, steps * (step / transfer.idle_rate + transfer.step_latency));
    }
    AddDelay(longest, meeting);
  }

  void AddDelay(Seconds time, Meeting& meeting) {
    meeting.end = builder_.AddDelay(ToTime(time));
    builder_.AddEdge(meeting.move, meeting.end);
  }

  TaskId AddTransfer(uint32_t transfer_class, Flow flow, uint32_t parties) {
    flow.use_set = UseSet(transfer_class);
    if (packet_ways_) {
      const uint32_t set =
          packet_ways_->SetOf(folding_.transfers.representative[transfer_class], lane_);
      const Time delay = packet_ways_->DelayOf(set);
      flow.latency = flow.latency > delay ? flow.latency - delay : Time();
      packet_ways_->AddFlow(set);
    }
    const TaskId task = builder_.AddFlow(flow);
    if (builder_.flow_count() == next_growth_) CheckGrowth();
    SetDetour(task, transfer_class);
    if (parties != kUnset) builder_.SetParties(task, parties);
    return task;
  }

  // One coupled flow for each class of the site's transfers.
  void AddRings(const Site& site, uint32_t steps, double step_bytes, Meeting& meeting) {
    const std::vector<uint32_t>& classes = ClassesAtSite(site);
    const uint32_t parties = PartiesAt(site);
    if (classes.size() > 1) meeting.end = builder_.AddJoin();
    for (const uint32_t transfer_class : classes) {
      const Transfer& transfer =
          table_.transfers[folding_.transfers.representative[transfer_class]];
      Flow flow;
      flow.bytes = steps * step_bytes * transfer.share;
      flow.latency = ToTime(steps * transfer.step_latency);
      const TaskId task = AddTransfer(transfer_class, flow, parties);
      builder_.AddEdge(meeting.move, task);
      if (classes.size() > 1) {
        builder_.AddEdge(task, meeting.end);
      } else {
        meeting.end = task;
      }
    }
  }

  void AddSteps(const Site& site, uint32_t steps, double step_bytes, Meeting& meeting) {
    std::map<uint32_t, TaskId> edges;  // by class
    for (const uint32_t transfer_class : ClassesAtSite(site)) {
      const Transfer& transfer =
          table_.transfers[folding_.transfers.representative[transfer_class]];
      Flow flow;
      flow.bytes = step_bytes * transfer.share;
      flow.latency = ToTime(transfer.step_latency);
      flow.steps = steps;
      const TaskId task =
          AddTransfer(transfer_class, flow, PartiesOf({transfer.from, transfer.to}));
      builder_.AddEdge(meeting.move, task);
      edges.emplace(transfer_class, task);
    }
    for (const auto& [transfer_class, task] : edges) {
      const Transfer& transfer =
          table_.transfers[folding_.transfers.representative[transfer_class]];
      builder_.Chain(edges.at(folding_.transfers.of[transfer.upstream]), task);
    }
    // A rank is done when the edges that it sends and receives on are.
    std::map<std::pair<uint32_t, uint32_t>, bool> waits;  // (rank class, edge class)
    for (uint32_t i = site.transfer_begin; i < site.transfer_end; ++i) {
      const Transfer& transfer = table_.transfers[i];
      for (const uint32_t rank : {transfer.from, transfer.to}) {
        const uint32_t rank_class = folding_.ranks.of[rank];
        const auto [end, is_new] = meeting.ends.emplace(rank_class, TaskId());
        if (is_new) end->second = builder_.AddJoin();
        if (waits.emplace(std::make_pair(rank_class, folding_.transfers.of[i]), true).second) {
          builder_.AddEdge(edges.at(folding_.transfers.of[i]), end->second);
        }
      }
    }
  }

  uint32_t UseSet(uint32_t transfer_class) {
    uint32_t& use_set = use_sets_[transfer_class];
    if (use_set == kUnset) use_set = builder_.AddUseSet(uses_[transfer_class]);
    return use_set;
  }

  uint32_t NoLinks() {
    if (no_links_ == kUnset) no_links_ = builder_.AddUseSet({});
    return no_links_;
  }

  void SetDetour(TaskId flow, uint32_t transfer_class) {
    if (!may_detour_ || detours_[transfer_class].empty()) return;
    uint32_t& detour = detour_sets_[transfer_class];
    if (detour == kUnset) detour = builder_.AddUseSet(detours_[transfer_class]);
    builder_.SetAlternative(flow, detour);
  }

  const Schedule& schedule_;
  const Cluster& cluster_;
  const LowerOptions options_;
  const TransferTable table_;
  const Folding folding_;
  const std::vector<std::vector<LinkUse>> uses_;  // by class of transfers
  std::vector<uint32_t> use_sets_;                // by class of transfers
  uint32_t no_links_ = kUnset;                    // the use set of what waits and moves nothing
  bool may_detour_ = false;
  uint32_t next_look_ = 0;                     // CheckMemory: after this many ranks
  uint32_t next_growth_ = uint32_t{1} << 22;   // CheckGrowth: at this many flows
  std::vector<std::vector<LinkUse>> detours_;  // by class of transfers, if links fail
  std::vector<uint32_t> detour_sets_;
  std::vector<bool> is_noted_;                  // by site, in chosen_
  std::vector<std::vector<Meeting>> meetings_;  // [class of sites][k]
  // By class of sites, once known:
  std::vector<std::optional<bool>> is_one_class_;
  std::vector<std::vector<uint32_t>> classes_at_;  // of transfers
  std::vector<uint32_t> parties_at_;
  std::vector<size_t> first_op_;  // by role: its first op, counted over all roles
  size_t op_count_ = 0;
  std::vector<KernelRuns> runs_;      // by role, once known
  std::vector<KnownKernel> kernels_;  // [device spec][op]
  KernelTimes kernel_times_{schedule_.model_flops > Flops(0)};
  std::vector<Time> delays_;          // while a series is added: its kernels
  std::vector<DelayOwner> owners_;    // likewise
  std::vector<uint32_t> processors_;  // by class of ranks; empty where nothing interferes
  std::map<std::vector<uint32_t>, uint32_t> party_sets_;
  bool interferes_ = true;      // what is being laid out, with the kernels beside it
  uint32_t waiting_flows_ = 0;  // of the op that is being laid out: those that move nothing
  std::set<ChosenCollective> chosen_;
  std::vector<FlowsOfOp> flows_of_ops_;
  std::vector<CopiedTasks> copies_;  // by class of ranks
  bool has_copies_ = true;           // all have so far
  std::optional<PacketWays> packet_ways_;
  uint32_t lane_ = 0;  // of the op that is lowered
  ProgramBuilder builder_;
  const FlowSink sink_{
      table_, folding_, builder_,
      [this](uint32_t transfer_class, const Flow& flow, const Site& site) {
        return AddTransfer(transfer_class, flow, PartiesAt(site));
      },
      [this](uint32_t transfer_class, const Flow& flow, const std::vector<uint32_t>& ranks) {
        return AddTransfer(transfer_class, flow, PartiesOf(ranks));
      }};
};

}  // namespace

Lowered Lower(const Schedule& schedule, Router& router, const LowerOptions& options,
              ProgressObserver& observer, GroupMemory* memory) {
  if (schedule.ranks() != router.cluster().device_count()) {
    throw Error(fmt::format("the schedule has {} ranks, but cluster \"{}\" has {} devices",
                            schedule.ranks(), router.cluster().name(),
                            router.cluster().device_count()));
  }
  observer.Begin("finding out which ranks and links behave alike", "", 0);
  return Lowering(schedule, router, options, memory).Run(observer);
}

}  // namespace rehearse
