// The tree over machines of double binary trees (Sanders, Speck & Träff 2009).
//
// Machines have labels 1 ... N. The parent of label i, whose lowest bit is l, is i with bit l
// cleared and the next one set (or, if there is no such label, only cleared); the root is the
// largest power of two. Odd labels are leaves. The second tree shifts labels by one, so that a leaf
// in one is an inner node in the other. If the collective has a root, its machine (node 0) stands
// outside, before the tree's root: labels are those of the other N-1. Nodes are positions of
// machines. Pure functions of an immutable value.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

class BinaryTree {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  BinaryTree(uint32_t machines, bool has_root, bool shifted)
      : outside_(has_root ? 1 : 0), labels_(machines - outside_), shifted_(shifted) {}

  // Hops up the tree; 0 for one machine.
  uint32_t Height() const;
  uint32_t Parent(uint32_t node) const;  // the topmost has kNone
  // How many hops below it the lowest leaf is.
  uint32_t HeightOf(uint32_t node) const;
  uint32_t DepthOf(uint32_t node) const;
  std::vector<uint32_t> Children(uint32_t node) const;

 private:
  uint32_t LabelOf(uint32_t node) const;
  uint32_t NodeOf(uint32_t label) const;

  uint32_t outside_;
  uint32_t labels_;
  bool shifted_;
};

}  // namespace rehearse
