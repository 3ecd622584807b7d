#include "sim/base/progress.h"

#include <algorithm>

namespace rehearse {

void ProgressObserver::Begin(std::string_view /*what*/, std::string_view /*parts*/,
                             uint64_t /*all*/) {}
void ProgressObserver::Done(double /*parts*/) {}
void ProgressObserver::Had(double /*parts*/) {}
void ProgressObserver::Note(std::string_view /*note*/) {}

ProgressObserver& NoObserver() {
  static ProgressObserver nobody;
  return nobody;
}

void PartObserver::Begin(std::string_view what, std::string_view /*parts*/, uint64_t all) {
  all_ = what == counted_ ? all : 0;
  Done(0);
}

void PartObserver::Done(double parts) {
  const double share = all_ == 0 ? 0 : parts / static_cast<double>(all_);
  whole_.Done(before_ + std::min(share, 1.0));
}

}  // namespace rehearse
