#include "collectives/algorithms/binary_tree.h"

#include <bit>

#include "sim/base/error.h"

namespace rehearse {

uint32_t BinaryTree::Height() const {
  return labels_ == 0 ? 0 : static_cast<uint32_t>(std::bit_width(labels_)) - 1 + outside_;
}

uint32_t BinaryTree::Parent(uint32_t node) const {
  if (node < outside_) return kNone;
  const uint32_t label = LabelOf(node);
  const uint32_t low = label & (~label + 1);
  if (label == std::bit_floor(labels_)) return outside_ == 1 ? 0 : kNone;
  const uint32_t cleared = label ^ low;
  const uint32_t parent = cleared | (low << 1);
  return NodeOf(parent <= labels_ ? parent : cleared);
}

uint32_t BinaryTree::HeightOf(uint32_t node) const {
  if (node < outside_) return Height();
  return static_cast<uint32_t>(std::countr_zero(LabelOf(node)));
}

uint32_t BinaryTree::DepthOf(uint32_t node) const {
  if (node < outside_) return 0;
  // Above label i there is at most one label of each height: i without its bits below, and one set.
  const uint32_t label = LabelOf(node);
  uint32_t depth = outside_;
  for (uint32_t bit = (label & (~label + 1)) << 1; bit <= labels_; bit <<= 1) {
    if (((label & ~(2 * bit - 1)) | bit) <= labels_) ++depth;
  }
  return depth;
}

std::vector<uint32_t> BinaryTree::Children(uint32_t node) const {
  if (node < outside_) {
    if (labels_ == 0) return {};
    return {NodeOf(std::bit_floor(labels_))};
  }
  std::vector<uint32_t> children;
  const uint32_t label = LabelOf(node);
  for (uint32_t half = (label & (~label + 1)) / 2; half > 0; half /= 2) {
    // The left child, and the first label on the right that is there.
    if (children.empty()) children.push_back(NodeOf(label - half));
    if (label + half > labels_) continue;
    children.push_back(NodeOf(label + half));
    break;
  }
  return children;
}

uint32_t BinaryTree::LabelOf(uint32_t node) const {
  const uint32_t place = node - outside_;
  CHECK(place < labels_);
  return (!shifted_ ? place : place + 1 == labels_ ? 0 : place + 1) + 1;
}

uint32_t BinaryTree::NodeOf(uint32_t label) const {
  const uint32_t place = shifted_ ? (label - 1 + labels_ - 1) % labels_ : label - 1;
  return place + outside_;
}

}  // namespace rehearse
