#include "scenarios/playing/layer_memory.h"

namespace rehearse {

std::shared_ptr<const std::optional<LayerBegins>> LayerMemory::Of(
    const std::shared_ptr<const Network>& network) {
  constexpr size_t kMostKnown = 8;
  const std::lock_guard lock(mutex_);
  for (const Known& known : known_)
    if (known.network == network) return known.begins;
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.push_back(
      {network, std::make_shared<const std::optional<LayerBegins>>(FindEqualLayers(*network))});
  return known_.back().begins;
}

}  // namespace rehearse
