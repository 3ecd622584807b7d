// A loop over many independent elements, on all cores if that pays off.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

#include "sim/base/threads.h"

namespace rehearse {

// Calls body(begin, end) for pieces that make up [0, count), on several threads at once. The body
// must not throw.
template <typename Body>
void ParallelFor(uint64_t count, const Body& body) {
  constexpr uint64_t kWorthAThread = 1 << 20;
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t pieces = std::clamp<uint64_t>(count / kWorthAThread, 1, cores);
  Threads others;
  for (uint64_t piece = 1; piece < pieces; ++piece) {
    const auto work = [&, piece] { body(count * piece / pieces, count * (piece + 1) / pieces); };
    if (!others.TryAdd(work)) work();
  }
  body(uint64_t{0}, count / pieces);
}

}  // namespace rehearse
