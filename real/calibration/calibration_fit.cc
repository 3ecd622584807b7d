#include "real/calibration/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "collectives/lowering/plan_load.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kGrids[] = {0.05, 0.01, 0.002};
constexpr double kLeastEfficiency = 0.1;
constexpr Bytes kOneMegabyte(1 << 20);

// How far a number is moved to see whether the samples determine it.
constexpr double kMoved = 1.25;
constexpr double kShows = 0.05;
constexpr size_t kFew = 8;  // with at most this many samples, both ends are fitted on

// How long launching takes, once and for each channel.
struct Launching {
  Seconds once;
  Seconds of_channel;

  Seconds Of(uint32_t channels) const { return once + channels * of_channel; }
};

struct Candidate {
  std::optional<double> efficiency;    // nothing: the cluster's own
  std::optional<Launching> launching;  // nothing: the cluster's own
  double score = 0;
};

// A measured time, and what predicts it.
struct Sample {
  Seconds measured;
  Seconds moving;   // R
  Seconds latency;  // l
  uint32_t channels = 0;

  double Launches(double channel_share) const { return 1 + channel_share * channels; }
  Seconds Predicted(const Launching& launching) const {
    return std::max(launching.Of(channels), latency) + moving;
  }
};
using Samples = std::vector<std::vector<Sample>>;  // by table

double RelativeError(Seconds predicted, Seconds measured) {
  return std::abs((predicted - measured) / measured);
}

// The mean error of a table, summed over the tables.
double Score(const Samples& tables, const Launching& launching) {
  double score = 0;
  for (const std::vector<Sample>& table : tables) {
    double sum = 0;
    for (const Sample& sample : table)
      sum += std::min(1.0, RelativeError(sample.Predicted(launching), sample.measured));
    score += sum / static_cast<double>(table.size());
  }
  return score;
}

// The launching with the smallest score, among those that match a sample, and none.
Candidate BestLaunching(const Samples& tables, double channel_share) {
  Candidate best;
  best.launching = Launching{};
  best.score = Score(tables, *best.launching);
  for (const std::vector<Sample>& table : tables) {
    for (const Sample& sample : table) {
      const Seconds rest = sample.measured - sample.moving;
      if (rest <= sample.latency) continue;
      const double exact = rest.value() / sample.Launches(channel_share);
      const Seconds once(std::round(exact * 1e8) / 1e8);
      const Launching launching{once, channel_share * once};
      const double score = Score(tables, launching);
      if (score >= best.score) continue;
      best.launching = launching;
      best.score = score;
    }
  }
  return best;
}

// The positions of a table's rows, by size: every other one, and the rest.
struct Halves {
  std::vector<size_t> fitted_on;
  std::vector<size_t> held_out;
};
Halves Halve(const std::vector<NcclRow>& rows) {
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows[a].bytes < rows[b].bytes; });
  Halves halves;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_needed = order.size() < kFew && i + 1 == order.size();
    const bool is_fitted_on = i % 2 == 0 || is_needed;
    (is_fitted_on ? halves.fitted_on : halves.held_out).push_back(order[i]);
  }
  return halves;
}

class Fitter {
 public:
  Fitter(const Cluster& cluster, const std::vector<FitTable>& tables)
      : cluster_(cluster),
        tables_(tables),
        own_launching_{cluster.collective_overhead(), cluster.channel_overhead()} {
    for (const FitTable& table : tables) {
      std::vector<NcclRow> rows;
      for (const size_t i : Halve(table.rows).fitted_on) rows.push_back(table.rows[i]);
      fitted_on_.push_back(std::move(rows));
    }
    const Trial& trial = tables.front().trial;
    Router router(cluster, trial.routing);
    ChannelFinder finder(router);
    Tuner tuner(router, trial.nccl);
    Bytes largest;
    for (const NcclRow& row : tables.front().rows) largest = std::max(largest, row.bytes);
    const GroupPlan plan = ArrangePlan(ChoiceOf(trial, largest, tuner), trial.kind, trial.root,
                                       trial.groups.front(), router, finder);
    link_ = cluster.Link(BindingLinkOf(plan, router).link);
  }

  // The best candidate that has only those numbers that the samples determine.
  Candidate Best() {
    const Candidate both = BestEfficiency(/*fits_launching=*/true);
    const bool tell_efficiency = TellEfficiency(both);
    const bool tell_launching = TellLaunching(both);
    if (tell_efficiency && tell_launching) return both;
    const Candidate efficiency = BestEfficiency(/*fits_launching=*/false);
    Candidate launching = LaunchingAt(std::nullopt);
    const bool may_be_efficiency = !tell_launching && TellEfficiency(efficiency);
    const bool may_be_launching = !tell_efficiency && TellLaunching(launching);
    if (may_be_efficiency && may_be_launching) return IsMostlyMoving() ? efficiency : launching;
    if (may_be_efficiency) return efficiency;
    if (may_be_launching) return launching;
    return {};
  }

  Calibration With(const Candidate& candidate) const {
    Calibration calibration;
    calibration.cluster = cluster_.name();
    if (candidate.efficiency)
      calibration.links.push_back({link_.kind, link_.bandwidth, *candidate.efficiency, {}});
    if (candidate.launching) {
      calibration.collective_overhead = candidate.launching->once;
      calibration.channel_overhead = candidate.launching->of_channel;
    }
    return calibration;
  }

 private:
  Candidate BestEfficiency(bool fits_launching) {
    double from = kLeastEfficiency;
    double to = 1;
    Candidate best;
    for (const double grid : kGrids) {
      best = Search(from, to, grid, fits_launching);
      from = std::max(kLeastEfficiency, *best.efficiency - grid);
      to = std::min(1.0, *best.efficiency + grid);
    }
    return best;
  }

  Candidate Search(double from, double to, double step, bool fits_launching) {
    Candidate best;
    const int steps = static_cast<int>(std::floor((to - from) / step + 1e-9));
    for (int i = 0; i <= steps; ++i) {
      const double efficiency = std::round((from + i * step) * 1e4) / 1e4;
      Candidate candidate;
      if (fits_launching) {
        candidate = LaunchingAt(efficiency);
      } else {
        candidate.efficiency = efficiency;
        candidate.score = Score(SamplesAt(efficiency), own_launching_);
      }
      if (i == 0 || candidate.score < best.score) best = candidate;
    }
    return best;
  }

  Candidate LaunchingAt(std::optional<double> efficiency) {
    const Samples& samples = SamplesAt(efficiency);
    Candidate candidate = BestLaunching(samples, 0);
    const Candidate by_channels = BestLaunching(samples, kChannelLaunchShare);
    if (by_channels.score < candidate.score) candidate = by_channels;
    candidate.efficiency = efficiency;
    return candidate;
  }

  // What the candidate predicts for the samples.
  std::vector<Seconds> PredictedBy(const Candidate& candidate) {
    std::vector<Seconds> predicted;
    for (const std::vector<Sample>& table : SamplesAt(candidate.efficiency)) {
      for (const Sample& sample : table)
        predicted.push_back(sample.Predicted(candidate.launching.value_or(own_launching_)));
    }
    return predicted;
  }

  // Whether some launching with the same cost per channel predicts nearly the same; if launching is
  // not fitted, the cluster's own.
  bool IsNearly(const std::vector<Seconds>& wanted, const Samples& samples,
                const Candidate& candidate) const {
    const Launching launching = candidate.launching.value_or(own_launching_);
    const double share = launching.once > Seconds(0) ? launching.of_channel / launching.once : 0;
    double least = 0;
    double most = 1e9;
    size_t i = 0;
    for (const std::vector<Sample>& table : samples) {
      for (const Sample& sample : table) {
        const double low = wanted[i].value() * (1 - kShows);
        const double high = wanted[i].value() * (1 + kShows);
        ++i;
        if (!candidate.launching) {
          const double now = sample.Predicted(launching).value();
          if (now < low || now > high) return false;
          continue;
        }
        const double moving = sample.moving.value();
        const double launches = sample.Launches(share);
        if (sample.latency.value() + moving > high) return false;
        most = std::min(most, (high - moving) / launches);
        if (sample.latency.value() + moving < low)
          least = std::max(least, (low - moving) / launches);
      }
    }
    return least <= most;
  }

  // Whether another efficiency would show.
  bool TellEfficiency(const Candidate& candidate) {
    const std::vector<Seconds> wanted = PredictedBy(candidate);
    for (const double moved : {*candidate.efficiency / kMoved, *candidate.efficiency * kMoved}) {
      const double efficiency = std::round(moved * 1e4) / 1e4;
      if (efficiency < kLeastEfficiency || efficiency > 1) continue;
      if (IsNearly(wanted, SamplesAt(efficiency), candidate)) return false;
    }
    return true;
  }

  // Whether another launching would show; if the efficiency is fitted, at all points of its coarse
  // grid and between them.
  bool TellLaunching(const Candidate& candidate) {
    const std::vector<Seconds> wanted = PredictedBy(candidate);
    std::vector<Samples> all;
    if (candidate.efficiency) {
      for (const double fine : FineGrid()) all.push_back(Between(fine));
    } else {
      all.push_back(SamplesAt(std::nullopt));
    }
    const Launching& now = *candidate.launching;
    std::vector<double> others = {1 / kMoved, kMoved};
    Launching one = now;
    if (now.once == Seconds(0)) {  // compare a quarter of the shortest time with none
      one.once = *std::min_element(wanted.begin(), wanted.end());
      others = {kMoved - 1};
    }
    for (const double other : others) {
      const Launching moved{other * one.once, other * one.of_channel};
      for (const Samples& samples : all) {
        bool is_near = true;
        size_t i = 0;
        for (const std::vector<Sample>& table : samples) {
          for (const Sample& sample : table)
            is_near = is_near && RelativeError(sample.Predicted(moved), wanted[i++]) <= kShows;
        }
        if (is_near) return false;
      }
    }
    return true;
  }

  static std::vector<double> FineGrid() {
    std::vector<double> grid;
    for (int i = static_cast<int>(kLeastEfficiency * 1000); i <= 1000; i += 2)
      grid.push_back(i / 1000.0);
    return grid;
  }

  // Interpolates between two efficiencies of the coarse grid; moving is proportional to 1/e.
  Samples Between(double efficiency) {
    const double steps = (efficiency - kLeastEfficiency) / kGrids[0];
    const double low = std::floor(steps + 1e-9);
    const auto at = [&](double step) {
      return std::min(1.0, std::round((kLeastEfficiency + step * kGrids[0]) * 1e4) / 1e4);
    };
    const double from = at(low);
    const double to = at(low + 1);
    Samples samples = SamplesAt(from);
    if (from == to) return samples;
    const double share = (1 / from - 1 / efficiency) / (1 / from - 1 / to);
    const Samples& next = SamplesAt(to);
    for (size_t table = 0; table < samples.size(); ++table) {
      for (size_t i = 0; i < samples[table].size(); ++i) {
        Sample& sample = samples[table][i];
        sample.moving = (1 - share) * sample.moving + share * next[table][i].moving;
      }
    }
    return samples;
  }

  // Whether most samples move bytes for most of their time, with the cluster as it is.
  bool IsMostlyMoving() {
    size_t mostly = 0;
    size_t count = 0;
    for (const std::vector<Sample>& table : SamplesAt(std::nullopt)) {
      for (const Sample& sample : table) {
        ++count;
        if (2 * sample.moving > sample.Predicted(own_launching_)) ++mostly;
      }
    }
    return 2 * mostly >= count;
  }

  // Without launching, a collective starts with its latency.
  const Samples& SamplesAt(std::optional<double> efficiency) {
    const auto [it, is_new] = samples_.try_emplace(efficiency.value_or(0));
    if (!is_new) return it->second;
    const auto cluster = ApplyCalibration(cluster_, With({efficiency, Launching{}, 0}));
    for (size_t i = 0; i < tables_.size(); ++i) it->second.push_back(SamplesOf(*cluster, i));
    return it->second;
  }

  std::vector<Sample> SamplesOf(const Cluster& cluster, size_t table) const {
    const Trial& trial = tables_[table].trial;
    const std::vector<NcclRow>& rows = fitted_on_[table];
    Router router(cluster, trial.routing);
    Tuner tuner(router, trial.nccl);
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
  const Launching own_launching_;
  std::vector<std::vector<NcclRow>> fitted_on_;
  ClusterLink link_;
  std::map<double, Samples> samples_;  // by efficiency; 0: the cluster's own
};

// The mean error over all samples, each counted as at most 1.
double MeanError(const Cluster& cluster, const std::vector<FitTable>& tables) {
  double sum = 0;
  for (const FitTable& table : tables) {
    const std::vector<Seconds> predicted = Predict(cluster, table.trial, table.rows);
    double of_table = 0;
    for (size_t i = 0; i < predicted.size(); ++i)
      of_table += std::min(1.0, RelativeError(predicted[i], table.rows[i].time));
    sum += of_table / static_cast<double>(predicted.size());
  }
  return sum / static_cast<double>(tables.size());
}

}  // namespace

nlohmann::ordered_json ToJson(const ErrorSummary& errors) {
  return {{"samples", errors.samples},
          {"median", errors.median},
          {"ninetieth_percentile", errors.ninetieth},
          {"largest", errors.largest}};
}

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
  std::vector<Bytes> sizes;
  for (const NcclRow& row : rows) sizes.push_back(row.bytes);
  std::vector<Seconds> times;
  for (const SeededTime& time : TimesOverSeeds(trial, sizes, cluster)) times.push_back(time.median);
  return times;
}

Calibration FitCalibration(const Cluster& cluster, const std::vector<FitTable>& tables) {
  CHECK(!tables.empty());
  Fitter fitter(cluster, tables);
  const Candidate best = fitter.Best();
  Calibration calibration = fitter.With(best);
  std::vector<std::string> remarks;
  if (!best.efficiency)
    remarks.emplace_back(
        "the efficiency of the links is not fitted: these times do not determine it");
  if (!best.launching)
    remarks.emplace_back("the launch overhead is not fitted: these times do not determine it");
  const double with = MeanError(*ApplyCalibration(cluster, calibration), tables);
  const double without = MeanError(cluster, tables);
  if (with > without) {
    calibration = fitter.With({});
    remarks = {fmt::format("the fit is rejected: its mean error is {:.1f} %, without it {:.1f} %",
                           100 * with, 100 * without)};
  }
  const auto fitted = ApplyCalibration(cluster, calibration);
  std::vector<double> large;
  std::vector<double> small;
  size_t samples = 0;
  size_t held_out = 0;
  for (const FitTable& table : tables) {
    samples += table.rows.size();
    const std::vector<Seconds> predicted = Predict(*fitted, table.trial, table.rows);
    for (const size_t i : Halve(table.rows).held_out) {
      ++held_out;
      const double error = RelativeError(predicted[i], table.rows[i].time);
      (table.rows[i].bytes >= kOneMegabyte ? large : small).push_back(error);
    }
  }
  calibration.fit = {{"samples", samples},
                     {"fitted_on", samples - held_out},
                     {"remarks", remarks},
                     {"mean_error", std::min(with, without)},
                     {"mean_error_without", without},
                     {"held_out_errors_from_1_mib", ToJson(SummarizeErrors(large))},
                     {"held_out_errors_below_1_mib", ToJson(SummarizeErrors(small))}};
  return calibration;
}

}  // namespace rehearse
