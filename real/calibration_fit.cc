#include "real/calibration_fit.h"

#include <algorithm>
#include <cmath>

#include "collectives/plan_load.h"
#include "sim/error.h"

namespace rehearse {
namespace {

constexpr double kGrids[] = {0.05, 0.01, 0.002};
constexpr double kLeastEfficiency = 0.1;
constexpr Bytes kOneMegabyte(1 << 20);

struct Candidate {
  double efficiency = 1;
  Seconds overhead;
  double score = 0;
};

// The overhead that leaves the least sum of relative errors: a median with weights 1/t.
Seconds BestOverhead(const std::vector<std::vector<NcclRow>>& measured,
                     const std::vector<std::vector<Seconds>>& predicted) {
  std::vector<std::pair<Seconds, double>> rests;  // t − T, weight
  double total = 0;
  for (size_t table = 0; table < measured.size(); ++table) {
    for (size_t i = 0; i < measured[table].size(); ++i) {
      const Seconds time = measured[table][i].time;
      const double weight = 1 / (time.value() * static_cast<double>(measured[table].size()));
      rests.emplace_back(time - predicted[table][i], weight);
      total += weight;
    }
  }
  std::sort(rests.begin(), rests.end());
  double sum = 0;
  for (const auto& [rest, weight] : rests) {
    sum += weight;
    if (sum >= total / 2) return std::max(rest, Seconds(0));
  }
  return Seconds(0);
}

double RelativeError(Seconds predicted, Seconds measured) {
  return std::abs((predicted - measured) / measured);
}

class Fitter {
 public:
  Fitter(Cluster& cluster, const std::vector<FitTable>& tables)
      : cluster_(cluster), tables_(tables) {
    for (const FitTable& table : tables) {
      std::vector<NcclRow> rows;
      for (size_t i = 0; i < table.rows.size(); i += 2) rows.push_back(table.rows[i]);
      fitted_on_.push_back(std::move(rows));
    }
    Router router(cluster);
    ChannelFinder finder(router);
    Tuner tuner(router, finder);
    const Trial& trial = tables.front().trial;
    Bytes largest;
    for (const NcclRow& row : tables.front().rows) largest = std::max(largest, row.bytes);
    const Plan plan = ArrangePlan(ChoiceOf(trial, largest, tuner), trial.kind, trial.root,
                                  trial.groups.front(), router, finder);
    link_ = cluster.Link(BindingLinkOf(plan, router).link);
  }

  Candidate Best() {
    double from = kLeastEfficiency;
    double to = 1;
    Candidate best;
    for (const double grid : kGrids) {
      best = Search(from, to, grid);
      from = std::max(kLeastEfficiency, best.efficiency - grid);
      to = std::min(1.0, best.efficiency + grid);
    }
    return best;
  }

  Calibration With(double efficiency, Seconds overhead) const {
    Calibration calibration;
    calibration.cluster = cluster_.name();
    calibration.links.push_back({link_.kind, link_.bandwidth, efficiency, {}});
    calibration.collective_overhead = overhead;
    return calibration;
  }

 private:
  Candidate Search(double from, double to, double step) {
    Candidate best;
    const int steps = static_cast<int>(std::floor((to - from) / step + 1e-9));
    for (int i = 0; i <= steps; ++i) {
      const Candidate candidate = Try(std::round((from + i * step) * 1e4) / 1e4);
      if (i == 0 || candidate.score < best.score) best = candidate;
    }
    return best;
  }

  Candidate Try(double efficiency) {
    ApplyCalibration(cluster_, With(efficiency, Seconds(0)));
    std::vector<std::vector<Seconds>> predicted;
    for (size_t i = 0; i < tables_.size(); ++i)
      predicted.push_back(Predict(cluster_, tables_[i].trial, fitted_on_[i]));
    Candidate candidate;
    candidate.efficiency = efficiency;
    candidate.overhead =
        Seconds(std::round(BestOverhead(fitted_on_, predicted).value() * 1e8) / 1e8);
    for (size_t table = 0; table < tables_.size(); ++table) {
      double sum = 0;
      for (size_t i = 0; i < fitted_on_[table].size(); ++i) {
        sum += std::min(1.0, RelativeError(predicted[table][i] + candidate.overhead,
                                           fitted_on_[table][i].time));
      }
      candidate.score += sum / static_cast<double>(fitted_on_[table].size());
    }
    return candidate;
  }

  Cluster& cluster_;
  const std::vector<FitTable>& tables_;
  std::vector<std::vector<NcclRow>> fitted_on_;
  ClusterLink link_;
};

nlohmann::ordered_json ToJson(const ErrorSummary& errors) {
  return {{"samples", errors.samples},
          {"median", errors.median},
          {"ninetieth_percentile", errors.ninetieth},
          {"largest", errors.largest}};
}

}  // namespace

ErrorSummary SummarizeErrors(std::vector<double> errors) {
  ErrorSummary summary;
  summary.samples = errors.size();
  if (errors.empty()) return summary;
  std::sort(errors.begin(), errors.end());
  const auto quantile = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(errors.size())));
    return errors[std::max<size_t>(rank, 1) - 1];
  };
  summary.median = quantile(0.5);
  summary.ninetieth = quantile(0.9);
  summary.largest = errors.back();
  return summary;
}

std::vector<Seconds> Predict(const Cluster& cluster, const Trial& trial,
                             const std::vector<NcclRow>& rows) {
  Router router(cluster);
  std::vector<Bytes> sizes;
  for (const NcclRow& row : rows) sizes.push_back(row.bytes);
  return TimesOf(trial, sizes, router);
}

Calibration FitCalibration(Cluster& cluster, const std::vector<FitTable>& tables) {
  CHECK(!tables.empty());
  Fitter fitter(cluster, tables);
  const Candidate best = fitter.Best();
  Calibration calibration = fitter.With(best.efficiency, best.overhead);
  ApplyCalibration(cluster, calibration);
  std::vector<double> large;
  std::vector<double> small;
  size_t samples = 0;
  for (const FitTable& table : tables) {
    samples += table.rows.size();
    const std::vector<Seconds> predicted = Predict(cluster, table.trial, table.rows);
    for (size_t i = 1; i < predicted.size(); i += 2) {
      const double error = RelativeError(predicted[i], table.rows[i].time);
      (table.rows[i].bytes >= kOneMegabyte ? large : small).push_back(error);
    }
  }
  calibration.fit = {{"samples", samples},
                     {"fitted_on", "every other sample"},
                     {"held_out_errors_from_1_mib", ToJson(SummarizeErrors(large))},
                     {"held_out_errors_below_1_mib", ToJson(SummarizeErrors(small))}};
  return calibration;
}

}  // namespace rehearse
