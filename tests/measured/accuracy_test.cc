// How near the model comes to published measurements: the table of collectives/MEASURED.md, which
// is held against what this prints.
//
//   test_measured                           the table, with the numbers that were fitted (kFitted)
//   REHEARSE_ACCURACY=sizes test_measured   every size as well
//   REHEARSE_ACCURACY=fit test_measured     the two numbers are fitted anew
//
// Two numbers are fitted for each machine (real/calibration/calibration_fit.h): the efficiency of
// the links that bind, and what launching a collective takes; on every other size of all its
// tables. The errors are those of the other sizes.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "real/calibration/calibration_fit.h"
#include "tests/measured/measured_tables.h"
#include "tests/support/places.h"
#include "tools/ranks.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

constexpr Bytes kOneMegabyte(1 << 20);

// What is wanted: from 1 MiB to 8 GiB a median of 10 % and a 90th percentile of 25 %, below a
// median of 25 %.
constexpr double kWantedMedian = 0.10;
constexpr double kWantedNinetieth = 0.25;
constexpr double kWantedSmallMedian = 0.25;

// What the fit found, by machine.
struct Fitted {
  const char* machine;
  LinkKind kind;
  double gigabytes_per_second;  // of the links that bind
  double efficiency;
  double overhead_us;
  bool by_channel;  // whether channels add to launching
};
constexpr Fitted kFitted[] = {
    {"A100 SXM4 40 GB, 8", LinkKind::kNvLink, 300, 0.750, 33.00, true},
    {"A100 80 GB, 8 (Bekman)", LinkKind::kNvLink, 300, 0.774, 38.85, true},
    {"A100 NVSwitch (vTrain)", LinkKind::kNvLink, 300, 0.710, 43.18, false},
    {"V100 cube mesh (vTrain)", LinkKind::kNvLink, 25, 0.918, 36.50, true},
    {"4 DGX A100, 8 HDR each", LinkKind::kNetwork, 25, 0.964, 109.12, false},
    {"2 AWS p4de, 4 EFA each", LinkKind::kNetwork, 12.5, 0.844, 156.48, true},
    {"8 RTX 4090, no P2P", LinkKind::kMemory, 102.4, 0.590, 38.83, false},
    {"H200, 8, NVLS", LinkKind::kNvLink, 450, 0.686, 39.55, false},
    {"Leonardo, 2 A100, NV4", LinkKind::kNvLink, 100, 0.718, 9.45, false},
};

struct Judged {
  const MeasuredTable* table = nullptr;
  ErrorSummary large;
  ErrorSummary small;
  std::vector<NcclRow> rows;
  std::vector<Seconds> predicted;

  bool IsAsWanted() const {
    return large.median <= kWantedMedian && large.ninetieth <= kWantedNinetieth &&
           small.median <= kWantedSmallMedian;
  }
};

struct Machine {
  std::string name;
  Calibration calibration;
  std::vector<Judged> tables;
};

FitTable AsFitTable(const MeasuredTable& table, const Cluster& cluster) {
  FitTable fit;
  fit.trial.kind = table.kind;
  fit.trial.groups = {ParseRanks("ranks", table.ranks, cluster.device_count())};
  fit.trial.algorithm = "auto";
  fit.trial.protocol = "auto";
  for (const MeasuredPoint& point : table.points)
    fit.rows.push_back({Bytes(point.bytes), Seconds(point.microseconds * 1e-6)});
  return fit;
}

Calibration Documented(const std::string& machine) {
  Calibration calibration;
  for (const Fitted& fitted : kFitted) {
    if (fitted.machine != machine) continue;
    calibration.links = {
        {fitted.kind, BytesPerSecond(fitted.gigabytes_per_second * 1e9), fitted.efficiency, {}}};
    calibration.collective_overhead = Seconds(fitted.overhead_us * 1e-6);
    calibration.channel_overhead =
        (fitted.by_channel ? kChannelLaunchShare : 0) * *calibration.collective_overhead;
    return calibration;
  }
  throw Error(fmt::format("no fitted numbers of \"{}\"", machine));
}

// Held-out errors: of every other size.
void SumUpErrors(Judged* judged) {
  std::vector<double> large;
  std::vector<double> small;
  for (size_t row = 1; row < judged->rows.size(); row += 2) {
    const double error =
        std::abs(judged->predicted[row].value() / judged->rows[row].time.value() - 1);
    (judged->rows[row].bytes >= kOneMegabyte ? large : small).push_back(error);
  }
  judged->large = SummarizeErrors(large);
  judged->small = SummarizeErrors(small);
}

Machine Judge(const std::string& name, const std::vector<const MeasuredTable*>& tables,
              bool fit_anew) {
  const auto bare = ReadClusterArgument(tables.front()->cluster);
  std::vector<FitTable> fits;
  for (const MeasuredTable* table : tables) fits.push_back(AsFitTable(*table, *bare));
  Machine machine;
  machine.name = name;
  machine.calibration = fit_anew ? FitCalibration(*bare, fits) : Documented(name);
  const auto cluster = ApplyCalibration(*bare, machine.calibration);
  for (size_t i = 0; i < tables.size(); ++i) {
    Judged judged;
    judged.table = tables[i];
    judged.rows = fits[i].rows;
    judged.predicted = Predict(*cluster, fits[i].trial, judged.rows);
    SumUpErrors(&judged);
    machine.tables.push_back(std::move(judged));
  }
  return machine;
}

std::vector<Machine> JudgeAll(bool fit_anew) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<const MeasuredTable*>> by_machine;
  for (const MeasuredTable& table : MeasuredTables()) {
    auto& tables = by_machine[table.machine];
    if (tables.empty()) names.emplace_back(table.machine);
    tables.push_back(&table);
  }
  std::vector<Machine> machines;
  for (const std::string& name : names) machines.push_back(Judge(name, by_machine[name], fit_anew));
  return machines;
}

std::string Row(const Machine& machine, const Judged& judged) {
  const LinkCalibration& link = machine.calibration.links.front();
  return fmt::format(
      "| {} | {} | {} | {} {:.3f} | {:.2f} + {:.2f} us | {:.1f} % | {:.1f} % | {} | {} |",
      machine.name, Name(judged.table->kind), judged.table->ranks, Name(link.kind), link.efficiency,
      machine.calibration.collective_overhead->value() * 1e6,
      machine.calibration.channel_overhead->value() * 1e6, judged.large.median * 100,
      judged.large.ninetieth * 100,
      judged.small.samples == 0 ? "-" : fmt::format("{:.1f} %", judged.small.median * 100),
      judged.IsAsWanted() ? "yes" : "no");
}

void PrintSizes(const Machine& machine, const Judged& judged) {
  fmt::print("\n{}, {}, ranks {}\n", machine.name, Name(judged.table->kind), judged.table->ranks);
  for (size_t i = 0; i < judged.rows.size(); ++i) {
    const double measured = judged.rows[i].time.value() * 1e6;
    const double predicted = judged.predicted[i].value() * 1e6;
    fmt::print("  {:12.0f} B {:12.2f} us {:12.2f} us {:+7.1f} % {}\n", judged.rows[i].bytes.value(),
               measured, predicted, (predicted / measured - 1) * 100,
               i % 2 == 0 ? "fitted on" : "");
  }
}

std::string DocumentedTable() {
  std::ifstream file(SourceDir() + "/collectives/MEASURED.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(AccuracyStudy, PublishedMeasurementsAreMetAsDocumented) {
  const char* const variable = std::getenv("REHEARSE_ACCURACY");
  const std::string wish = variable == nullptr ? "" : variable;
  const std::vector<Machine> machines = JudgeAll(wish == "fit");
  const std::string documented = DocumentedTable();
  fmt::print(
      "| machine | what | ranks | efficiency | launching | from 1 MiB: median | 90th | below: "
      "median | as wanted |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n");
  int as_wanted = 0;
  for (const Machine& machine : machines) {
    for (const Judged& judged : machine.tables) {
      const std::string row = Row(machine, judged);
      fmt::print("{}\n", row);
      EXPECT_NE(documented.find(row), std::string::npos)
          << "collectives/MEASURED.md has no such row";
      as_wanted += judged.IsAsWanted() ? 1 : 0;
    }
  }
  fmt::print("{} of {} as wanted\n", as_wanted, MeasuredTables().size());
  for (const Machine& machine : machines) {
    for (const Judged& judged : machine.tables) {
      if (wish == "sizes") PrintSizes(machine, judged);
    }
  }
}

}  // namespace
}  // namespace rehearse
