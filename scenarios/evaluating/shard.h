// A part of the points: with --shard, programs share the points without knowing of each other
// (Slurm's job arrays); or what ranks of one run lease.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "real/transports/leases.h"

namespace rehearse {

struct Shard {
  size_t number = 1;  // of 1 to `of`
  size_t of = 1;

  bool IsWhole() const { return of == 1; }
  std::string Text() const;  // "shard 2/4"
  // Which of this many points are its own. Parts differ by at most one point; neighbours on a grid,
  // which may take equally long, are spread irregularly, but in the same way on every machine.
  std::vector<bool> Own(size_t count) const;
};

// InParallel() (sim/base/threads.h) if `leases` is null. Otherwise does only what no other rank has
// leased; all ranks call it with the same count, once per run.
void ForLeased(size_t count, unsigned threads, Leases* leases,
               const std::function<void(size_t)>& work);

}  // namespace rehearse
