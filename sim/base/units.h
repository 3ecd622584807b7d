// Units, which exist only at the boundary: strings such as "25GBps", "200Gbps", "1.5us", "40GiB"
// are read into quantities here and quantities are printed here.
//
// B is a byte and b a bit; k, M, G, T, P are powers of 1,000 and Ki, Mi, Gi, Ti powers of 1,024.
// A bandwidth is "<prefix>Bps" or "<prefix>bps" ("GB/s" and "Gb/s" are read as well), a time "ps",
// "ns", "us", "ms", "s", a rate of computation "<prefix>FLOPS" ("TFLOP/s" as well), a number of
// operations "<prefix>FLOP", sizes "<prefix>B".
// A bare number is refused, except where a function says otherwise. All functions are pure.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/quantity.h"

namespace rehearse {

// Each throws Error("found \"25\", expected a bandwidth with its unit such as \"25GBps\"") unless
// the text is a finite number, optional space, and a unit of the right kind. Negative numbers are
// refused; zero is allowed for times and numbers of operations only. Times are below 106 days
// (sim/base/clock.h), bandwidths within the limits below, all others so that their sums, products
// and ratios are finite.
inline constexpr BytesPerSecond kLeastBandwidth(1e-15);
inline constexpr BytesPerSecond kMostBandwidth(1e25);
BytesPerSecond ParseBandwidth(std::string_view text);
Seconds ParseDuration(std::string_view text);
Bytes ParseSize(std::string_view text);
FlopsPerSecond ParseFlopRate(std::string_view text);
Flops ParseFlops(std::string_view text);

// Regular expressions, as JSON Schema has them, that match each text above, and also some that are
// out of range.
std::string BandwidthPattern();
std::string DurationPattern();
std::string SizePattern();
std::string FlopRatePattern();
std::string FlopsPattern();

// As a person reads them, about 4 significant digits: "24.88 GB/s", "1.374 s", "38.21 GiB",
// "312 TFLOP/s". Zero prints as "0 s" and so on.
std::string Print(BytesPerSecond bandwidth);
std::string Print(Seconds duration);
std::string Print(Bytes size);
std::string Print(FlopsPerSecond rate);

// The shortest text in one of the units that is read back as exactly the same number: "64MiB",
// "123.5B", "3ms", "1.5TFLOP". For finite numbers of zero or more; "0B" only where a reader allows
// zero bytes.
std::string PrintExactly(Seconds duration);
std::string PrintExactly(Bytes size);
std::string PrintExactly(Flops flops);

}  // namespace rehearse
