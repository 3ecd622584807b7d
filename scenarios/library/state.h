// What the library's objects hold, and how internal errors become the library's.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "scenarios/library/rehearse.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"
#include "sim/base/progress.h"
#include "sim/report/data_table.h"

namespace rehearse::v1 {

// Calls `function` and turns what it throws into the library's own exceptions.
template <typename Function>
auto Guarded(const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const ::rehearse::Error& error) {
    const Place& place = error.place();
    throw Error(error.what(), place.file, place.line, place.pointer);
  } catch (const ::rehearse::Stopped& stopped) {
    throw Stopped(stopped.what());
  }
}

struct Scenario::State {
  JsonDocument document;
  std::string cluster;  // of a schedule; "" for a scenario

  // Read once, when it is first needed. Throws ::rehearse::Error.
  std::shared_ptr<const ::rehearse::Scenario> Read() const;

 private:
  mutable std::mutex mutex_ = {};
  mutable std::shared_ptr<const ::rehearse::Scenario> scenario_ = nullptr;
};

// Tells the caller how the work progresses, and throws ::rehearse::Stopped when it should stop.
class CallerObserver final : public ProgressObserver {
 public:
  explicit CallerObserver(Progress progress) : progress_(std::move(progress)) {}

  void Begin(std::string_view what, std::string_view parts, uint64_t all) override;
  void Done(double parts) override;
  bool IsStopped() const;

 private:
  void Tell(double parts);

  const Progress progress_;
  mutable std::mutex mutex_ = {};
  std::string what_ = {};
  uint64_t all_ = 0;
  bool is_stopped_ = false;
};

struct Points::State {
  std::string json;
  std::string text;
  Table table;
};

Table TableOf(const DataTable& data);

}  // namespace rehearse::v1
