// Chakra execution traces: ours there and back, and those that others could have written.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/traces/chakra/chakra_file.h"
#include "tools/foreign/traces/chakra/chakra_format.h"
#include "tools/foreign/traces/chakra/chakra_read.h"
#include "tools/foreign/traces/chakra/chakra_write.h"

namespace rehearse {
namespace chakra_test {

namespace fs = std::filesystem;
using protozero::pbf_writer;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChakraTest : public ::testing::Test {
 protected:
  ChakraTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              (std::string("chakra-") + info->name() + "-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~ChakraTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ImportedChakra Import() const { return ImportChakra({folder_.string()}); }
  Schedule Imported() const {
    const std::string text = Import().text;
    const JsonDocument document = JsonDocument::FromText(text, "imported");
    return ReadSchedule(document.Root());
  }
  void ExpectMistake(const std::vector<std::string>& parts) const {
    try {
      Import();
      ADD_FAILURE() << "expected a mistake with " << parts[0];
    } catch (const Error& error) {
      for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  // True if it is read; only an Error may refuse it.
  bool IsRead() const {
    try {
      Import();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  fs::path folder_;
};

// ---- Ours ---------------------------------------------------------------------------------------

constexpr const char* kPipeline = R"({"schema": "rehearse.schedule.v1", "ranks": 4,
  "role_of_rank": [["first", 2], ["last", 2]],
  "communicators": [{"name": "data", "groups": ["0-1", "2-3"]},
                    {"name": "pipe", "groups": ["0,2", "1,3"]}],
  "roles": [
    {"name": "first", "repeats": [{"begin": 0, "end": 1, "times": 2}],
     "buffers": [{"name": "x", "kind": "activation", "shape": [8, 8]}], "ops": [
      {"name": "forward", "gemm": {"m": 8, "n": 8, "k": 8}},
      {"name": "send", "send_to": 1, "communicator": "pipe", "bytes": "1MiB", "after": "forward"},
      {"name": "shift", "collective": "send-receive", "communicator": "data", "bytes": "3MiB"},
      {"name": "gather", "collective": "all-gather", "communicator": "data", "bytes": "2MiB"},
      {"name": "update", "compute": "memory", "bytes": "1MiB", "after": ["shift", "send"]}]},
    {"name": "last", "ops": [
      {"name": "receive", "receive_from": 0, "communicator": "pipe", "bytes": "1MiB"},
      {"name": "shift", "collective": "send-receive", "communicator": "data", "bytes": "3MiB"},
      {"name": "gather", "collective": "all-gather", "communicator": "data", "bytes": "2MiB"}]}]})";

Schedule ScheduleOf(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "test");
  return ReadSchedule(document.Root());
}

ChakraDevices Taking(const Schedule& schedule, Seconds time) {
  return {std::vector<uint32_t>(schedule.ranks(), 0), [time](uint32_t, const Op&) { return time; }};
}

TEST_F(ChakraTest, AScheduleComesBackAsItWas) {
  const Schedule schedule = ScheduleOf(kPipeline);
  const ScheduleTitle title = {"a step", "für alle"};
  const ChakraFiles files =
      WriteChakra(schedule, title, Taking(schedule, Seconds(1.5e-6)), folder_.string());
  EXPECT_EQ(files.ranks, 4u);
  EXPECT_EQ(files.distinct, 4u);  // each has a peer of its own
  // Three times forward, send, the shift's two, gather, update; receive, two, gather: twice each.
  EXPECT_EQ(files.nodes, 2u * 8 + 2 * 4);
  // Four ops of 1.5 us are 2 us each to others.
  EXPECT_NEAR(files.drift.value(), 4 * 0.5e-6, 1e-15);
  EXPECT_EQ(files.groups, "a-step.comm_groups.json");
  EXPECT_EQ(Read(files.groups), "{\n  \"0\": [0, 1],\n  \"1\": [2, 3]\n}\n");
  const ImportedChakra imported = Import();
  EXPECT_EQ(imported.text, WriteSchedule(schedule, title));
  EXPECT_EQ(imported.ranks, 4u);
  EXPECT_TRUE(imported.remarks.empty());
}

TEST_F(ChakraTest, OthersReadPlainNodes) {
  const Schedule schedule = ScheduleOf(kPipeline);
  WriteChakra(schedule, {"s", ""}, Taking(schedule, Seconds(1.5e-6)), folder_.string());
  std::vector<ChakraNode> nodes;
  const ChakraContents contents = ReadChakraFile(
      (folder_ / "s.3.et").string(), 3,
      [&](const ChakraHeader&, ChakraNode&& node) { nodes.push_back(std::move(node)); });
  EXPECT_EQ(contents.header.version, "0.0.4");
  EXPECT_TRUE(contents.unknown.empty());
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0].type, chakra::kReceive);
  EXPECT_EQ(nodes[0].comm_source, 1);
  EXPECT_EQ(nodes[0].comm_target, 3);
  EXPECT_EQ(nodes[0].comm_size, 1 << 20);
  // To the next of {2, 3}, around.
  EXPECT_EQ(nodes[1].type, chakra::kSend);
  EXPECT_EQ(nodes[1].comm_target, 2);
  EXPECT_EQ(nodes[2].type, chakra::kReceive);
  EXPECT_EQ(nodes[2].comm_source, 2);
  EXPECT_NE(nodes[1].comm_tag, nodes[0].comm_tag);
  // On the shift's stream; each of two ranks contributes half of 2 MiB.
  EXPECT_EQ(nodes[3].type, chakra::kCollective);
  EXPECT_EQ(nodes[3].comm_type, chakra::kAllGather);
  EXPECT_EQ(nodes[3].comm_size, 1 << 20);
  EXPECT_EQ(nodes[3].group, "1");
  EXPECT_THAT(nodes[3].before, ElementsAre(1, 2));
}

TEST_F(ChakraTest, EqualRanksAreHardLinks) {
  const Schedule schedule = ScheduleOf(R"({"schema": "rehearse.schedule.v1", "ranks": 4,
    "communicators": [{"name": "all", "ranks": "all"}],
    "ops": [{"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "1MiB"}]})");
  const ChakraFiles files =
      WriteChakra(schedule, {"s", ""}, Taking(schedule, Seconds(0)), folder_.string());
  EXPECT_EQ(files.distinct, 1u);
  EXPECT_EQ(fs::hard_link_count(folder_ / "s.3.et"), 4u);
  EXPECT_EQ(Import().text, WriteSchedule(schedule, {"s", ""}));
  // Existing files are not overwritten.
  EXPECT_THROW(WriteChakra(schedule, {"s", ""}, Taking(schedule, Seconds(0)), folder_.string()),
               Error);
}

// Two groups of which no op has a peer: each has its number in the traces of its own ranks.
TEST_F(ChakraTest, RanksOfDifferentGroupsHaveDifferentTraces) {
  const Schedule schedule = ScheduleOf(R"({"schema": "rehearse.schedule.v1", "ranks": 4,
    "communicators": [{"name": "data", "groups": ["0-1", "2-3"]}],
    "ops": [{"name": "sum", "collective": "all-reduce", "communicator": "data", "bytes": "1MiB"}]})");
  const ChakraFiles files =
      WriteChakra(schedule, {"s", ""}, Taking(schedule, Seconds(1e-6)), folder_.string());
  EXPECT_EQ(files.distinct, 2u);
  EXPECT_EQ(Read("s.0.et"), Read("s.1.et"));
  EXPECT_EQ(Read("s.2.et"), Read("s.3.et"));
  EXPECT_NE(Read("s.0.et"), Read("s.2.et"));
}

TEST_F(ChakraTest, RanksOfTheScheduleMayNotBeMissing) {
  const Schedule schedule = ScheduleOf(kPipeline);
  WriteChakra(schedule, {"s", ""}, Taking(schedule, Seconds(0)), folder_.string());
  const std::string last = Read("s.3.et");
  fs::remove(folder_ / "s.3.et");
  ExpectMistake({"missing ranks: found 3 of the 4 traces of \"s\""});
  Write("s.3.et", Read("s.0.et"));
  ExpectMistake({"rank 3 has the trace of another role"});
  Write("s.3.et", last);
  fs::remove(folder_ / "s.1.et");
  ExpectMistake({"missing rank 1"});
}

TEST_F(ChakraTest, ATruncatedTraceIsRefusedWhereverItEnds) {
  const Schedule schedule = ScheduleOf(kPipeline);
  WriteChakra(schedule, {"s", ""}, Taking(schedule, Seconds(1e-6)), folder_.string());
  const std::string whole = Read("s.3.et");
  for (size_t size = 0; size < whole.size(); ++size) {
    Write("s.3.et", whole.substr(0, size));
    EXPECT_FALSE(IsRead()) << size << " of " << whole.size() << " bytes";
  }
  Write("s.3.et", whole.substr(0, whole.size() - 1));
  ExpectMistake({"s.3.et: rank 3, byte ", "the file ends after"});
}

// ---- Others' ------------------------------------------------------------------------------------

// A trace as it lies in a file, node by node.
class TraceText {
 public:
  TraceText() {
    std::string header;
    pbf_writer(header).add_string(chakra::kHeaderVersion, "0.0.4");
    Append(header);
  }

  using Add = std::function<void(pbf_writer&)>;
  TraceText& Node(uint64_t id, uint32_t type, const std::vector<uint64_t>& after,
                  const std::vector<std::pair<const char*, int64_t>>& numbers = {},
                  uint64_t microseconds = 0, const std::string& group = "") {
    std::string node;
    pbf_writer writer(node);
    writer.add_uint64(chakra::kNodeId, id);
    writer.add_string(chakra::kNodeName, "node");
    writer.add_uint32(chakra::kNodeType, type);
    // One kind packed, as proto3 does, the other not.
    if (!after.empty())
      writer.add_packed_uint64(chakra::kNodeDataDependencies, after.begin(), after.begin() + 1);
    for (size_t i = 1; i < after.size(); ++i)
      writer.add_uint64(chakra::kNodeControlDependencies, after[i]);
    if (microseconds > 0) writer.add_uint64(chakra::kNodeDuration, microseconds);
    for (const auto& number : numbers) {
      Attribute(&writer, number.first,
                [&](pbf_writer& one) { one.add_int64(chakra::kAttributeInt64, number.second); });
    }
    if (!group.empty()) {
      Attribute(&writer, chakra::kGroupName,
                [&](pbf_writer& one) { one.add_string(chakra::kAttributeString, group); });
    }
    offsets_.push_back(text_.size());
    Append(node);
    return *this;
  }
  // What PyTorch notes of its groups.
  TraceText& Groups(uint64_t id, const std::string& values) {
    return Nested(id, chakra::kMetadata, chakra::kGroupsNode, 0, chakra::kNodeInputs,
                  [&](pbf_writer& inputs) { inputs.add_string(chakra::kInputValues, values); });
  }
  // 4 KiB read from a file (FsOp in StorageInfo).
  TraceText& ReadsFile(uint64_t id, uint32_t type, uint64_t microseconds) {
    return Nested(id, type, "read", microseconds, chakra::kNodeStorage, [](pbf_writer& storage) {
      std::string read;
      pbf_writer(read).add_uint64(5, 4096);
      storage.add_uint32(1, 1);
      storage.add_message(10, read);
    });
  }
  TraceText& Compute(uint64_t id, const std::vector<uint64_t>& after, uint64_t microseconds) {
    return Node(id, chakra::kCompute, after, {}, microseconds);
  }
  TraceText& Collective(uint64_t id, const std::vector<uint64_t>& after, int64_t type, int64_t size,
                        const std::string& group = "") {
    return Node(id, chakra::kCollective, after,
                {{chakra::kCommType, type}, {chakra::kCommSize, size}}, 0, group);
  }
  TraceText& Send(uint64_t id, int64_t to, int64_t tag, int64_t size) {
    return Node(id, chakra::kSend, {},
                {{chakra::kCommTarget, to}, {chakra::kCommTag, tag}, {chakra::kCommSize, size}});
  }
  TraceText& Receive(uint64_t id, int64_t from, int64_t tag, int64_t size) {
    return Node(id, chakra::kReceive, {},
                {{chakra::kCommSource, from}, {chakra::kCommTag, tag}, {chakra::kCommSize, size}});
  }

  const std::string& text() const { return text_; }
  // "node 3 at byte 57"
  std::string Place(uint64_t id, size_t index) const {
    return "node " + std::to_string(id) + " at byte " + std::to_string(offsets_[index]);
  }

 private:
  TraceText& Nested(uint64_t id, uint32_t type, const std::string& name, uint64_t microseconds,
                    uint32_t field, const Add& add) {
    std::string nested;
    pbf_writer inner(nested);
    add(inner);
    std::string node;
    pbf_writer writer(node);
    writer.add_message(field, nested);  // in any order
    writer.add_uint64(chakra::kNodeId, id);
    writer.add_string(chakra::kNodeName, name);
    writer.add_uint32(chakra::kNodeType, type);
    if (microseconds > 0) writer.add_uint64(chakra::kNodeDuration, microseconds);
    offsets_.push_back(text_.size());
    Append(node);
    return *this;
  }
  static void Attribute(pbf_writer* node, const char* name, const Add& add) {
    std::string attribute;
    pbf_writer writer(attribute);
    writer.add_string(chakra::kAttributeName, name);
    add(writer);
    node->add_message(chakra::kNodeAttribute, attribute);
  }
  void Append(const std::string& message) {
    protozero::write_varint(std::back_inserter(text_), message.size());
    text_ += message;
  }

  std::string text_;
  std::vector<size_t> offsets_;
};

// Whatever is ready is done, the lowest number first: as ASTRA-sim issues nodes. A pipeline of two
// stages and two micro-batches, whose numbers say first one micro-batch and then the other.
TEST_F(ChakraTest, WhatIsReadyIsIssued) {
  const auto message = [](TraceText* trace, uint64_t id, uint32_t type, int64_t peer, int64_t tag,
                          const std::vector<uint64_t>& after) {
    trace->Node(id, type, after,
                {{type == chakra::kSend ? chakra::kCommTarget : chakra::kCommSource, peer},
                 {chakra::kCommTag, tag},
                 {chakra::kCommSize, 1024}});
  };
  TraceText first;
  TraceText last;
  for (int64_t batch = 0; batch < 2; ++batch) {
    const auto forward = static_cast<uint64_t>(2 * batch);
    first.Compute(forward, {}, 1000);
    message(&first, 10 + forward, chakra::kSend, 1, batch, {forward});
    message(&first, 20 + forward, chakra::kReceive, 1, 100 + batch, {});
    first.Compute(forward + 1, {20 + forward}, 1000);
    message(&last, 20 + forward, chakra::kReceive, 0, batch, {});
    last.Compute(forward, {20 + forward}, 1000);
    last.Compute(forward + 1, {forward}, 1000);
    message(&last, 10 + forward, chakra::kSend, 0, 100 + batch, {forward + 1});
  }
  Write("s.0.et", first.text());
  Write("s.1.et", last.text());
  const Schedule schedule = Imported();
  std::vector<std::string> order;
  for (const Op& op : schedule.roles[0].ops)
    if (std::holds_alternative<Compute>(op.work)) order.push_back(op.name);
  ASSERT_EQ(order.size(), 4u);
  // Both forwards before the first backward, whose number is lower than the second forward's.
  std::vector<size_t> waits;
  for (const Op& op : schedule.roles[0].ops)
    if (std::holds_alternative<Compute>(op.work)) waits.push_back(op.after.size());
  EXPECT_THAT(waits, ElementsAre(0u, 0u, 1u, 1u));
}

// A ring in which each rank sends before it receives.
TEST_F(ChakraTest, SendsAreBuffered) {
  for (int64_t rank = 0; rank < 3; ++rank) {
    TraceText trace;
    trace.Send(0, (rank + 1) % 3, 0, 65536)
        .Node(1, chakra::kReceive, {0},
              {{chakra::kCommSource, (rank + 2) % 3}, {chakra::kCommSize, 65536}})
        .Compute(2, {1}, 5);
    Write("s." + std::to_string(rank) + ".et", trace.text());
  }
  const Schedule schedule = Imported();
  const Role& role = schedule.roles[0];
  ASSERT_EQ(role.ops.size(), 3u);
  EXPECT_TRUE(role.ops[1].after.empty());
  EXPECT_THAT(role.ops[2].after, ElementsAre(OpId(0), OpId(1)));
}

TEST_F(ChakraTest, DependenciesOnNothingAreLeftOut) {
  TraceText trace;
  trace.Compute(1, {0}, 5).Compute(2, {1, 2}, 5);
  Write("s.0.et", trace.text());
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("2 dependencies left out")));
  EXPECT_EQ(Imported().roles[0].ops.size(), 2u);
}

// The host's part of a collective says nothing of what the device does.
TEST_F(ChakraTest, TheHostsPartOfCommunicationIsLeftOut) {
  TraceText trace;
  trace.Node(0, chakra::kCollective, {}, {{chakra::kIsCpuOp, 1}}, 80)
      .Collective(1, {0}, chakra::kAllReduce, 4096);
  Write("s.0.et", trace.text());
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("1 node left out: the host's part")));
  EXPECT_EQ(Imported().roles[0].ops.size(), 1u);
}

TEST_F(ChakraTest, GroupsMayBeNumbers) {
  TraceText trace;
  trace.Collective(1, {}, chakra::kAllReduce, 4096, "0.0");
  Write("s.0.et", trace.text());
  Write("s.1.et", trace.text());
  Write("groups.json", R"({"0": [0, 1]})");
  EXPECT_EQ(Imported().communicators[0].name(), "group 0");
  fs::remove(folder_ / "groups.json");
  TraceText plain;
  plain.Collective(1, {}, chakra::kAllReduce, 4096, "0");
  for (const char* name : {"s.0.et", "s.1.et"}) Write(name, plain.text());
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("nothing is known of the group \"0\"")));
  EXPECT_EQ(Imported().communicators[0].size(), 2u);
}

// What chakra_jsonizer prints, and what older traces of ASTRA-sim look like.
TEST_F(ChakraTest, TracesMayBeJson) {
  Write("s.0.json", R"({"version": "0.0.4"}{"id": "1", "name": "a", "type": "COMP_NODE",
    "durationMicros": "5", "attr": [{"name": "is_cpu_op", "boolVal": false}]}
    {"id": "2", "name": "b }", "type": "COMM_COLL_NODE", "dataDeps": ["1"],
     "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "4096"}]})");
  Write("s.1.json", R"({"workload_graph": [
    {"Id": 1, "Name": "a", "NodeType": 4, "is_cpu_op": false, "runtime": 5, "data_deps": []},
    {"Id": 2, "Name": "b", "NodeType": 7, "is_cpu_op": false, "data_deps": [1], "comm_type": 0,
     "comm_size": 4096, "comm_priority": 0}]})");
  Write("groups.json", R"({"0": [0, 1]})");
  const Schedule schedule = Imported();
  ASSERT_EQ(schedule.roles.size(), 2u);
  for (const Role& role : schedule.roles) {
    ASSERT_EQ(role.ops.size(), 2u);
    EXPECT_EQ(std::get<Compute>(role.ops[0].work).duration, Seconds(5e-6));
    EXPECT_EQ(std::get<Collective>(role.ops[1].work).bytes, Bytes(4096));
    EXPECT_THAT(role.ops[1].after, ElementsAre(OpId(0)));
  }
  Write("s.1.json", R"({"workload_graph": [{"Id": 1, "NodeType": 4, "runtime": -5}]})");
  ExpectMistake({"s.1.json: rank 1: node 1", "\"runtime\""});
  Write("s.1.json", R"({"schema": "1.1.1-chakra.0.0.4", "pid": 12, "nodes": []})");
  ExpectMistake({"s.1.json", "chakra_trace_link", "chakra_converter"});
}

TEST_F(ChakraTest, ATraceOfOthersIsASchedule) {
  TraceText trace;
  trace.Node(10, chakra::kMetadata, {})
      .Compute(11, {10}, 5)
      .Node(12, chakra::kMetadata, {11})
      .Collective(13, {12}, chakra::kAllGather, 1000)
      .Node(14, chakra::kCompute, {13, 11},
            {{chakra::kNumOps, 2000}, {chakra::kTensorSize, 640}, {"comm_priority", 3}})
      .Node(15, chakra::kMemoryLoad, {11}, {{chakra::kTensorSize, 4096}});
  Write("s.0.et", trace.text());
  Write("s.1.et", trace.text());
  const Schedule schedule = Imported();
  EXPECT_EQ(schedule.ranks(), 2u);
  ASSERT_EQ(schedule.roles.size(), 1u);
  const Role& role = schedule.roles[0];
  ASSERT_EQ(role.ops.size(), 4u);
  EXPECT_EQ(std::get<Compute>(role.ops[0].work).duration, Seconds(5e-6));
  // After the compute that the description stood for; two ranks contribute 1000 bytes.
  const auto& gather = std::get<Collective>(role.ops[1].work);
  EXPECT_EQ(gather.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather.bytes, Bytes(2000));
  EXPECT_THAT(role.ops[1].after, ElementsAre(OpId(0)));
  // 2000 operations are 2 x 10 x 10 x 10. The first op is before it on its stream.
  const auto& product = std::get<Compute>(role.ops[2].work);
  EXPECT_EQ(product.gemm.m, 10u);
  EXPECT_EQ(product.flops, Flops(2000));
  EXPECT_EQ(product.bytes, Bytes(640));
  EXPECT_EQ(role.ops[2].stream, role.ops[0].stream);
  EXPECT_THAT(role.ops[2].after, ElementsAre(OpId(1)));
  EXPECT_EQ(std::get<Compute>(role.ops[3].work).bytes, Bytes(4096));
  EXPECT_NE(role.ops[3].stream, role.ops[0].stream);
  std::string remarks;
  for (const std::string& remark : Import().remarks) remarks += remark + "\n";
  EXPECT_THAT(remarks, HasSubstr("2 nodes left out"));
  EXPECT_THAT(remarks, HasSubstr("1 node computed as long as measured"));
  EXPECT_THAT(remarks, HasSubstr("not understood: comm_priority"));
}

// By the clock if it was measured, by its operations if it has any, by its bytes, or not at all; on
// the host nothing occupies the device.
TEST_F(ChakraTest, ANodeTakesWhatItSaysThatItTakes) {
  const TraceText trace = TraceText()
                              .Node(1, chakra::kCompute, {}, {{chakra::kNumOps, 16000}}, 9)
                              .Node(2, chakra::kCompute, {1}, {{chakra::kNumOps, 16}})
                              .Node(3, chakra::kCompute, {2}, {{chakra::kTensorSize, 5}})
                              .Node(4, chakra::kCompute, {3})
                              .Node(5, chakra::kCompute, {4}, {{chakra::kNumOps, 1}});
  Write("s.0.et", trace.text());
  const Schedule schedule = Imported();
  ASSERT_EQ(schedule.roles[0].ops.size(), 5u);
  const auto of = [&](size_t op) { return std::get<Compute>(schedule.roles[0].ops[op].work); };
  EXPECT_EQ(of(0).kind, ComputeKind::kFixed);
  EXPECT_EQ(of(0).duration, Seconds(9e-6));
  EXPECT_FALSE(IsWait(of(0)));
  // 16 operations are 2 x 2 x 2 x 2: three matrices of 4 elements of 2 bytes.
  EXPECT_EQ(of(1).kind, ComputeKind::kGemm);
  EXPECT_EQ(of(1).gemm.k, 2u);
  EXPECT_EQ(of(1).bytes, Bytes(24));
  EXPECT_EQ(of(2).kind, ComputeKind::kMemory);
  EXPECT_EQ(of(2).bytes, Bytes(5));
  for (const size_t op : {3, 4}) {
    EXPECT_EQ(of(op).kind, ComputeKind::kFixed);
    EXPECT_EQ(of(op).duration, Seconds(0));
    EXPECT_TRUE(IsWait(of(op)));
  }
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("2 nodes without a time or a size")));
}

TEST_F(ChakraTest, FilesOfTwoRunsOrTwiceOneRankAreRefused) {
  const std::string text = TraceText().Compute(1, {}, 5).text();
  Write("s.0.et", text);
  Write("t.1.et", text);
  ExpectMistake({"expected a trace of \"", "like the others"});
  fs::remove(folder_ / "t.1.et");
  Write("s.00.et", text);
  ExpectMistake({"both of rank 0"});
  fs::remove(folder_ / "s.00.et");
  Write("a.json", "{}");
  Write("b.json", "{}");
  ExpectMistake({"expected one JSON of groups of ranks"});
}

TEST_F(ChakraTest, CollectivesGoOverTheirGroups) {
  for (const uint32_t rank : {0, 1, 2, 3}) {
    TraceText trace;
    trace.Collective(1, {}, chakra::kAllReduce, 64, rank < 2 ? "7" : "8");
    Write("s." + std::to_string(rank) + ".et", trace.text());
  }
  ExpectMistake({"rank 0, node 1", "give the JSON of the groups"});
  Write("groups.json", R"({"7": [0, 1], "8": [2, 3]})");
  const Schedule schedule = Imported();
  EXPECT_EQ(schedule.roles.size(), 2u);
  ASSERT_EQ(schedule.communicators.size(), 2u);
  EXPECT_EQ(schedule.communicators[1].Rank(0, 1), 3u);
  Write("groups.json", R"({"7": [0, 1], "8": [2, 1]})");
  ExpectMistake({"rank 3, node 1", "rank 3 is not a member of group \"8\""});
  Write("groups.json", R"({"7": [0, 9]})");
  ExpectMistake({"groups.json: group \"7\": found 9, expected one of 4 ranks"});
}

constexpr const char* kNotedGroups =
    R"([{"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 4},)"
    R"( {"pg_name": "7", "pg_desc": "data \"parallel\"", "ranks": [0, 2], "group_size": 2},)"
    R"( {"pg_name": "8", "ranks": [1, 3], "group_size": 2},)"
    R"( {"pg_name": "9", "ranks": [3], "group_size": 64}])";
// As Python prints a list of one text: no quote inside it is a single one.
std::string InPython(const std::string& text) {
  std::string quoted = "['";
  for (const char c : text) quoted += c == '\\' ? "\\\\" : std::string(1, c);
  return quoted + "']";
}
std::string InJson(const std::string& text) { return "[" + nlohmann::json(text).dump() + "]"; }

TEST_F(ChakraTest, GroupsAreThoseThatPyTorchNotes) {
  for (const std::string& values :
       {InPython(kNotedGroups), InJson(kNotedGroups), std::string(kNotedGroups),
        "[[" + InJson(kNotedGroups) + "]]"}) {
    for (const uint32_t rank : {0, 1, 2, 3}) {
      TraceText trace;
      trace.Groups(1, values)
          .Collective(2, {1}, chakra::kAllReduce, 64, rank % 2 == 0 ? "7" : "8")
          .Collective(3, {2}, chakra::kAllReduce, 32, "0");
      Write("s." + std::to_string(rank) + ".et", trace.text());
    }
    const Schedule schedule = Imported();
    EXPECT_EQ(schedule.roles.size(), 2u) << values;
    ASSERT_EQ(schedule.communicators.size(), 3u);
    EXPECT_EQ(schedule.communicators[0].name(), "group 7");
    EXPECT_EQ(schedule.communicators[0].Rank(0, 1), 2u);
    EXPECT_EQ(schedule.communicators[1].size(), 4u);
    EXPECT_EQ(schedule.communicators[2].Rank(0, 0), 1u);
    EXPECT_THAT(Import().remarks,
                Contains("groups of ranks are those that the traces themselves note"));
  }
  // A file beside them is what counts.
  Write("groups.json", R"({"0": [3, 2, 1, 0], "7": [0, 2], "8": [1, 3]})");
  EXPECT_EQ(Imported().communicators[1].Rank(0, 0), 3u);
}

TEST_F(ChakraTest, RanksMayGiveOneNameToDifferentGroups) {
  for (const uint32_t rank : {0, 1, 2, 3}) {
    const std::string ranks = rank < 2 ? "[0, 1]" : "[2, 3]";
    TraceText trace;
    trace.Groups(1, R"([{"pg_name": "1", "ranks": )" + ranks + "}]")
        .Collective(2, {1}, chakra::kAllReduce, rank < 2 ? 64 : 32, "1");
    Write("s." + std::to_string(rank) + ".et", trace.text());
  }
  const Schedule schedule = Imported();
  ASSERT_EQ(schedule.communicators.size(), 2u);
  EXPECT_EQ(schedule.communicators[1].name(), "group 1 from rank 2");
  EXPECT_EQ(schedule.communicators[1].Rank(0, 1), 3u);
}

TEST_F(ChakraTest, GroupsThatAreNotWholeAreRefused) {
  const auto expect = [&](const std::string& noted, const std::string& group,
                          const std::vector<std::string>& parts) {
    const TraceText trace =
        TraceText().Groups(1, noted).Collective(2, {1}, chakra::kAllReduce, 64, group);
    Write("s.0.et", trace.text());
    Write("s.1.et", trace.text());
    std::vector<std::string> all = {"s.0.et: rank 0, " + trace.Place(2, 1), "give the JSON"};
    all.insert(all.end(), parts.begin(), parts.end());
    ExpectMistake(all);
  };
  expect(kNotedGroups, "6", {"group \"6\", of which nothing is known"});
  expect(kNotedGroups, "7", {"has rank 2, but there are 2 ranks"});
  expect(kNotedGroups, "9", {"lists 1 of its 64 ranks"});
  expect(kNotedGroups, "0", {"lists 0 of its 4 ranks, and there are traces of 2"});
  expect(R"([{"pg_name": "1", "ranks": [1, 1]}])", "1", {"has a rank twice"});
  expect(R"([{"pg_name": "1", "ranks": [-1]}])", "1", {"a rank that is no number"});
  expect(std::string(kNotedGroups).substr(0, 150) + "}", "7", {"cannot be used"});
  // Cut off wherever: read, or refused.
  const std::string whole = InPython(kNotedGroups);
  for (size_t size = 0; size < whole.size(); ++size) {
    const TraceText trace = TraceText()
                                .Groups(1, whole.substr(0, size))
                                .Collective(2, {1}, chakra::kAllReduce, 64, "9");
    Write("s.0.et", trace.text());
    EXPECT_FALSE(IsRead()) << size;
  }
}

TEST_F(ChakraTest, GathersAndScattersAreMessagesOfTheRoot) {
  const auto with_root = [](uint32_t type, int64_t size, const char* key, int64_t root) {
    return TraceText().Node(1, chakra::kCollective, {},
                            {{chakra::kCommType, type}, {chakra::kCommSize, size}, {key, root}});
  };
  const auto write = [&](const TraceText& trace) {
    for (const uint32_t rank : {0, 1, 2}) Write("s." + std::to_string(rank) + ".et", trace.text());
  };
  const Bytes none(0);
  write(with_root(chakra::kGather, 64, chakra::kCommTarget, 1));
  auto collective = std::get<Collective>(Imported().roles[0].ops[0].work);
  EXPECT_EQ(collective.kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(collective.bytes, Bytes(64));
  const Bytes part(64);
  EXPECT_THAT(collective.pair_bytes,
              ElementsAre(none, part, none, none, none, none, none, part, none));
  write(with_root(chakra::kScatter, 64, chakra::kCommSource, 1));
  collective = std::get<Collective>(Imported().roles[0].ops[0].work);
  EXPECT_EQ(collective.bytes, Bytes(128));
  EXPECT_THAT(collective.pair_bytes,
              ElementsAre(none, none, none, part, none, part, none, none, none));
  write(with_root(chakra::kBroadcast, 64, chakra::kCommSource, 2));
  EXPECT_EQ(std::get<Collective>(Imported().roles[0].ops[0].work).root, 2u);
  write(with_root(chakra::kReduce, 64, chakra::kCommTarget, 2));
  EXPECT_EQ(std::get<Collective>(Imported().roles[0].ops[0].work).root, 2u);
  // Ranks have to agree on the root, which is one of them.
  Write("s.1.et", with_root(chakra::kReduce, 64, chakra::kCommTarget, 1).text());
  ExpectMistake({"rank 1, node 1", "reduce of 64 bytes with member 1 as its root here",
                 "reduce of 64 bytes with member 2 as its root by rank 0"});
  write(with_root(chakra::kGather, 64, chakra::kCommTarget, 7));
  ExpectMistake({"rank 0, node 1", "has rank 7 as its root, which is not in its group"});
  // Who names none means the first.
  write(TraceText().Collective(1, {}, chakra::kScatter, 64));
  EXPECT_THAT(std::get<Collective>(Imported().roles[0].ops[0].work).pair_bytes,
              ElementsAre(none, part, part, none, none, none, none, none, none));
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("1 node that name no root")));
}

TEST_F(ChakraTest, StorageTakesTheTimeThatItTook) {
  TraceText trace;
  trace.ReadsFile(1, chakra::kStorage, 7)
      .ReadsFile(2, chakra::kMetadata, 8)
      .ReadsFile(3, chakra::kStorage, 0)
      .ReadsFile(4, chakra::kCheckpoint, 0);
  Write("s.0.et", trace.text());
  const Schedule schedule = Imported();
  ASSERT_EQ(schedule.roles[0].ops.size(), 2u);
  const auto& read = std::get<Compute>(schedule.roles[0].ops[0].work);
  EXPECT_EQ(read.duration, Seconds(7e-6));
  EXPECT_TRUE(IsWait(read));
  EXPECT_EQ(schedule.roles[0].ops[1].stream, schedule.roles[0].ops[0].stream);
  EXPECT_EQ(std::get<Compute>(schedule.roles[0].ops[1].work).duration, Seconds(8e-6));
  EXPECT_THAT(Import().remarks, Contains(HasSubstr("2 nodes not understood and left out")));
}

TEST_F(ChakraTest, MessagesThatOvertakeOthersFindTheirTag) {
  Write("s.0.et", TraceText().Send(1, 1, 5, 100).Send(2, 1, 6, 200).text());
  Write("s.1.et", TraceText().Receive(1, 0, 6, 200).Receive(2, 0, 5, 100).text());
  EXPECT_EQ(Imported().communicators.size(), 2u);
  const TraceText other = TraceText().Receive(1, 0, 6, 200).Receive(2, 0, 5, 101);
  Write("s.1.et", other.text());
  ExpectMistake({"rank 0, node 1", "rank 1 receives 101 bytes (node 2)"});
  Write("s.1.et", TraceText().Receive(1, 0, 6, 200).text());
  ExpectMistake({"rank 0, node 1", "rank 1 does not receive it"});
}

TEST_F(ChakraTest, MistakesAreToldWithRankNodeAndOffset) {
  const TraceText good = TraceText().Compute(1, {}, 5).Collective(2, {1}, chakra::kAllReduce, 64);
  Write("s.0.et", good.text());
  Write("s.1.et", good.text());
  EXPECT_TRUE(IsRead());
  const auto expect = [&](const TraceText& trace, const std::string& place,
                          const std::string& what) {
    Write("s.1.et", trace.text());
    ExpectMistake({"s.1.et: rank 1, " + place, what});
  };
  TraceText trace = TraceText().Compute(1, {3}, 5).Compute(2, {1}, 5).Compute(3, {2}, 5);
  trace.Compute(4, {3}, 5);
  Write("s.1.et", trace.text());
  ExpectMistake({"s.1.et: rank 1, node ", "its dependencies form a cycle"});
  // 2 and 3 wait for each other, and for 1, which waits for nobody.
  trace = TraceText().Compute(1, {}, 5).Compute(2, {1, 3}, 5).Compute(3, {1, 2}, 5);
  Write("s.1.et", trace.text());
  ExpectMistake({"its dependencies form a cycle"});
  try {
    Import();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                ::testing::AnyOf(HasSubstr(trace.Place(2, 1)), HasSubstr(trace.Place(3, 2))));
  }
  trace = TraceText().Compute(1, {}, 5).Node(2, 23, {});
  expect(trace, trace.Place(2, 1), "unknown type 23");
  trace = TraceText().Compute(1, {}, 5).Compute(1, {}, 5);
  expect(trace, trace.Place(1, 1), "a second node with this number");
  trace = TraceText().Collective(2, {}, 10, 64);
  expect(trace, trace.Place(2, 0), "a collective of type 10, expected all-reduce (0), reduce (1)");
  trace = TraceText().Collective(2, {}, chakra::kAllReduce, -64);
  expect(trace, trace.Place(2, 0), "\"comm_size\"");
  trace = TraceText().Collective(7, {}, chakra::kAllReduce, 65);
  expect(trace, trace.Place(7, 0), "all-reduce of 64 bytes by rank 0 (node 2)");
  trace = TraceText().Send(1, 2, 0, 8);
  expect(trace, trace.Place(1, 0), "found 2 at \"comm_dst\", expected one of 2 ranks");
  Write("s.1.et", "no trace at all");
  ExpectMistake({"s.1.et: rank 1, byte 0"});
}

// A name that is a number.
TEST_F(ChakraTest, AFieldOfAnotherKindIsRefused) {
  std::string node;
  pbf_writer(node).add_uint64(chakra::kNodeId, 1);
  pbf_writer(node).add_uint64(chakra::kNodeName, 5);
  std::string text = TraceText().text();
  protozero::write_varint(std::back_inserter(text), node.size());
  Write("s.0.et", text + node);
  ExpectMistake({"found a field of another kind"});
}

// A trace that is cut off, or has a wrong byte, is read or refused with an Error, and nothing else.
TEST_F(ChakraTest, DamagedTracesAreReadOrRefused) {
  const std::string whole = TraceText()
                                .Compute(1, {}, 5)
                                .Collective(2, {1}, chakra::kAllReduce, 64)
                                .Send(3, 1, 0, 8)
                                .text();
  Write("s.1.et", TraceText()
                      .Compute(1, {}, 6)
                      .Collective(2, {1}, chakra::kAllReduce, 64)
                      .Receive(3, 0, 0, 8)
                      .text());
  Write("s.0.et", whole);
  EXPECT_TRUE(IsRead());
  for (size_t size = 0; size < whole.size(); ++size) {
    Write("s.0.et", whole.substr(0, size));
    EXPECT_FALSE(IsRead()) << size;  // rank 1 waits for what is missing
  }
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ change);
      Write("s.0.et", damaged);
      IsRead();
    }
  }
}

}  // namespace chakra_test
}  // namespace rehearse
