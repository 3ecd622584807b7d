// Progress as one line: "simulating: 37 of 120 points, 12 s left; best 1.2 s (fsdp)". On a terminal
// it is updated in place and goes away in the end; elsewhere a line is printed every 30 s. Nothing
// is shown in the first second, so that quick work is silent. It has no thread of its own: what is
// shown changes when work reports something.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "sim/base/progress.h"
#include "sim/base/quantity.h"

namespace rehearse {

enum class ProgressPlace : uint8_t { kNowhere, kLines, kInPlace };

// Where, how and by which clock; tests have their own.
struct ProgressView {
  ProgressPlace place = ProgressPlace::kNowhere;
  // In place: characters of the terminal's line, asked for each time it is written.
  std::function<unsigned()> columns = [] { return 80u; };
  std::function<Seconds()> clock = SecondsOfThisMachine;
  // Asked whenever work reports parts that are done; true ends the work: the report throws Stopped.
  std::function<bool()> is_stopped = nullptr;
  // A line; in place it replaces the one before, and "" takes that away.
  std::function<void(const std::string& line)> show = nullptr;  // nothing: on standard error

  static Seconds SecondsOfThisMachine();
};

class ProgressLine : public ProgressObserver {
 public:
  explicit ProgressLine(ProgressView view);
  ~ProgressLine() override { Clear(); }

  void Begin(std::string_view what, std::string_view parts, uint64_t all) override;
  void Done(double parts) override;
  void Had(double parts) override;
  void Note(std::string_view note) override;

  // Takes away what stands in place, before results are printed.
  void Clear();

 private:
  void ShowIfDue();  // under the mutex, like those below
  std::string Text(Seconds now) const;
  void Show(const std::string& line);

  ProgressView view_;
  std::mutex mutex_;
  std::string what_;
  std::string parts_;
  std::string note_;
  uint64_t all_ = 0;
  double done_ = 0;
  double had_ = 0;
  Seconds began_;  // when the current work began
  Seconds due_;
  bool stands_ = false;  // a line is shown in place
};

}  // namespace rehearse
