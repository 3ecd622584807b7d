// Captures and graphs: what is put onto a capturing stream is kept, and done again by each launch.
//
// A launch runs on the graph's own streams, one for each that was captured, between the work before
// and after it on the stream where it is launched. Races, accesses and collectives are checked as
// for any other work.
#pragma once

#include "tests/doubles/world.h"

namespace rehearse::gpu_double {

// One launch: the graph's streams by those that were captured, and the events recorded so far.
struct Replay {
  std::map<const Stream*, Stream*> streams;
  std::vector<Event> marks;
};

struct Capture {
  explicit Capture(Stream* the_first) : first(the_first) {}

  Stream* const first;
  std::vector<std::function<void(Replay*)>> actions;
  size_t marks = 0;
  std::vector<Clock> clock_of_mark;
  // For the captured streams: which of the others' actions come before.
  std::map<Stream*, Clock> clocks;

  void Add(Stream* stream, std::function<void(Replay*)> action);
};

// Whether the calling thread has a capture under way: then it may not allocate, free or wait.
bool IsCapturing();

// If the stream captures, keeps `action` for replays, which call it with the stream to use,
// and returns true.
bool KeepForReplay(Stream* stream, const std::function<void(Stream*)>& action);

}  // namespace rehearse::gpu_double
