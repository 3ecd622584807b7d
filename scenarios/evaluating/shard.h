// A part of the points: of --shard, whose programs do all of them between them without knowing of
// each other (arrays of Slurm), or what ranks of one run lease.
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
  // Which of so many points are its own. Parts differ by one point at most; neighbours on a grid,
  // which may take equally long, are dealt out in no regular way, the same on every machine.
  std::vector<bool> Own(size_t count) const;
};

// InParallel() (sim/base/threads.h) where `leases` is null. Otherwise does only what no other rank
// has leased; all ranks call it with the same count, once a run.
void ForLeased(size_t count, unsigned threads, Leases* leases,
               const std::function<void(size_t)>& work);

}  // namespace rehearse
