#include "sim/perturb.h"

#include <algorithm>
#include <cmath>

#include "sim/error.h"

namespace rehearse {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

enum class Kind : uint64_t { kDelay = 1, kLink = 2 };

double Noise(uint64_t seed, Kind kind, uint64_t position) {
  const uint64_t of_seed = SplitMix64(seed).Next();
  const uint64_t of_kind = SplitMix64(of_seed ^ static_cast<uint64_t>(kind)).Next();
  SplitMix64 random(of_kind ^ position);
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random.Next() >> 11) * 0x1p-53;
  return std::clamp(sum, -3.0, 3.0);
}

void CheckJitter(double jitter) {
  CHECK_GE(jitter, 0.0);
  CHECK_LE(jitter, 0.3);
}

}  // namespace

Program Perturb(Program program, const Perturbation& perturbation) {
  CheckJitter(perturbation.delay_jitter);
  CheckJitter(perturbation.link_jitter);
  std::vector<double> factor_of_processor(program.processors.size(), 1.0);
  for (const Straggler& straggler : perturbation.stragglers) {
    CHECK_LT(straggler.processor, program.processors.size());
    CHECK_GT(straggler.factor, 0.0);
    CHECK(std::isfinite(straggler.factor));
    factor_of_processor[straggler.processor] *= straggler.factor;
  }
  for (size_t i = 0; i < program.delays.size(); ++i) {
    double factor = 1 + perturbation.delay_jitter * Noise(perturbation.seed, Kind::kDelay, i);
    if (!program.delay_owners.empty() && program.delay_owners[i].processor != Program::kNone) {
      factor *= factor_of_processor[program.delay_owners[i].processor];
    }
    if (factor != 1) program.delays[i] = ToTime(factor * ToSeconds(program.delays[i]));
  }
  for (size_t i = 0; i < program.links.size(); ++i) {
    program.links[i].capacity *=
        1 + perturbation.link_jitter * Noise(perturbation.seed, Kind::kLink, i);
  }
  return program;
}

}  // namespace rehearse
