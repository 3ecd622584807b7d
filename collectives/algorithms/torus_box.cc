#include "collectives/algorithms/torus_box.h"

#include <algorithm>
#include <utility>

#include "topology/fabrics/structure.h"

namespace rehearse {

std::optional<TorusBox> BoxOf(const Cluster& cluster, const std::vector<uint32_t>& ranks,
                              std::string* why) {
  const auto fail = [&](const char* reason) {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  const ClusterStructure* structure = cluster.structure().get();
  const Torus* torus = structure != nullptr && structure->fabric
                           ? std::get_if<Torus>(&structure->fabric->kind)
                           : nullptr;
  if (torus == nullptr) return fail("it needs a torus or mesh, which the fabric is not");
  if (structure->devices_per_machine != 1)
    return fail("it needs one device at each router of the torus");
  // Along each dimension the same coordinates everywhere.
  TorusBox box;
  std::vector<std::vector<uint32_t>> used;
  size_t size = 1;
  for (const Torus::Dimension& dimension : torus->dimensions) {
    std::vector<bool> seen(dimension.size, false);
    for (const uint32_t rank : ranks) seen[rank / dimension.stride % dimension.size] = true;
    std::vector<uint32_t>& here = used.emplace_back();
    for (uint32_t c = 0; c < dimension.size; ++c)
      if (seen[c]) here.push_back(c);
    size *= here.size();
    if (here.size() < 2) continue;
    TorusBox::Axis axis;
    axis.extent = static_cast<uint32_t>(here.size());
    axis.is_in_a_row = here.back() - here.front() + 1 == axis.extent;
    axis.is_a_circle =
        axis.is_in_a_row && (axis.extent == 2 || (dimension.wraps && !dimension.IsTwisted() &&
                                                  axis.extent == dimension.size));
    box.axes.push_back(axis);
  }
  if (size != ranks.size()) return fail("its members do not fill a box of the torus");
  box.order.assign(size, 0);
  for (uint32_t member = 0; member < ranks.size(); ++member) {
    size_t position = 0;
    size_t stride = 1;
    for (size_t axis = 0; axis < used.size(); ++axis) {
      const Torus::Dimension& dimension = torus->dimensions[axis];
      const uint32_t c = ranks[member] / dimension.stride % dimension.size;
      const auto at = std::lower_bound(used[axis].begin(), used[axis].end(), c);
      position += static_cast<size_t>(at - used[axis].begin()) * stride;
      stride *= used[axis].size();
    }
    box.order[position] = member;
  }
  return box;
}

// A reflected code: each axis goes there and back as the ones above it take a step. After an even
// number of passes all axes below the top one are where they began, one step along it from the
// first member.
std::optional<std::vector<uint32_t>> RingOfNeighbours(const Cluster& cluster,
                                                      const std::vector<uint32_t>& ranks) {
  const std::optional<TorusBox> box = BoxOf(cluster, ranks);
  if (!box || box->axes.empty()) return std::nullopt;
  const auto top = std::find_if(box->axes.begin(), box->axes.end(), [](const TorusBox::Axis& axis) {
    return axis.is_a_circle && axis.extent % 2 == 0;
  });
  const bool are_in_rows = std::all_of(box->axes.begin(), box->axes.end(),
                                       [](const TorusBox::Axis& axis) { return axis.is_in_a_row; });
  if (top == box->axes.end() || !are_in_rows) return std::nullopt;
  // Extents and strides with the top axis last.
  std::vector<std::pair<uint32_t, uint32_t>> digits;
  std::pair<uint32_t, uint32_t> last;
  uint32_t stride = 1;
  for (auto axis = box->axes.begin(); axis != box->axes.end(); ++axis) {
    const std::pair<uint32_t, uint32_t> digit(axis->extent, stride);
    stride *= axis->extent;
    if (axis == top)
      last = digit;
    else
      digits.push_back(digit);
  }
  digits.push_back(last);
  std::vector<uint32_t> ring;
  ring.reserve(ranks.size());
  for (uint32_t i = 0; i < ranks.size(); ++i) {
    uint32_t passes = i;  // of the digit and all below it
    uint32_t position = 0;
    for (const auto& [extent, by] : digits) {
      const uint32_t value = passes % extent;
      passes /= extent;
      position += by * (passes % 2 == 0 ? value : extent - 1 - value);
    }
    ring.push_back(ranks[box->order[position]]);
  }
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), ranks.front()), ring.end());
  return ring;
}

}  // namespace rehearse
