#include "sim/schedule/communicator.h"

#include <algorithm>
#include <limits>

#include "sim/base/error.h"

namespace rehearse {
namespace {

uint32_t ProductOf(const std::vector<StridedAxis>& axes) {
  uint64_t product = 1;
  for (const StridedAxis& axis : axes) {
    CHECK_GE(axis.extent, 1u);
    product *= axis.extent;
    CHECK_LT(product, uint64_t{std::numeric_limits<uint32_t>::max()});
  }
  return static_cast<uint32_t>(product);
}

// The rank whose coordinates on `axes` are the digits of `index`, first axis fastest.
uint32_t RankOf(uint32_t index, const std::vector<StridedAxis>& axes) {
  uint32_t rank = 0;
  for (const StridedAxis& axis : axes) {
    rank += index % axis.extent * axis.stride;
    index /= axis.extent;
  }
  return rank;
}

// The inverse, given that the axes are those of a dense mesh.
uint32_t IndexOf(uint32_t rank, const std::vector<StridedAxis>& axes) {
  uint32_t index = 0;
  uint32_t weight = 1;
  for (const StridedAxis& axis : axes) {
    index += rank / axis.stride % axis.extent * weight;
    weight *= axis.extent;
  }
  return index;
}

}  // namespace

Communicator Communicator::Strided(std::string name, std::vector<StridedAxis> member_axes,
                                   std::vector<StridedAxis> group_axes) {
  Communicator result;
  result.name_ = std::move(name);

  // Dense means: sorted by stride, each stride is the product of the extents below it.
  std::vector<StridedAxis> axes = member_axes;
  axes.insert(axes.end(), group_axes.begin(), group_axes.end());
  ProductOf(axes);  // all ranks fit
  std::erase_if(axes, [](const StridedAxis& axis) { return axis.extent == 1; });
  std::sort(axes.begin(), axes.end(),
            [](const StridedAxis& a, const StridedAxis& b) { return a.stride < b.stride; });
  uint32_t product = 1;
  for (const StridedAxis& axis : axes) {
    CHECK_EQ(axis.stride, product);
    product *= axis.extent;
  }

  // An axis with one coordinate says nothing; without it, no stride can be zero.
  const auto is_trivial = [](const StridedAxis& axis) { return axis.extent == 1; };
  std::erase_if(member_axes, is_trivial);
  std::erase_if(group_axes, is_trivial);
  result.size_ = ProductOf(member_axes);
  result.group_count_ = ProductOf(group_axes);
  result.member_axes_ = std::move(member_axes);
  result.group_axes_ = std::move(group_axes);
  return result;
}

Communicator Communicator::Explicit(std::string name,
                                    const std::vector<std::vector<uint32_t>>& groups) {
  CHECK(!groups.empty());
  CHECK(!groups.front().empty());
  Communicator result;
  result.name_ = std::move(name);
  result.size_ = static_cast<uint32_t>(groups.front().size());
  result.group_count_ = static_cast<uint32_t>(groups.size());
  for (const std::vector<uint32_t>& group : groups) {
    CHECK_EQ(group.size(), groups.front().size());
    for (const uint32_t rank : group) {
      result.index_of_rank_.emplace_back(rank, static_cast<uint32_t>(result.ranks_.size()));
      result.ranks_.push_back(rank);
    }
  }
  std::sort(result.index_of_rank_.begin(), result.index_of_rank_.end());
  for (size_t i = 1; i < result.index_of_rank_.size(); ++i)
    CHECK_NE(result.index_of_rank_[i - 1].first, result.index_of_rank_[i].first);
  return result;
}

uint32_t Communicator::Rank(uint32_t group, uint32_t member) const {
  CHECK_LT(group, group_count_);
  CHECK_LT(member, size_);
  if (!ranks_.empty()) return ranks_[size_t{group} * size_ + member];
  return RankOf(group, group_axes_) + RankOf(member, member_axes_);
}

std::optional<Communicator::Position> Communicator::PositionOf(uint32_t rank) const {
  if (!ranks_.empty()) {
    const auto found =
        std::lower_bound(index_of_rank_.begin(), index_of_rank_.end(), std::pair{rank, 0u});
    if (found == index_of_rank_.end() || found->first != rank) return std::nullopt;
    return Position{found->second / size_, found->second % size_};
  }
  if (rank >= uint64_t{size_} * group_count_) return std::nullopt;
  return Position{IndexOf(rank, group_axes_), IndexOf(rank, member_axes_)};
}

}  // namespace rehearse
