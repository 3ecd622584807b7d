#include "real/execution/losses.h"

#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "real/transports/control.h"

namespace rehearse {

double GatherLoss(Transport& transport, const std::vector<RowLoss>& own, double tokens) {
  std::map<std::pair<uint64_t, uint64_t>, double> by_position;
  for (const auto& bytes : GatherBytes(transport, ToBytes(std::span<const RowLoss>(own)))) {
    for (const RowLoss& loss : FromBytes<RowLoss>(bytes))
      by_position[{loss.row, loss.column}] = loss.loss;
  }
  double sum = 0;
  for (const auto& [position, loss] : by_position) sum += loss;
  return sum / tokens;
}

double RelativeDifference(double value, double reference) {
  const double difference = std::abs(value - reference);
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return difference == 0 ? 0 : difference / std::abs(reference);
}

}  // namespace rehearse
