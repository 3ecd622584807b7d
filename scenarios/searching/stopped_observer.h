// Lets work end where a search is stopped: each report throws Stopped then.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "sim/base/interruption.h"
#include "sim/base/progress.h"

namespace rehearse {

class StoppedObserver : public ProgressObserver {
 public:
  // `is_stopped` must outlive it.
  StoppedObserver(const std::function<bool()>& is_stopped, std::string words)
      : is_stopped_(is_stopped), words_(std::move(words)) {}

  void Begin(std::string_view /*what*/, std::string_view /*parts*/, uint64_t /*all*/) override {
    Done(0);
  }
  void Done(double /*parts*/) override {
    if (is_stopped_()) throw Stopped(words_);
  }

 private:
  const std::function<bool()>& is_stopped_;
  const std::string words_;
};

}  // namespace rehearse
