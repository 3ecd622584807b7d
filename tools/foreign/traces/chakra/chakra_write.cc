#include "tools/foreign/traces/chakra/chakra_write.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>

#include "sim/base/clock.h"
#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/output_file.h"
#include "sim/base/units.h"
#include "sim/schedule/done_ops.h"
#include "tools/foreign/traces/chakra/chakra_format.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using protozero::pbf_writer;

constexpr int64_t kPicosecondsPerMicrosecond = 1'000'000;

// Appends the message's size, then the message.
void AppendMessage(const std::string& message, std::string* file) {
  protozero::write_varint(std::back_inserter(*file), message.size());
  file->append(message);
}

// Attributes of a message, at its field for them.
class AttributeWriter {
 public:
  AttributeWriter(std::string* message, uint32_t field) : writer_(*message), field_(field) {}

  void Int64(const char* name, int64_t value) {
    Add(name, [&](pbf_writer& one) { one.add_int64(chakra::kAttributeInt64, value); });
  }
  void Int32(const char* name, uint32_t value) {
    const auto signed_value = static_cast<int32_t>(value);
    Add(name, [&](pbf_writer& one) { one.add_int32(chakra::kAttributeInt32, signed_value); });
  }
  void Uint64(const char* name, uint64_t value) {
    Add(name, [&](pbf_writer& one) { one.add_uint64(chakra::kAttributeUint64, value); });
  }
  void Bool(const char* name, bool value) {
    Add(name, [&](pbf_writer& one) { one.add_bool(chakra::kAttributeBool, value); });
  }
  void Text(const char* name, const std::string& value) {
    Add(name, [&](pbf_writer& one) { one.add_string(chakra::kAttributeString, value); });
  }

 private:
  template <typename AddValue>
  void Add(const char* name, AddValue add_value) {
    std::string buffer;
    pbf_writer one(buffer);
    one.add_string(chakra::kAttributeName, name);
    add_value(one);
    writer_.add_message(field_, buffer);
  }

  pbf_writer writer_;
  uint32_t field_;
};

int64_t WholeNumber(double value) {
  constexpr double kMost = 0x1p62;
  return static_cast<int64_t>(std::ceil(std::min(value, kMost)));
}

chakra::CollectiveType TypeOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return chakra::kAllReduce;
    case CollectiveKind::kAllGather:
      return chakra::kAllGather;
    case CollectiveKind::kReduceScatter:
      return chakra::kReduceScatter;
    case CollectiveKind::kAllToAll:
      return chakra::kAllToAll;
    case CollectiveKind::kBroadcast:
      return chakra::kBroadcast;
    case CollectiveKind::kReduce:
      return chakra::kReduce;
    case CollectiveKind::kSendReceive:  // two nodes
    case CollectiveKind::kBarrier:
    case CollectiveKind::kToHost:  // no communication
    case CollectiveKind::kFromHost:
      break;
  }
  return chakra::kBarrier;
}

bool IsShift(const Work& work) {
  const auto* collective = std::get_if<Collective>(&work);
  return collective != nullptr && collective->kind == CollectiveKind::kSendReceive;
}

// The schedule's file, cut in pieces.
struct Pieces {
  std::string schedule;                       // without roles
  std::vector<std::string> roles;             // without ops
  std::vector<std::vector<std::string>> ops;  // by role and place
};

Pieces Cut(const Schedule& schedule, const ScheduleTitle& title) {
  const std::string text = WriteSchedule(schedule, title);
  if (text.size() > kLargestJson) {
    throw Error(
        fmt::format("the schedule in the traces is a text of {}, and only {} could be read back",
                    Print(Bytes(static_cast<double>(text.size()))),
                    Print(Bytes(static_cast<double>(kLargestJson)))));
  }
  auto document = nlohmann::ordered_json::parse(text);
  Pieces pieces;
  for (nlohmann::ordered_json& role : document["roles"]) {
    std::vector<std::string>& ops = pieces.ops.emplace_back();
    ops.reserve(role["ops"].size());
    for (const nlohmann::ordered_json& op : role["ops"]) ops.push_back(op.dump());
    role.erase("ops");
    pieces.roles.push_back(role.dump());
  }
  document.erase("roles");
  pieces.schedule = document.dump();
  return pieces;
}

// Numbers of all groups of those communicators that are used: pg_name.
std::vector<uint32_t> FirstGroups(const Schedule& schedule, uint32_t* count) {
  std::vector<bool> is_used(schedule.communicators.size());
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective != nullptr && !IsHostCopy(collective->kind))
        is_used[collective->communicator.index()] = true;
    }
  }
  std::vector<uint32_t> first(schedule.communicators.size(), 0);
  *count = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] = *count;
    if (is_used[i]) *count += schedule.communicators[i].group_count();
  }
  return first;
}

class RankWriter {
 public:
  RankWriter(const Schedule& schedule, const ChakraDevices& devices, const Pieces& pieces)
      : schedule_(schedule), devices_(devices), pieces_(pieces) {
    first_group_ = FirstGroups(schedule, &group_count_);
    for (const Role& role : schedule.roles) uses_.push_back(UsesOf(role));
  }

  // What the rank's trace depends on: ranks with equal keys have equal traces.
  std::vector<uint32_t> KeyOf(uint32_t rank) const {
    std::vector<uint32_t> key = {schedule_.role_of_rank[rank], devices_.kind_of_rank[rank]};
    const std::vector<uint8_t>& uses = uses_[schedule_.role_of_rank[rank]];
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i] == kNot) continue;
      const auto position = schedule_.communicators[i].PositionOf(rank);
      CHECK(position.has_value());
      key.push_back(position->group);
      if (uses[i] == kByMember) key.push_back(position->member);
    }
    return key;
  }

  std::string Write(uint32_t rank, uint64_t* nodes, Seconds* drift) const {
    const uint32_t place = schedule_.role_of_rank[rank];
    const Role& role = schedule_.roles[place];
    const DoneOps all(role);
    std::vector<uint64_t> first_node;  // of each position
    first_node.reserve(all.size() + size_t{1});
    first_node.push_back(0);
    for (const DoneOp& done : all)
      first_node.push_back(first_node.back() + (IsShift(role.ops[done.place].work) ? 2 : 1));
    *nodes = first_node.back();
    std::string file;
    AppendMessage(HeaderOf(place, *nodes), &file);
    std::vector<std::optional<uint32_t>> latest(role.streams.size());
    int64_t later = 0;  // picoseconds
    for (const DoneOp& done : all) {
      const Op& op = role.ops[done.place];
      std::vector<uint32_t> before;
      for (const OpId id : op.after) before.push_back(all.PositionOf(id, done));
      std::optional<uint32_t>& previous = latest[op.stream.index()];
      if (previous) before.push_back(*previous);
      previous = done.position;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      std::vector<uint64_t> dependencies;
      for (const uint32_t one : before) {
        for (uint64_t node = first_node[one]; node < first_node[one + size_t{1}]; ++node)
          dependencies.push_back(node);
      }
      const std::string* text = done.copy == 0 ? &pieces_.ops[place][done.place] : nullptr;
      AddNodes(rank, op, first_node[done.position], dependencies, text, &file, &later);
    }
    *drift = Seconds(static_cast<double>(later) / kPicosecondsPerSecond);
    return file;
  }

  // {"0": [0, 1], ...}
  std::string Groups() const {
    std::string text;
    for (size_t i = 0; i < first_group_.size(); ++i) {
      const uint32_t next = i + 1 < first_group_.size() ? first_group_[i + 1] : group_count_;
      const Communicator& communicator = schedule_.communicators[i];
      for (uint32_t group = first_group_[i]; group < next; ++group) {
        std::vector<uint32_t> ranks;
        for (uint32_t member = 0; member < communicator.size(); ++member)
          ranks.push_back(communicator.Rank(group - first_group_[i], member));
        text += fmt::format("{}  \"{}\": [{}]", text.empty() ? "" : ",\n", group,
                            fmt::join(ranks, ", "));
      }
    }
    return text.empty() ? "{}\n" : "{\n" + text + "\n}\n";
  }

 private:
  enum Use : uint8_t { kNot, kByGroup, kByMember };

  // How the role's trace tells its ranks apart, by communicator.
  std::vector<uint8_t> UsesOf(const Role& role) const {
    std::vector<uint8_t> uses(schedule_.communicators.size(), kNot);
    for (const Op& op : role.ops) {
      if (std::holds_alternative<Compute>(op.work) || IsHostCopy(op.work)) continue;
      uint8_t& use = uses[CommunicatorOf(op.work).index()];
      const bool has_peers = IsShift(op.work) || !std::holds_alternative<Collective>(op.work);
      use = std::max<uint8_t>(use, has_peers ? kByMember : kByGroup);
    }
    return uses;
  }

  std::string HeaderOf(uint32_t place, uint64_t nodes) const {
    std::string header;
    pbf_writer(header).add_string(chakra::kHeaderVersion, chakra::kVersion);
    AttributeWriter attributes(&header, chakra::kHeaderAttribute);
    attributes.Int64(chakra::kOurRanks, schedule_.ranks());
    attributes.Int64(chakra::kOurRoles, static_cast<int64_t>(schedule_.roles.size()));
    attributes.Int64(chakra::kOurPlace, place);
    attributes.Int64(chakra::kOurNodes, static_cast<int64_t>(nodes));
    attributes.Text(chakra::kOurSchedule, pieces_.schedule);
    attributes.Text(chakra::kOurRole, pieces_.roles[place]);
    return header;
  }

  void AddNodes(uint32_t rank, const Op& op, uint64_t id, const std::vector<uint64_t>& dependencies,
                const std::string* text, std::string* file, int64_t* later) const {
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      const int64_t length = ToTime(devices_.time(rank, op)).picoseconds();
      const int64_t whole = (length + kPicosecondsPerMicrosecond - 1) / kPicosecondsPerMicrosecond;
      *later += whole * kPicosecondsPerMicrosecond - length;
      std::string node = Begin(op, id, chakra::kCompute, dependencies, whole);
      AttributeWriter attributes = Attributes(&node);
      attributes.Int64(chakra::kNumOps, WholeNumber(compute->flops.value()));
      attributes.Uint64(chakra::kTensorSize,
                        static_cast<uint64_t>(WholeNumber(compute->bytes.value())));
      attributes.Int64(chakra::kOurPicoseconds, length);
      End(text, node, file);
      return;
    }
    if (IsHostCopy(op.work)) {
      const auto& copy = std::get<Collective>(op.work);
      const bool stores = copy.kind == CollectiveKind::kToHost;
      std::string node =
          Begin(op, id, stores ? chakra::kMemoryStore : chakra::kMemoryLoad, dependencies, 0);
      Attributes(&node).Uint64(chakra::kTensorSize,
                               static_cast<uint64_t>(WholeNumber(copy.bytes.value())));
      End(text, node, file);
      return;
    }
    const uint32_t index = CommunicatorOf(op.work).index();
    const Communicator& communicator = schedule_.communicators[index];
    const auto position = communicator.PositionOf(rank);
    CHECK(position.has_value());
    const auto member = [&](uint32_t which) { return communicator.Rank(position->group, which); };
    if (const auto* send = std::get_if<Send>(&op.work)) {
      AddMessage(op, id, chakra::kSend, dependencies, {rank, member(send->peer), index},
                 send->bytes, text, file);
    } else if (const auto* receive = std::get_if<Receive>(&op.work)) {
      AddMessage(op, id, chakra::kReceive, dependencies, {member(receive->peer), rank, index},
                 receive->bytes, text, file);
    } else if (IsShift(op.work)) {
      const uint32_t size = communicator.size();
      // Kept apart from the messages of sends and receives.
      const auto tag = static_cast<uint32_t>(schedule_.communicators.size() + index);
      const uint32_t next = member((position->member + 1) % size);
      const uint32_t last = member((position->member + size - 1) % size);
      const Bytes bytes = std::get<Collective>(op.work).bytes;
      AddMessage(op, id, chakra::kSend, dependencies, {rank, next, tag}, bytes, text, file);
      AddMessage(op, id + 1, chakra::kReceive, dependencies, {last, rank, tag}, bytes, nullptr,
                 file);
    } else {
      const auto& collective = std::get<Collective>(op.work);
      std::string node = Begin(op, id, chakra::kCollective, dependencies, 0);
      AttributeWriter attributes = Attributes(&node);
      const bool is_gather = collective.kind == CollectiveKind::kAllGather;
      attributes.Int64(chakra::kCommType, TypeOf(collective.kind));
      attributes.Int64(chakra::kCommSize, WholeNumber(collective.bytes.value() /
                                                      (is_gather ? communicator.size() : 1)));
      attributes.Text(chakra::kGroupName, fmt::format("{}", first_group_[index] + position->group));
      End(text, node, file);
    }
  }

  struct Way {
    uint32_t source, target, tag;
  };
  static void AddMessage(const Op& op, uint64_t id, chakra::NodeType type,
                         const std::vector<uint64_t>& dependencies, const Way& way, Bytes bytes,
                         const std::string* text, std::string* file) {
    std::string node = Begin(op, id, type, dependencies, 0);
    AttributeWriter attributes = Attributes(&node);
    attributes.Int32(chakra::kCommSource, way.source);
    attributes.Int32(chakra::kCommTarget, way.target);
    attributes.Int32(chakra::kCommTag, way.tag);
    attributes.Int64(chakra::kCommSize, WholeNumber(bytes.value()));
    End(text, node, file);
  }

  static std::string Begin(const Op& op, uint64_t id, chakra::NodeType type,
                           const std::vector<uint64_t>& dependencies, int64_t microseconds) {
    std::string node;
    pbf_writer writer(node);
    writer.add_uint64(chakra::kNodeId, id);
    writer.add_string(chakra::kNodeName, op.name);
    writer.add_enum(chakra::kNodeType, static_cast<int32_t>(type));
    // ASTRA-sim's feeder waits only for data dependencies.
    if (!dependencies.empty())
      writer.add_packed_uint64(chakra::kNodeDataDependencies, dependencies.begin(),
                               dependencies.end());
    if (microseconds > 0)
      writer.add_uint64(chakra::kNodeDuration, static_cast<uint64_t>(microseconds));
    return node;
  }
  static AttributeWriter Attributes(std::string* node) {
    AttributeWriter attributes(node, chakra::kNodeAttribute);
    attributes.Bool(chakra::kIsCpuOp, false);
    return attributes;
  }
  static void End(const std::string* text, std::string& node, std::string* file) {
    if (text != nullptr) AttributeWriter(&node, chakra::kNodeAttribute).Text(chakra::kOurOp, *text);
    AppendMessage(node, file);
  }

  const Schedule& schedule_;
  const ChakraDevices& devices_;
  const Pieces& pieces_;
  std::vector<uint32_t> first_group_;  // of each communicator
  uint32_t group_count_ = 0;
  std::vector<std::vector<uint8_t>> uses_;  // by role and communicator
};

// Only characters that are safe in a file's name.
std::string FileNameOf(const std::string& title) {
  std::string name;
  for (const char c : title) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_';
    name += is_plain ? c : '-';
  }
  return name.empty() ? "step" : name;
}

// Removes the files that it was given, unless all went well.
class FilesToKeep {
 public:
  FilesToKeep() = default;
  FilesToKeep(const FilesToKeep&) = delete;
  FilesToKeep& operator=(const FilesToKeep&) = delete;
  ~FilesToKeep() {
    std::error_code ignored;
    for (const std::string& path : paths_) fs::remove(path, ignored);
  }
  void Add(const std::string& path) { paths_.push_back(path); }
  void Keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

}  // namespace

ChakraFiles WriteChakra(const Schedule& schedule, const ScheduleTitle& title,
                        const ChakraDevices& devices, const std::string& folder) {
  CHECK_EQ(devices.kind_of_rank.size(), schedule.ranks());
  const Pieces pieces = Cut(schedule, title);
  const RankWriter writer(schedule, devices, pieces);
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> alike;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank)
    alike[writer.KeyOf(rank)].push_back(rank);

  MakeFolder(folder);
  std::error_code problem;
  if (!fs::is_empty(folder, problem) || problem)
    throw Error(fmt::format("{}: found files there, expected a new or empty folder", folder));
  const std::string name = FileNameOf(title.name);
  ChakraFiles files;
  files.ranks = schedule.ranks();
  files.distinct = static_cast<uint32_t>(alike.size());
  files.groups = name + ".comm_groups.json";
  FilesToKeep written;
  const auto write = [&](const std::string& path, const std::string& content) {
    WriteFileAtomically(path, content);
    written.Add(path);
  };
  const auto path_of = [&](uint32_t rank) {
    return (fs::path(folder) / fmt::format("{}.{}.et", name, rank)).string();
  };
  for (const auto& [key, ranks] : alike) {
    uint64_t nodes = 0;
    Seconds drift;
    const std::string content = writer.Write(ranks[0], &nodes, &drift);
    files.nodes += nodes;
    files.drift = std::max(files.drift, drift);
    write(path_of(ranks[0]), content);
    for (size_t i = 1; i < ranks.size(); ++i) {
      fs::create_hard_link(path_of(ranks[0]), path_of(ranks[i]), problem);
      if (problem)
        write(path_of(ranks[i]), content);
      else
        written.Add(path_of(ranks[i]));
    }
  }
  write((fs::path(folder) / files.groups).string(), writer.Groups());
  written.Keep();
  return files;
}

}  // namespace rehearse
