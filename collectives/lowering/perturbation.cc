#include "collectives/lowering/perturbation.h"

#include "sim/base/noise.h"

namespace rehearse {

double ComputeFactor(const Perturbation& perturbation, uint32_t rank, uint32_t op) {
  double factor = perturbation.straggling.empty() ? 1 : perturbation.straggling[rank];
  if (perturbation.compute_jitter > 0) {
    const uint64_t position = uint64_t{rank} << 32 | op;
    factor *=
        1 + perturbation.compute_jitter * Noise(perturbation.seed, NoiseKind::kCompute, position);
  }
  return factor;
}

double LinkFactor(const Perturbation& perturbation, uint32_t link) {
  if (perturbation.link_jitter == 0) return 1;
  return 1 + perturbation.link_jitter * Noise(perturbation.seed, NoiseKind::kLink, link);
}

std::vector<bool> FailingLinks(const Perturbation& perturbation, uint32_t link_count) {
  std::vector<bool> failing;
  for (const LinkEvent& event : perturbation.events) {
    if (event.factor != 0) continue;
    failing.resize(link_count);
    failing[event.link] = true;
  }
  return failing;
}

}  // namespace rehearse
