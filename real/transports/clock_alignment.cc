#include "real/transports/clock_alignment.h"

#include <algorithm>
#include <cmath>

#include "real/transports/host_clock.h"

namespace rehearse {
namespace {

constexpr int kRoundTrips = 64;
constexpr size_t kKept = kRoundTrips / 4;

ClockSample MeasureRank(Transport& transport, uint32_t rank) {
  std::vector<ClockSample> samples;
  for (int i = 0; i < kRoundTrips; ++i) {
    const int64_t sent = NowNanoseconds();
    int64_t theirs = 0;
    transport.Wait(transport.Send(rank, kControlTag, &sent, sizeof sent));
    transport.Wait(transport.Receive(rank, kControlTag, &theirs, sizeof theirs));
    const int64_t received = NowNanoseconds();
    const int64_t middle = sent + (received - sent) / 2;
    samples.push_back(
        {middle, static_cast<double>(middle - theirs), static_cast<double>(received - sent)});
  }
  std::stable_sort(samples.begin(), samples.end(), [](const ClockSample& a, const ClockSample& b) {
    return a.round_trip < b.round_trip;
  });
  const double quickest = samples.front().round_trip;
  samples.resize(kKept);
  std::stable_sort(samples.begin(), samples.end(),
                   [](const ClockSample& a, const ClockSample& b) { return a.offset < b.offset; });
  ClockSample median = samples[kKept / 2];
  median.round_trip = quickest;
  return median;
}

void AnswerTimes(Transport& transport) {
  for (int i = 0; i < kRoundTrips; ++i) {
    int64_t unused = 0;
    transport.Wait(transport.Receive(0, kControlTag, &unused, sizeof unused));
    const int64_t now = NowNanoseconds();
    transport.Wait(transport.Send(0, kControlTag, &now, sizeof now));
  }
}

}  // namespace

std::vector<ClockSample> MeasureClocks(Transport& transport) {
  if (transport.rank() != 0) {
    AnswerTimes(transport);
    return {};
  }
  std::vector<ClockSample> samples(1);
  samples[0].at = NowNanoseconds();
  for (uint32_t rank = 1; rank < transport.size(); ++rank) {
    samples.push_back(MeasureRank(transport, rank));
  }
  return samples;
}

double ClockMap::Drift() const {
  const auto elapsed = static_cast<double>(after.at - before.at);
  return elapsed > 0 ? (after.offset - before.offset) / elapsed * 1e9 : 0;
}

int64_t ClockMap::ToRank0(int64_t nanoseconds) const {
  const auto since = static_cast<double>(nanoseconds - before.at);
  return nanoseconds + std::llround(before.offset + Drift() * 1e-9 * since);
}

}  // namespace rehearse
