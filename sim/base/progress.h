// What long work tells while it goes on: what is being done, how many parts of how many are done,
// and the best so far. Work tells a ProgressObserver; who shows it, and where, is the command's
// affair (sim/base/progress_line.h).
//
// Telling costs a look at the clock at most, and only when work tells can anything be shown or the
// work be stopped: so tell some hundred times a second. The functions may be called from several
// threads, and may throw Stopped (sim/base/interruption.h), which work lets through.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

class ProgressObserver {
 public:
  ProgressObserver() = default;
  virtual ~ProgressObserver() = default;
  ProgressObserver(const ProgressObserver&) = delete;
  ProgressObserver& operator=(const ProgressObserver&) = delete;

  // Other work begins, called `what` ("simulating"), of `all` `parts` ("points"). 0 parts: nobody
  // knows how many. No name for parts: they are too small to be counted before people.
  virtual void Begin(std::string_view what, std::string_view parts, uint64_t all);
  // So many of them are done, the last one in part perhaps.
  virtual void Done(double parts);
  // So many of those that are done were there before and took no time.
  virtual void Had(double parts);
  // What is known so far: "best 1.2 s (fsdp)". Until the next note; new work begins without.
  virtual void Note(std::string_view note);
};

// For work that nobody waits for.
ProgressObserver& NoObserver();

// Tells of work within another's part: as the fraction of it that is done. What is not called
// `counted` is a small piece of it.
class PartObserver : public ProgressObserver {
 public:
  // `before`: parts that are done already.
  PartObserver(ProgressObserver& whole, double before, std::string_view counted)
      : whole_(whole), before_(before), counted_(counted) {}

  void Begin(std::string_view what, std::string_view parts, uint64_t all) override;
  void Done(double parts) override;

 private:
  ProgressObserver& whole_;
  const double before_;
  const std::string counted_;
  uint64_t all_ = 0;
};

}  // namespace rehearse
