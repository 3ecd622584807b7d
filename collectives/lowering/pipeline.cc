#include "collectives/lowering/pipeline.h"

#include <algorithm>
#include <cmath>

#include "collectives/lowering/link_counts.h"

namespace rehearse {
namespace {

// What every link must carry, and the most that any must. Taking away looks at all links only when
// none of those with the most is left.
class Loads {
 public:
  explicit Loads(uint32_t links) : load_(links, 0) {}

  void Add(uint32_t link, double load) {
    if (IsMost(load_[link])) --at_most_;
    load_[link] += load;
    if (load_[link] > most_ * (1 + kTolerance)) {
      most_ = load_[link];
      at_most_ = 1;
    } else if (IsMost(load_[link])) {
      ++at_most_;
    }
  }
  void Take(uint32_t link, double load) {
    if (IsMost(load_[link])) --at_most_;
    load_[link] -= load;
    if (IsMost(load_[link])) ++at_most_;
    if (at_most_ > 0) return;
    most_ = *std::max_element(load_.begin(), load_.end());
    at_most_ = static_cast<uint32_t>(
        std::count_if(load_.begin(), load_.end(), [&](double own) { return IsMost(own); }));
  }
  double most() const { return most_; }

 private:
  static constexpr double kTolerance = 1e-9;
  bool IsMost(double load) const { return load > 0 && load >= most_ * (1 - kTolerance); }

  std::vector<double> load_;
  double most_ = 0;
  uint32_t at_most_ = 0;
};

}  // namespace

Pipeline::Pipeline(std::vector<Hop> hops) : hops_(std::move(hops)) {
  DenseLinks dense;
  for (Hop& hop : hops_) {
    for (auto& [link, seconds] : hop.loads) link = dense.Of(link);
    latency_ = std::max(latency_, hop.latency);
    is_even_ = is_even_ && hop.latency == hops_.front().latency;
  }
  links_ = dense.count();
  Loads all(links_);
  std::vector<double> own(links_, 0);
  for (const Hop& hop : hops_) {
    double most = 0;
    for (const auto& [link, seconds] : hop.loads) {
      own[link] += seconds;
      most = std::max(most, own[link]);
      all.Add(link, seconds);
    }
    for (const auto& [link, seconds] : hop.loads) own[link] = 0;
    hop_seconds_ += most;
  }
  seconds_ = all.most();
}

uint32_t Pipeline::BestPieces(Bytes bytes) const {
  if (!fills_) return kMostPieces;
  const double filling = (hop_seconds_ - seconds_) * bytes.value();
  if (!(filling > 0)) return 1;
  if (latency_.value() <= 0) return kMostPieces;
  const double best = std::sqrt(filling / latency_.value());
  return best >= kMostPieces ? kMostPieces : std::max(1u, static_cast<uint32_t>(std::lround(best)));
}

std::vector<Seconds> Pipeline::Latencies(uint32_t pieces) const {
  const uint32_t steps = pieces + hops() - 1;
  if (is_even_) return std::vector<Seconds>(steps, latency_);
  std::vector<Seconds> chains(hops());  // the longest that ends with the hop's last message so far
  std::vector<Seconds> before(hops());
  std::vector<Seconds> latencies;
  Seconds longest;
  for (uint32_t step = 0; step < steps; ++step) {
    before = chains;
    const Seconds until_now = longest;
    const uint32_t first = step < pieces ? 0 : step - pieces + 1;
    for (uint32_t hop = first; hop < std::min(step + 1, hops()); ++hop) {
      for (const uint32_t other : hops_[hop].neighbours)
        chains[hop] = std::max(chains[hop], before[other]);
      chains[hop] += hops_[hop].latency;
      longest = std::max(longest, chains[hop]);
    }
    latencies.push_back(longest - until_now);
  }
  return latencies;
}

const std::vector<StepCost>& Pipeline::Steps(uint32_t pieces) const {
  std::vector<StepCost>& steps = steps_[pieces];
  if (!steps.empty()) return steps;
  const uint32_t count = hops();
  Loads loads(links_);
  for (const Seconds latency : Latencies(pieces)) {
    const auto step = static_cast<uint32_t>(steps.size());
    if (step < count) {
      for (const auto& [link, seconds] : hops_[step].loads) loads.Add(link, seconds);
    }
    if (step >= pieces) {
      for (const auto& [link, seconds] : hops_[step - pieces].loads) loads.Take(link, seconds);
    }
    steps.push_back({latency, loads.most()});
  }
  return steps;
}

Seconds Pipeline::Time(Bytes bytes, uint32_t pieces) const {
  if (!fills_) return Seconds(seconds_ * bytes.value());
  Seconds time;
  for (const StepCost& step : Steps(pieces)) {
    time += step.latency + Seconds(step.seconds * bytes.value() / pieces);
  }
  return time;
}

}  // namespace rehearse
