// A field that is added to a struct that files say, but not to its table, would never be read: the
// members of each struct are counted and compared with the rows of its table.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios/readers/image_model_reader.h"
#include "scenarios/readers/strategy_shapes.h"
#include "scenarios/readers/training_reader.h"
#include "workloads/networks/latent_attention.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace every_field_test {

// Becomes whatever a member is initialised with; never called.
struct Anything {
  template <typename Member>
  operator Member() const;  // NOLINT(google-explicit-constructor): that is its purpose
};

template <typename T, size_t... kIndices>
constexpr bool Takes(std::index_sequence<kIndices...> /*indices*/) {
  return requires { T{(static_cast<void>(kIndices), Anything())...}; };
}

// How many members the struct has: as many as it can be initialised with.
template <typename T, size_t kCount = 0>
constexpr size_t MembersOf() {
  if constexpr (Takes<T>(std::make_index_sequence<kCount + 1>())) {
    return MembersOf<T, kCount + 1>();
  } else {
    return kCount;
  }
}

struct Three {
  int one = 0;
  std::string two;
  std::vector<Anything> three;
};
static_assert(MembersOf<Three>() == 3);

size_t RowsOf(const ObjectShape& shape) { return shape.keys.size(); }

TEST(EveryFieldTest, OfATrainingHasARow) {
  // "expert_kernels" and "narrow_kept" set two members, "cuda_graphs" four; "reads_columns" is the
  // device's.
  EXPECT_EQ(MembersOf<Training>(), RowsOf(TrainingShape()) + 1 + 1 + 3 + 1);
}

TEST(EveryFieldTest, OfAModelHasARow) {
  // "kind", "preset" and "file" are no members; the source of a preset is in no file.
  EXPECT_EQ(MembersOf<GptModel>(), RowsOf(DecoderShape()) - 3 + 1);
  EXPECT_EQ(MembersOf<LatentAttention>(), RowsOf(LatentFields().shape()));
  EXPECT_EQ(MembersOf<StateSpaceModel>(), RowsOf(StateSpaceFields().shape()));
  EXPECT_EQ(MembersOf<VggModel>(), RowsOf(VggFields().shape()) - 2 + 1);
  EXPECT_EQ(MembersOf<UnetModel>(), RowsOf(UnetFields().shape()) - 2 + 1);
}

TEST(EveryFieldTest, OfAStrategyHasARow) {
  // "kind" is no member. The rows of ZeroOptions are among those of what has them; three members
  // are those of presets.
  EXPECT_EQ(MembersOf<CombinedOptions>() - 1 - 3 + MembersOf<ZeroOptions>(),
            RowsOf(CombinedFields().shape()) - 1);
  // Three axes have two names.
  EXPECT_EQ(MembersOf<FourDOptions>(), RowsOf(FourDFields().shape()) - 1 - 3);
  EXPECT_EQ(MembersOf<AtpOptions>(), RowsOf(AtpFields().shape()) - 1);
  EXPECT_EQ(MembersOf<SummaOptions>(), RowsOf(SummaFields().shape()) - 1);
}

}  // namespace every_field_test
}  // namespace rehearse
