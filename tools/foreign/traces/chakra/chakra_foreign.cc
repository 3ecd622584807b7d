#include "tools/foreign/traces/chakra/chakra_foreign.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "sim/schedule/op_error.h"
#include "sim/schedule/schedule_check.h"
#include "tools/foreign/traces/chakra/chakra_format.h"
#include "tools/foreign/traces/chakra/chakra_groups.h"
#include "tools/foreign/traces/chakra/chakra_issue.h"
#include "tools/foreign/traces/chakra/chakra_order.h"
#include "tools/foreign/traces/kernel_names.h"

namespace rehearse {
namespace {

// It says what was done outside the devices: with files, batches, checkpoints.
bool IsOutside(const KeptNode& node) {
  return node.type == chakra::kStorage || node.type == chakra::kBatch ||
         node.type == chakra::kCheckpoint || (node.type == chakra::kMetadata && node.has_storage);
}
// The host's part of communication, which does not say what is done: a device's node does.
bool IsHostsPart(const KeptNode& node) {
  if (!node.is_cpu_op) return false;
  switch (node.type) {
    case chakra::kCollective:
      return !node.comm_type || (!node.comm_size && *node.comm_type != uint32_t{chakra::kBarrier});
    case chakra::kSend:
      return !node.comm_target || !node.comm_size;
    case chakra::kReceive:
      return !node.comm_source || !node.comm_size;
    default:
      return false;
  }
}
// Nothing can be played.
bool IsDescription(const KeptNode& node) {
  if (IsHostsPart(node)) return true;
  return IsOutside(node) ? node.nanoseconds == 0 : node.type == chakra::kMetadata;
}

// What must agree between ranks.
struct PostedNode {
  uint32_t node = 0;      // position in its trace
  const char* what = "";  // which collective
  double bytes = 0;
  uint32_t tag = 0;
  uint32_t root = 0;

  bool Agrees(const PostedNode& other) const {
    return std::string_view(what) == other.what && bytes == other.bytes && tag == other.tag &&
           root == other.root;
  }
  std::string Text() const {
    return fmt::format("{} of {} bytes{}", what, bytes,
                       root == 0 ? "" : fmt::format(" with member {} as its root", root));
  }
};
struct TracePosts {
  std::map<std::string, std::vector<PostedNode>> collectives;  // by group
  // By peer and, where messages of a pair overtake each other, tag.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<PostedNode>> sends;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<PostedNode>> receives;
};

struct Counts {
  uint64_t descriptions = 0;
  uint64_t hosts = 0;
  uint64_t untimed = 0;
  uint64_t measured = 0;
  uint64_t products = 0;
  uint64_t transfers = 0;
  uint64_t empty = 0;
  uint64_t rootless = 0;
};

// What a collective node becomes.
struct CollectiveRow {
  uint32_t type = 0;
  const char* what = "";
  CollectiveKind kind = CollectiveKind::kBarrier;
  // Where one rank gives to all or takes from all: the attribute that names it.
  GivenNumber KeptNode::*root = nullptr;
};
constexpr CollectiveRow kCollectiveRows[] = {
    {chakra::kAllReduce, "all-reduce", CollectiveKind::kAllReduce},
    {chakra::kReduce, "reduce", CollectiveKind::kReduce, &KeptNode::comm_target},
    {chakra::kAllGather, "all-gather", CollectiveKind::kAllGather},
    {chakra::kGather, "gather", CollectiveKind::kAllToAll, &KeptNode::comm_target},
    {chakra::kScatter, "scatter", CollectiveKind::kAllToAll, &KeptNode::comm_source},
    {chakra::kBroadcast, "broadcast", CollectiveKind::kBroadcast, &KeptNode::comm_source},
    {chakra::kAllToAll, "all-to-all", CollectiveKind::kAllToAll},
    {chakra::kReduceScatter, "reduce-scatter", CollectiveKind::kReduceScatter},
    {chakra::kReduceScatterBlock, "reduce-scatter", CollectiveKind::kReduceScatter},
    {chakra::kBarrier, "barrier", CollectiveKind::kBarrier},
};

class ForeignReader {
 public:
  explicit ForeignReader(const ChakraTraces& traces)
      : traces_(traces), groups_(ReadChakraGroups(traces.groups, ranks())) {
    for (const ChakraTrace& trace : traces.traces) {
      orders_.push_back(OrderOf(trace));
      missing_ += orders_.back().missing;
    }
    Issue();
  }

  Schedule Read() {
    Build();
    if (MessagesOvertake()) {
      by_tag_ = true;
      Build();
    }
    MatchCollectives();
    MatchMessages();
    try {
      CheckSchedule(schedule_);
    } catch (const OpError& error) {
      const ChakraTrace& trace = traces_.traces[error.role()];
      FailAtNode(trace, trace.nodes[node_of_op_[error.role()][error.op()]], error.what());
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", traces_.name, error.what()));
    }
    return std::move(schedule_);
  }

  void Remark(std::vector<std::string>* remarks) const {
    const auto say = [&](uint64_t count, const char* what) {
      if (count > 0)
        remarks->push_back(fmt::format("{} node{} {}", count, count == 1 ? "" : "s", what));
    };
    say(counts_.descriptions, "left out: they only describe");
    say(counts_.hosts,
        "left out: the host's part of communication, which does not say which it is");
    say(counts_.untimed,
        "not understood and left out: storage, batches or checkpoints without a time");
    say(counts_.measured, "computed as long as measured, on any device");
    say(counts_.products, "without a time: timed as products of square matrices of num_ops");
    say(counts_.empty, "without a time or a size: nothing to do");
    say(counts_.transfers, "of communication: their times are the simulation's");
    say(counts_.rootless,
        "that name no root (comm_src, comm_dst): taken as the group's first rank");
    if (missing_ > 0) {
      remarks->push_back(
          fmt::format("{} dependenc{} left out: on nodes that are not there, or on the node itself",
                      missing_, missing_ == 1 ? "y" : "ies"));
    }
    if (is_world_assumed_) {
      remarks->push_back(
          "nothing is known of the group \"0\": taken as all ranks, as PyTorch calls them");
    }
    if (!noted_.empty())
      remarks->push_back("groups of ranks are those that the traces themselves note");
    std::set<std::string> unknown;
    for (const ChakraTrace& trace : traces_.traces)
      unknown.insert(trace.contents.unknown.begin(), trace.contents.unknown.end());
    constexpr size_t kMost = 12;
    std::vector<std::string> names;
    for (const std::string& name : unknown) {
      if (names.size() < kMost) names.push_back(name);
    }
    if (!names.empty()) {
      remarks->push_back(fmt::format("attributes not understood: {}{}", fmt::join(names, ", "),
                                     unknown.size() > kMost ? ", ..." : ""));
    }
  }

 private:
  uint32_t ranks() const { return static_cast<uint32_t>(traces_.trace_of_rank.size()); }

  void Build() {
    schedule_ = Schedule();
    communicators_.clear();
    posts_.clear();
    node_of_op_.clear();
    counts_ = Counts();
    pairs_ = 0;
    schedule_.role_of_rank = traces_.trace_of_rank;
    for (uint32_t i = 0; i < traces_.traces.size(); ++i) {
      schedule_.roles.emplace_back().name = fmt::format("rank {}", traces_.traces[i].rank);
      posts_.emplace_back();
      node_of_op_.emplace_back();
      AddOps(traces_.traces[i], orders_[i]);
    }
  }

  void AddOps(const ChakraTrace& trace, const NodeOrder& nodes) {
    Role& role = schedule_.roles.back();
    streams_.clear();
    role.ops.reserve(trace.nodes.size());
    // What a node is done with: its op, or, where it is left out, what it waits for itself.
    constexpr uint32_t kNoOp = 0xffffffff;
    std::vector<uint32_t> op_of(trace.nodes.size(), kNoOp);
    std::unordered_map<uint32_t, std::vector<uint32_t>> passed_on;
    std::vector<uint32_t> after;
    for (const uint32_t place : nodes.order) {
      const KeptNode& node = trace.nodes[place];
      after.clear();
      for (const uint32_t one : nodes.Before(place)) {
        if (op_of[one] != kNoOp) after.push_back(op_of[one]);
        const auto others = passed_on.find(one);
        if (others != passed_on.end())
          after.insert(after.end(), others->second.begin(), others->second.end());
      }
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      if (IsDescription(node)) {
        ++(IsHostsPart(node) ? counts_.hosts
           : IsOutside(node) ? counts_.untimed
                             : counts_.descriptions);
        passed_on[place] = after;
        continue;
      }
      // What is sent is taken whenever it comes, so that no send waits for its receiver; only what
      // follows the receive waits for what comes before it.
      if (node.type == chakra::kReceive && !after.empty()) {
        passed_on[place] = after;
        after.clear();
      }
      Op op;
      op.name = *node.name;
      AddWork(trace, place, &op);
      for (const uint32_t one : after) {
        if (role.ops[one].stream != op.stream) op.after.emplace_back(one);
      }
      op_of[place] = static_cast<uint32_t>(role.ops.size());
      node_of_op_.back().push_back(place);
      role.ops.push_back(std::move(op));
    }
  }

  // Brings each trace's nodes into the order in which they would be issued.
  void Issue() {
    std::vector<uint32_t> sharers(traces_.traces.size());
    for (const uint32_t trace : traces_.trace_of_rank) ++sharers[trace];
    std::vector<IssueTrace> issues(traces_.traces.size());
    std::vector<uint32_t> meetings;
    std::map<std::pair<std::string, uint32_t>, uint32_t> meeting_of;  // by group: the k-th
    using Message = std::array<uint32_t, 4>;  // source, target, tag: the k-th
    std::map<Message, uint32_t> message_of;
    for (uint32_t trace = 0; trace < issues.size(); ++trace) {
      const ChakraTrace& own = traces_.traces[trace];
      IssueTrace& issue = issues[trace];
      issue.nodes.resize(own.nodes.size());
      std::map<std::string, uint32_t> engines;
      const auto engine_of = [&](const std::string& name, bool keeps_order) {
        const auto [known, is_new] =
            engines.emplace(name, static_cast<uint32_t>(issue.keeps_order.size()));
        if (is_new) issue.keeps_order.push_back(keeps_order);
        return known->second;
      };
      std::map<std::string, uint32_t> met;
      std::map<Message, uint32_t> passed;
      for (const uint32_t place : orders_[trace].order) {
        const KeptNode& node = own.nodes[place];
        IssueNode& next = issue.nodes[place];
        if (IsDescription(node)) {
          // Each is its own engine's, in effect: it takes no time.
          next.engine = engine_of("describes", false);
          continue;
        }
        next.microseconds = GuessedTime(node);
        if (node.type == chakra::kCollective) {
          const std::string group = node.group->empty() ? "" : GroupOf(own, node);
          next.engine = engine_of("group " + group, true);
          next.kind = IssueKind::kMeeting;
          const auto [known, is_new] = meeting_of.emplace(std::pair(group, met[group]++),
                                                          static_cast<uint32_t>(meetings.size()));
          if (is_new) meetings.push_back(DistinctTraces(group));
          next.with = known->second;
        } else if (node.type == chakra::kSend || node.type == chakra::kReceive) {
          const bool is_send = node.type == chakra::kSend;
          next.kind = is_send ? IssueKind::kSend : IssueKind::kReceive;
          const double peer = (is_send ? node.comm_target : node.comm_source).value_or(ranks());
          const double tag = std::min(node.comm_tag.value_or(0), 4294967295.0);
          next.engine =
              engine_of(fmt::format("{} {} {}", is_send ? "to" : "from", peer, tag), true);
          next.with = kNoMessage;
          // Ranks that share a trace are not told apart here.
          if (!(peer < ranks()) || sharers[trace] > 1 ||
              sharers[traces_.trace_of_rank[static_cast<uint32_t>(peer)]] > 1)
            continue;
          const auto other = static_cast<uint32_t>(peer);
          Message message = {is_send ? own.rank : other, is_send ? other : own.rank,
                             static_cast<uint32_t>(tag), is_send ? 0u : 1u};
          const uint32_t index = passed[message]++;
          message[3] = index;
          next.with =
              message_of.emplace(message, static_cast<uint32_t>(message_of.size())).first->second;
        } else {
          next.engine = engine_of(StreamNameOf(node), false);
        }
      }
    }
    OrderAsIssued(traces_, issues, meetings, static_cast<uint32_t>(message_of.size()), &orders_);
  }

  uint32_t DistinctTraces(const std::string& group) const {
    if (group.empty()) return static_cast<uint32_t>(traces_.traces.size());
    std::set<uint32_t> distinct;
    for (const uint32_t rank : groups_.at(group)) distinct.insert(traces_.trace_of_rank[rank]);
    return static_cast<uint32_t>(distinct.size());
  }

  // In microseconds; of what is not measured, as a device of today would take. It decides only what
  // comes first.
  static double GuessedTime(const KeptNode& node) {
    constexpr double kFlops = 1e8;  // in a microsecond
    constexpr double kMemory = 1e6;
    constexpr double kNetwork = 1e5;
    constexpr double kLatency = 1;
    constexpr double kMicroseconds = 1e-3;  // in a nanosecond
    if (node.type == chakra::kCollective || node.type == chakra::kSend ||
        node.type == chakra::kReceive)
      return kLatency + node.comm_size.value_or(0) / kNetwork;
    if (node.nanoseconds > 0) return static_cast<double>(node.nanoseconds) * kMicroseconds;
    return node.num_ops.value_or(0) / kFlops + node.tensor_size.value_or(0) / kMemory;
  }

  StreamId StreamOf(const std::string& name, StreamKind kind) {
    std::vector<Stream>& streams = schedule_.roles.back().streams;
    const auto [place, is_new] =
        streams_.emplace(std::make_pair(name, kind), static_cast<uint32_t>(streams.size()));
    if (is_new) streams.push_back({name, kind});
    return StreamId(place->second);
  }

  void AddWork(const ChakraTrace& trace, uint32_t place, Op* op) {
    const KeptNode& node = trace.nodes[place];
    switch (node.type) {
      case chakra::kMetadata:  // of storage, with a time
      case chakra::kCompute:
      case chakra::kMemoryLoad:
      case chakra::kMemoryStore:
      case chakra::kStorage:
      case chakra::kBatch:
      case chakra::kCheckpoint:
        op->work = ComputeOf(node);
        op->stream = StreamOf(StreamNameOf(node), StreamKind::kCompute);
        return;
      case chakra::kSend:
      case chakra::kReceive:
        AddMessage(trace, place, op);
        return;
      case chakra::kCollective:
        AddCollective(trace, place, op);
        return;
      default:
        FailAtNode(trace, node, fmt::format("found a node of the unknown type {}", node.type));
    }
  }

  static std::string StreamNameOf(const KeptNode& node) {
    if (node.engine != nullptr) return *node.engine;
    switch (node.type) {
      case chakra::kCompute:
        return node.is_cpu_op ? "cpu" : "compute";
      case chakra::kMemoryLoad:
      case chakra::kMemoryStore:
        return "memory";
      default:
        return "storage";
    }
  }

  Compute ComputeOf(const KeptNode& node) {
    Compute compute;
    compute.flops = Flops(node.num_ops.value_or(0));
    compute.bytes = Bytes(node.tensor_size.value_or(0));
    // An engine other than the device's processors does it: a wait.
    if (node.type != chakra::kCompute || node.is_cpu_op) compute.kernels = 0;
    if (node.nanoseconds > 0) {
      constexpr double kPerSecond = 1e9;
      compute.kind = ComputeKind::kFixed;
      compute.duration = Seconds(static_cast<double>(node.nanoseconds) / kPerSecond);
      ++counts_.measured;
    } else if (compute.flops.value() >= 2) {
      compute.kind = ComputeKind::kGemm;
      const double side = std::cbrt(compute.flops.value() / 2);
      const auto whole = static_cast<uint64_t>(std::max(1.0, std::round(side)));
      compute.gemm = {whole, whole, whole};
      if (compute.bytes.value() == 0) compute.bytes = BytesOf(compute.gemm, compute.dtype);
      compute.kernels = 1;
      ++counts_.products;
    } else if (compute.bytes.value() > 0) {
      compute.kind = ComputeKind::kMemory;
      compute.kernels = 1;
    } else {
      compute.kind = ComputeKind::kFixed;
      compute.kernels = 0;
      ++counts_.empty;
    }
    return compute;
  }

  static Bytes SizeOf(const ChakraTrace& trace, const KeptNode& node) {
    if (!node.comm_size) FailAtNode(trace, node, "expected its size, \"comm_size\"");
    return Bytes(*node.comm_size);
  }

  // By its name in the schedule; `members` if it is new.
  CommunicatorId CommunicatorOf(const std::string& name, const std::vector<uint32_t>* members) {
    const auto [place, is_new] = communicators_.emplace(
        name, CommunicatorId(static_cast<uint32_t>(schedule_.communicators.size())));
    if (is_new && members != nullptr)
      schedule_.communicators.push_back(Communicator::Explicit(name, {*members}));
    else if (is_new)
      schedule_.communicators.push_back(Communicator::Strided(name, {{ranks(), 1}}, {}));
    return place->second;
  }

  void AddMessage(const ChakraTrace& trace, uint32_t place, Op* op) {
    const KeptNode& node = trace.nodes[place];
    const bool is_send = node.type == chakra::kSend;
    const char* key = is_send ? chakra::kCommTarget : chakra::kCommSource;
    const GivenNumber& peer = is_send ? node.comm_target : node.comm_source;
    if (!peer) FailAtNode(trace, node, fmt::format("expected the other rank, \"{}\"", key));
    if (*peer >= ranks() || *peer != std::floor(*peer)) {
      FailAtNode(trace, node,
                 fmt::format("found {} at \"{}\", expected one of {} ranks", *peer, key, ranks()));
    }
    constexpr double kMostTags = 4294967295;
    const auto other = static_cast<uint32_t>(*peer);
    const auto tag = static_cast<uint32_t>(std::min(node.comm_tag.value_or(0), kMostTags));
    const std::string suffix = by_tag_ ? fmt::format(" with tag {}", tag) : "";
    const CommunicatorId communicator = CommunicatorOf("messages" + suffix, nullptr);
    const Bytes bytes = SizeOf(trace, node);
    const PostedNode posted = {place, "message", bytes.value(), tag};
    const std::pair<uint32_t, uint32_t> with = {other, by_tag_ ? tag : 0};
    if (is_send) {
      op->work = Send{communicator, other, bytes};
      posts_.back().sends[with].push_back(posted);
    } else {
      op->work = Receive{communicator, other, bytes};
      posts_.back().receives[with].push_back(posted);
    }
    op->stream =
        StreamOf(fmt::format("{} {}{}", is_send ? "send to" : "receive from", other, suffix),
                 StreamKind::kCommunication);
    ++counts_.transfers;
  }

  static const CollectiveRow& RowOf(const ChakraTrace& trace, const KeptNode& node) {
    std::string known;
    // A kernel's name says it as well.
    const std::optional<std::string> named = CommunicationOfKernel(*node.name);
    for (const CollectiveRow& row : kCollectiveRows) {
      if (node.comm_type ? *node.comm_type == row.type : named == row.what) return row;
      known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", row.what, row.type);
    }
    if (!node.comm_type) FailAtNode(trace, node, "expected which collective it is, \"comm_type\"");
    FailAtNode(trace, node,
               fmt::format("found a collective of type {}, expected {}", *node.comm_type, known));
  }

  // The name of the node's group in groups_, where what its trace notes is taken up.
  std::string GroupOf(const ChakraTrace& trace, const KeptNode& node) {
    if (groups_.contains(*node.group) && !noted_.contains(*node.group)) return *node.group;
    const auto place = static_cast<uint32_t>(&trace - traces_.traces.data());
    const auto [known, is_new] = group_of_.emplace(std::make_pair(place, *node.group), "");
    if (is_new) known->second = TakeUpNoted(trace, node);
    return known->second;
  }

  std::string TakeUpNoted(const ChakraTrace& trace, const KeptNode& node) {
    const std::string shown = VisibleText(*node.group);
    for (const ChakraNote& note : trace.contents.groups) {
      const std::string place = ChakraPlace(trace.file, trace.rank, note.node, note.offset);
      std::vector<uint32_t> members;
      try {
        const NotedGroups groups = ReadNotedGroups(note, place);
        const auto found = groups.find(*node.group);
        if (found == groups.end()) continue;
        members = MembersOfNoted(found->second, ranks());
      } catch (const Error& error) {
        FailAtNode(
            trace, node,
            fmt::format("is of group \"{}\", which the trace notes in a way that cannot be used "
                        "({}): give the JSON of the groups as well",
                        shown, error.what()));
      }
      // Ranks may give one name to different groups.
      std::string name = *node.group;
      if (const auto other = groups_.find(name); other != groups_.end() && other->second != members)
        name += fmt::format(" from rank {}", members.front());
      if (const auto other = groups_.find(name);
          other != groups_.end() && other->second != members) {
        FailAtNode(
            trace, node,
            fmt::format("is of group \"{}\", of which other traces note other ranks: give the "
                        "JSON of the groups as well",
                        shown));
      }
      groups_[name] = members;
      noted_.insert(name);
      return name;
    }
    // Converters that count in floating point write "0.0"; "0" is PyTorch's name for all ranks.
    if (const std::string whole = WithoutFraction(*node.group); whole != *node.group) {
      KeptNode other;
      other.id = node.id;
      other.offset = node.offset;
      other.group = &whole;
      return groups_.contains(whole) && !noted_.contains(whole) ? whole : TakeUpNoted(trace, other);
    }
    if (traces_.groups.empty() && trace.contents.groups.empty() && *node.group == "0") {
      std::vector<uint32_t>& members = groups_["0"];
      members.clear();
      for (uint32_t rank = 0; rank < ranks(); ++rank) members.push_back(rank);
      is_world_assumed_ = true;
      return "0";
    }
    FailAtNode(
        trace, node,
        fmt::format("is of group \"{}\", of which {}", shown,
                    traces_.groups.empty() ? "nothing is known: give the JSON of the groups as well"
                                           : traces_.groups + " says nothing"));
  }

  // "0" of "0.0" and "0.", else what it was.
  static std::string WithoutFraction(const std::string& group) {
    const size_t point = group.find('.');
    if (point == 0 || point == std::string::npos ||
        group.find_first_not_of("0123456789") != point ||
        group.find_first_not_of('0', point + 1) != std::string::npos)
      return group;
    return group.substr(0, point);
  }

  // Which member of the group gives or takes.
  uint32_t RootOf(const ChakraTrace& trace, const KeptNode& node, const CollectiveRow& row,
                  const std::vector<uint32_t>* members) {
    if (row.root == nullptr) return 0;
    const GivenNumber& rank = node.*row.root;
    if (!rank) {
      ++counts_.rootless;
      return 0;
    }
    const uint32_t size = members == nullptr ? ranks() : static_cast<uint32_t>(members->size());
    for (uint32_t member = 0; member < size; ++member) {
      if (*rank == (members == nullptr ? member : (*members)[member])) return member;
    }
    FailAtNode(trace, node,
               fmt::format("has rank {} as its root, which is not in its group", *rank));
  }

  // A gather or a scatter, as messages between the root and each other member, posted together.
  void SpreadFromRoot(const ChakraTrace& trace, const KeptNode& node, bool is_gather, uint32_t size,
                      Collective* collective) {
    constexpr uint64_t kMostPairs = 4'000'000;  // as many values as a schedule's file may have
    const uint64_t pairs = uint64_t{size} * size;
    pairs_ += pairs;
    if (pairs_ > kMostPairs) {
      FailAtNode(
          trace, node,
          fmt::format("is a gather or scatter of {} ranks, which with those before it have {} "
                      "pairs, expected at most {}: write them as messages (COMM_SEND_NODE, "
                      "COMM_RECV_NODE)",
                      size, pairs_, kMostPairs));
    }
    const Bytes part = collective->bytes;
    collective->algorithm = AlgorithmId::kDirect;
    collective->pair_bytes.resize(pairs);
    for (uint32_t member = 0; member < size; ++member) {
      if (member == collective->root) continue;
      const uint32_t from = is_gather ? member : collective->root;
      const uint32_t to = is_gather ? collective->root : member;
      collective->pair_bytes[size_t{from} * size + to] = part;
    }
    collective->bytes = size == 1 ? Bytes(0) : part * (is_gather ? 1.0 : size - 1.0);
    collective->root = 0;
  }

  void AddCollective(const ChakraTrace& trace, uint32_t place, Op* op) {
    const KeptNode& node = trace.nodes[place];
    const std::vector<uint32_t>* members = nullptr;
    std::string group;
    std::string name = "world";
    if (!node.group->empty()) {
      group = GroupOf(trace, node);
      members = &groups_.at(group);
      name = "group " + VisibleText(group);
    }
    const uint32_t size = members == nullptr ? ranks() : static_cast<uint32_t>(members->size());
    const CollectiveRow& row = RowOf(trace, node);
    Collective collective;
    collective.kind = row.kind;
    collective.algorithm = UsualAlgorithm(row.kind);
    collective.communicator = CommunicatorOf(name, members);
    collective.root = RootOf(trace, node, row, members);
    if (row.kind != CollectiveKind::kBarrier) collective.bytes = SizeOf(trace, node);
    if (row.kind == CollectiveKind::kAllGather)
      collective.bytes = collective.bytes * static_cast<double>(size);
    posts_.back().collectives[group].push_back(
        {place, row.what, collective.bytes.value(), 0, collective.root});
    if (row.type == chakra::kGather || row.type == chakra::kScatter)
      SpreadFromRoot(trace, node, row.type == chakra::kGather, size, &collective);
    op->work = std::move(collective);
    op->stream = StreamOf(name, StreamKind::kCommunication);
    ++counts_.transfers;
  }

  void MatchCollectives() const {
    std::map<std::string, std::vector<uint32_t>> used;
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      const uint32_t own = traces_.trace_of_rank[rank];
      for (const auto& entry : posts_[own].collectives) {
        used[entry.first];
        if (entry.first.empty()) continue;
        const std::vector<uint32_t>& members = groups_.at(entry.first);
        if (std::find(members.begin(), members.end(), rank) == members.end()) {
          const ChakraTrace& trace = traces_.traces[own];
          FailAtNode(trace, trace.nodes[entry.second.front().node],
                     fmt::format("rank {} is not a member of group \"{}\"", rank,
                                 VisibleText(entry.first)),
                     rank);
        }
      }
    }
    for (auto& [group, members] : used) {
      if (!group.empty()) {
        members = groups_.at(group);
        continue;
      }
      for (uint32_t rank = 0; rank < ranks(); ++rank) members.push_back(rank);
    }
    for (const auto& entry : used) {
      std::set<uint32_t> compared = {traces_.trace_of_rank[entry.second[0]]};
      for (const uint32_t rank : entry.second) {
        if (compared.insert(traces_.trace_of_rank[rank]).second)
          MatchRanks(entry.first, entry.second[0], rank);
      }
    }
  }

  void MatchRanks(const std::string& group, uint32_t rank, uint32_t other) const {
    static const std::vector<PostedNode> none;
    const auto posts_of = [&](uint32_t one) -> const std::vector<PostedNode>& {
      const TracePosts& posts = posts_[traces_.trace_of_rank[one]];
      const auto found = posts.collectives.find(group);
      return found == posts.collectives.end() ? none : found->second;
    };
    const std::vector<PostedNode>& a = posts_of(rank);
    const std::vector<PostedNode>& b = posts_of(other);
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (i < a.size() && i < b.size() && a[i].Agrees(b[i])) continue;
      const uint32_t blamed = i < b.size() ? other : rank;
      const uint32_t beside = i < b.size() ? rank : other;
      const PostedNode& found = i < b.size() ? b[i] : a[i];
      const std::vector<PostedNode>& others = i < b.size() ? a : b;
      const ChakraTrace& trace = traces_.traces[traces_.trace_of_rank[blamed]];
      const std::string expected = i < others.size()
                                       ? fmt::format("{} by rank {} (node {})", others[i].Text(),
                                                     beside, NodeOf(beside, others[i]).id)
                                       : fmt::format("only {} by rank {}", others.size(), beside);
      FailAtNode(trace, trace.nodes[found.node],
                 fmt::format("collective {} of {} is {} here, but {}", i + 1,
                             group.empty() ? "all ranks" : "group \"" + VisibleText(group) + "\"",
                             found.Text(), expected),
                 blamed);
    }
  }

  const KeptNode& NodeOf(uint32_t rank, const PostedNode& posted) const {
    return traces_.traces[traces_.trace_of_rank[rank]].nodes[posted.node];
  }

  // For all pairs of ranks: what `rank` sends to each, beside what that one receives.
  template <typename Compare>
  void ForPairs(const Compare& compare) const {
    static const std::vector<PostedNode> none;
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      const TracePosts& own = posts_[traces_.trace_of_rank[rank]];
      for (const auto& entry : own.sends) {
        const uint32_t peer = entry.first.first;
        const TracePosts& other = posts_[traces_.trace_of_rank[peer]];
        const auto found = other.receives.find({rank, entry.first.second});
        compare(rank, peer, entry.second, found == other.receives.end() ? none : found->second);
      }
      for (const auto& entry : own.receives) {
        const uint32_t peer = entry.first.first;
        const TracePosts& other = posts_[traces_.trace_of_rank[peer]];
        if (!other.sends.contains({rank, entry.first.second}))
          compare(peer, rank, none, entry.second);
      }
    }
  }

  bool MessagesOvertake() const {
    bool overtake = false;
    ForPairs([&](uint32_t, uint32_t, const std::vector<PostedNode>& sends,
                 const std::vector<PostedNode>& receives) {
      for (size_t i = 0; i < std::min(sends.size(), receives.size()); ++i)
        overtake = overtake || sends[i].tag != receives[i].tag;
    });
    return overtake;
  }

  void MatchMessages() const {
    ForPairs([&](uint32_t source, uint32_t target, const std::vector<PostedNode>& sends,
                 const std::vector<PostedNode>& receives) {
      for (size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        if (i < sends.size() && i < receives.size() && sends[i].Agrees(receives[i])) continue;
        const bool is_sent = i < sends.size();
        const uint32_t blamed = is_sent ? source : target;
        const PostedNode& found = is_sent ? sends[i] : receives[i];
        const ChakraTrace& trace = traces_.traces[traces_.trace_of_rank[blamed]];
        const std::string other =
            i >= receives.size() ? fmt::format("rank {} does not receive", target)
            : !is_sent           ? fmt::format("rank {} does not send", source)
                                 : fmt::format("rank {} receives {} bytes (node {})", target,
                                               receives[i].bytes, NodeOf(target, receives[i]).id);
        FailAtNode(trace, trace.nodes[found.node],
                   fmt::format("message {} of tag {} from rank {} to {} has {} bytes, but {}{}",
                               i + 1, found.tag, source, target, found.bytes, other,
                               is_sent && i < receives.size() ? "" : " it"),
                   blamed);
      }
    });
  }

  const ChakraTraces& traces_;
  ChakraGroups groups_;
  std::set<std::string> noted_;  // groups that a trace itself notes
  std::map<std::pair<uint32_t, std::string>, std::string> group_of_;  // by trace and its name there
  std::vector<NodeOrder> orders_;                                     // of each trace
  bool by_tag_ = false;
  Schedule schedule_;
  std::map<std::string, CommunicatorId> communicators_;
  std::map<std::pair<std::string, StreamKind>, uint32_t> streams_;  // of the latest role
  std::vector<TracePosts> posts_;                                   // of each trace
  std::vector<std::vector<uint32_t>> node_of_op_;                   // of each trace
  Counts counts_;
  uint64_t pairs_ = 0;    // of gathers and scatters
  uint64_t missing_ = 0;  // dependencies
  bool is_world_assumed_ = false;
};

}  // namespace

void ChakraTrace::Keep(const ChakraNode& node) {
  KeptNode& kept = nodes.emplace_back();
  kept.id = node.id;
  kept.offset = node.offset;
  kept.name = &*texts.insert(node.name).first;
  kept.group = &*texts.insert(node.group).first;
  constexpr uint64_t kNanoseconds = 1000;
  kept.nanoseconds = node.microseconds * kNanoseconds;
  kept.type = node.type;
  kept.is_cpu_op = node.is_cpu_op;
  kept.has_storage = node.has_storage;
  kept.num_ops = GivenNumber(node.num_ops);
  kept.tensor_size = GivenNumber(node.tensor_size);
  kept.comm_type = GivenNumber(node.comm_type);
  kept.comm_size = GivenNumber(node.comm_size);
  kept.comm_source = GivenNumber(node.comm_source);
  kept.comm_target = GivenNumber(node.comm_target);
  kept.comm_tag = GivenNumber(node.comm_tag);
  before.Add(node.before);
  before_end.push_back(before.size());
}

Schedule ScheduleOfForeign(const ChakraTraces& traces, std::vector<std::string>* remarks) {
  ForeignReader reader(traces);
  Schedule schedule = reader.Read();
  reader.Remark(remarks);
  return schedule;
}

}  // namespace rehearse
