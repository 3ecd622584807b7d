// Random schedules (tests/support/random_schedule.h), beside their golden records: what they come
// to, why, and as the files of other tools, which are read again.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/explaining/explanation.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_document.h"
#include "sim/report/comparison.h"
#include "sim/report/data_table.h"
#include "sim/report/timeline_record.h"
#include "tests/golden/record.h"
#include "tests/golden/step_entry.h"
#include "tests/support/random_schedule.h"
#include "tests/support/temporary_folder.h"
#include "tools/foreign/traces/chakra/chakra_read.h"
#include "tools/foreign/traces/chakra/chakra_write.h"
#include "tools/foreign/traces/goal/goal.h"
#include "tools/foreign/traces/kineto/kineto_read.h"
#include "tools/foreign/traces/kineto/kineto_write.h"
#include "topology/cluster/cluster.h"
#include "topology/devices/device.h"

namespace rehearse {
namespace schedules_test {

namespace fs = std::filesystem;

Seconds TimeOfOp(const Scenario& scenario, uint32_t device, const Op& op) {
  return ComputeTime(scenario.cluster->DeviceOf(device), std::get<Compute>(op.work),
                     op.tag.phase == Phase::kBackward);
}

// What is written, and what is read from it again; a refusal is recorded as well.
template <typename Make>
std::string DigestOr(const std::string& name, const Make& make) {
  try {
    return DigestOfText(name, make());
  } catch (const Error& error) {
    return fmt::format(", {} refused", name) + DigestOfText(name, error.what());
  }
}

std::vector<std::string> FilesIn(const TemporaryFolder& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string WithoutFolder(std::string text, const TemporaryFolder& folder) {
  const std::string name = folder.path().string();
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name))
    text.erase(at, name.size());
  return text;
}

std::string ContentsOf(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += ReadInputFile(file);
  return text;
}

std::string Joined(std::string text, const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) text += remark + "\n";
  return text;
}

// As others write them: what is under our own keys is skipped.
void MakeForeign(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::string text = ReadInputFile(file);
    for (size_t at = text.find("rehearse"); at != std::string::npos; at = text.find("rehearse", at))
      text[at] = 'x';
    std::ofstream(file, std::ios::binary) << text;
  }
}

std::string ImportedChakraOf(const std::vector<std::string>& files) {
  try {
    const ImportedChakra imported = ImportChakra(files);
    return Joined(imported.text, imported.remarks);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string AsChakra(const Scenario& scenario, const Job& job) {
  const TemporaryFolder folder("chakra");
  ChakraDevices devices;
  devices.kind_of_rank.assign(job.schedule.ranks(), 0);
  devices.time = [&](uint32_t rank, const Op& op) {
    return TimeOfOp(scenario, job.placement[rank], op);
  };
  WriteChakra(job.schedule, {}, devices, folder.path().string());
  const std::vector<std::string> files = FilesIn(folder);
  std::string text = ContentsOf(files) + ImportedChakraOf(files);
  MakeForeign(files);
  text += ImportedChakraOf(files);
  return WithoutFolder(text, folder);
}

std::string AsKineto(const Rehearsal& played) {
  const TemporaryFolder folder("kineto");
  for (uint32_t rank = 0; rank < played.schedule.ranks(); ++rank) {
    const std::string text = KinetoTraceOf(played.schedule, played.timeline, played.names, rank);
    std::ofstream(folder / KinetoFileName(rank), std::ios::binary) << text;
  }
  const std::vector<std::string> files = FilesIn(folder);
  std::string text = ContentsOf(files);
  for (const bool is_foreign : {false, true}) {
    if (is_foreign) MakeForeign(files);
    for (const KinetoResult result : {KinetoResult::kTimeline, KinetoResult::kSchedule}) {
      try {
        const ImportedKineto imported = ImportKineto(files, result);
        text += Joined(imported.text, imported.remarks);
      } catch (const Error& error) {
        text += error.what();
      }
    }
  }
  return WithoutFolder(text, folder);
}

// With the same step at another fidelity, as if that had been measured, and with a step of which
// only some ops are the same.
std::string Compared(uint64_t seed, Scenario scenario, const TimelineRecord& record) {
  scenario.lowering.fidelity =
      scenario.lowering.fidelity == Fidelity::kFluid ? Fidelity::kStep : Fidelity::kFluid;
  const Rehearsal played = Rehearse(scenario, {.threads = 1});
  TimelineRecord measured = MakeRecord("other", played.schedule, played.timeline);
  measured.provenance = Provenance::kMeasured;
  TimelineRecord other = record;
  for (RecordedRole& role : other.roles)
    for (size_t op = seed % 2; op < role.ops.size(); op += 3) role.ops[op].name += "'";
  std::string text;
  for (const TimelineRecord* b : {&measured, &other}) {
    const Comparison comparison = Compare(record, *b);
    text += ToText(comparison, false, 3) + ToText(comparison, true) + ToJson(comparison).dump(1) +
            ToCsv(TableOf(comparison));
  }
  return text;
}

// Several things that take longer, each of some schedules.
std::string MoreOf(uint64_t seed, const Scenario& scenario) {
  constexpr uint64_t kMostOps = 150;
  const Job job = Prepare(scenario).front();
  uint64_t ops = 0;
  for (const uint32_t role : job.schedule.role_of_rank) ops += job.schedule.roles[role].OpCount();
  if (ops > kMostOps) return "";
  if (seed % 4 == 0) {
    return DigestOr("explained", [&] {
      const Explanation explanation = Explain(scenario);
      return WithoutCosts(ToJson(explanation).dump(1) + ToText(explanation, 20, false));
    });
  }
  if (seed % 4 == 1) return DigestOr("chakra", [&] { return AsChakra(scenario, job); });
  if (seed % 4 == 2) {
    return DigestOr("goal", [&] {
      Router router(*scenario.cluster, scenario.routing);
      const auto time = [&](uint32_t rank, const Op& op) { return TimeOfOp(scenario, rank, op); };
      return WriteGoal(job.schedule, router, scenario.lowering.channels, scenario.lowering.nccl,
                       time)
          .text;
    });
  }
  const Rehearsal played = Rehearse(scenario, {.threads = 1});
  const TimelineRecord record = MakeRecord("random", played.schedule, played.timeline);
  return DigestOr("record", [&] { return ToJsonText(record); }) +
         DigestOr("kineto", [&] { return AsKineto(played); }) +
         DigestOr("compared", [&] { return Compared(seed, scenario, record); });
}

// The first of some that can be played; what refuses the others is recorded as well.
std::string EntryOf(uint64_t seed) {
  constexpr uint64_t kAttempts = 8;
  constexpr size_t kMost = 100;
  std::string text;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    std::string played;
    try {
      Scenario scenario = ReadScenario(JsonDocument::FromText(
          RandomScheduleScenario(kAttempts * seed + attempt), "random.json"));
      scenario.allow_out_of_memory = true;
      played = StepEntry(scenario, {.brief = true, .loads = seed % 8 < 4});
      if (!played.starts_with("refused: ")) {
        played.pop_back();
        return text + played + MoreOf(seed, scenario) + "\n";
      }
    } catch (const Error& error) {
      played = fmt::format("refused: {}\n", error.what());
    }
    text += played.size() < kMost ? played : played.substr(0, kMost) + "\n";
  }
  return text;
}

class GoldenSchedulesTest : public ::testing::TestWithParam<int> {};

TEST_P(GoldenSchedulesTest, ComeToWhatIsRecorded) {
  constexpr uint64_t kSchedules = 10;
  GoldenRecord record(fmt::format("schedules-{}", GetParam()));
  for (uint64_t i = 0; i < kSchedules; ++i) {
    if (record.IsLeftOut(i)) continue;
    const uint64_t seed = kSchedules * static_cast<uint64_t>(GetParam()) + i;
    record.Add(fmt::format("{}", seed), EntryOf(seed));
  }
  record.End();
}

INSTANTIATE_TEST_SUITE_P(Parts, GoldenSchedulesTest, ::testing::Range(0, 16));

}  // namespace schedules_test
}  // namespace rehearse
