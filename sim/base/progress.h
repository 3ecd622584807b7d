// What long work reports while it goes on: what is being done, how many of its parts are done, and
// the best so far. Work reports to a ProgressObserver; the command decides who shows it, and where
// (sim/base/progress_line.h).
//
// A report costs a look at the clock at most. Only on a report can anything be shown or the work be
// stopped, so report about a hundred times a second. The functions may be called from several
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

  // New work begins, called `what` ("simulating"), of `all` `parts` ("points"). 0: nobody knows how
  // many. Parts without a name are too small for their number to be shown.
  virtual void Begin(std::string_view what, std::string_view parts, uint64_t all);
  // So many of them are done, the last one perhaps only in part.
  virtual void Done(double parts);
  // So many of those done existed before and took no time.
  virtual void Had(double parts);
  // What is known so far: "best 1.2 s (fsdp)". Holds until the next note; new work begins without
  // one.
  virtual void Note(std::string_view note);
};

// For work that nobody waits for.
ProgressObserver& NoObserver();

// Reports work inside a part of other work, as the fraction of that part that is done. Work not
// called `counted` is a small piece of it.
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
