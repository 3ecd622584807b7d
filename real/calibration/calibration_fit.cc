#include "real/calibration/calibration_fit.h"

#include <algorithm>
#include <cmath>

#include "collectives/lowering/plan_load.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kGrids[] = {0.05, 0.01, 0.002};
constexpr double kLeastEfficiency = 0.1;
constexpr Bytes kOneMegabyte(1 << 20);

struct Candidate {
  double efficiency = 1;
  Seconds overhead;
  double channel_share = 0;  // κ
  double score = 0;
};

// A measured time, and what predicts it.
struct Sample {
  Seconds measured;
  Seconds moving;   // R
  Seconds latency;  // l
  uint32_t channels = 0;

  double Launches(double channel_share) const { return 1 + channel_share * channels; }
};

double RelativeError(Seconds predicted, Seconds measured) {
  return std::abs((predicted - measured) / measured);
}

// The mean of a table, summed over the tables.
double Score(const std::vector<std::vector<Sample>>& tables, double channel_share,
             Seconds overhead) {
  double score = 0;
  for (const std::vector<Sample>& table : tables) {
    double sum = 0;
    for (const Sample& sample : table) {
      const Seconds start = std::max(overhead * sample.Launches(channel_share), sample.latency);
      sum += std::min(1.0, RelativeError(start + sample.moving, sample.measured));
    }
    score += sum / static_cast<double>(table.size());
  }
  return score;
}

// The overhead with the least score, of those that meet some sample, and of none.
Candidate BestOverhead(const std::vector<std::vector<Sample>>& tables, double channel_share) {
  Candidate best;
  best.channel_share = channel_share;
  best.score = Score(tables, channel_share, Seconds(0));
  for (const std::vector<Sample>& table : tables) {
    for (const Sample& sample : table) {
      const Seconds rest = sample.measured - sample.moving;
      if (rest <= sample.latency) continue;
      const double exact = rest.value() / sample.Launches(channel_share);
      const Seconds overhead(std::round(exact * 1e8) / 1e8);
      const double score = Score(tables, channel_share, overhead);
      if (score >= best.score) continue;
      best.overhead = overhead;
      best.score = score;
    }
  }
  return best;
}

class Fitter {
 public:
  Fitter(const Cluster& cluster, const std::vector<FitTable>& tables)
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
    const GroupPlan plan = ArrangePlan(ChoiceOf(trial, largest, tuner), trial.kind, trial.root,
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

  Calibration With(const Candidate& candidate) const {
    Calibration calibration;
    calibration.cluster = cluster_.name();
    calibration.links.push_back({link_.kind, link_.bandwidth, candidate.efficiency, {}});
    calibration.collective_overhead = candidate.overhead;
    calibration.channel_overhead = candidate.channel_share * candidate.overhead;
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
    Candidate bare;
    bare.efficiency = efficiency;
    const auto cluster = ApplyCalibration(cluster_, With(bare));
    std::vector<std::vector<Sample>> samples;
    for (size_t i = 0; i < tables_.size(); ++i) samples.push_back(SamplesOf(*cluster, i));
    Candidate candidate = BestOverhead(samples, 0);
    const Candidate by_channels = BestOverhead(samples, kChannelLaunchShare);
    if (by_channels.score < candidate.score) candidate = by_channels;
    candidate.efficiency = efficiency;
    return candidate;
  }

  // Without overhead, a collective starts with its latency.
  std::vector<Sample> SamplesOf(const Cluster& cluster, size_t table) const {
    const Trial& trial = tables_[table].trial;
    const std::vector<NcclRow>& rows = fitted_on_[table];
    Router router(cluster);
    ChannelFinder finder(router);
    Tuner tuner(router, finder);
    const std::vector<Seconds> predicted = Predict(cluster, trial, rows);
    std::vector<Sample> samples;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Choice choice = ChoiceOf(trial, rows[i].bytes, tuner);
      samples.push_back(
          {rows[i].time, predicted[i] - choice.latency, choice.latency, choice.nccl_channels});
    }
    return samples;
  }

  const Cluster& cluster_;
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

Calibration FitCalibration(const Cluster& cluster, const std::vector<FitTable>& tables) {
  CHECK(!tables.empty());
  Fitter fitter(cluster, tables);
  const Candidate best = fitter.Best();
  Calibration calibration = fitter.With(best);
  const auto fitted = ApplyCalibration(cluster, calibration);
  std::vector<double> large;
  std::vector<double> small;
  size_t samples = 0;
  for (const FitTable& table : tables) {
    samples += table.rows.size();
    const std::vector<Seconds> predicted = Predict(*fitted, table.trial, table.rows);
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
